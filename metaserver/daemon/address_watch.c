/* SPDX-License-Identifier: Apache-2.0 */
#include "address_watch.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

static const uint64_t LOOK_NS = 2 * BASE_NS_PER_S;

static void note_gone(struct meta_address_watch *w, bool gone)
{
    char gid[BASE_GID_TEXT];
    if (w->gone == gone)
        return;
    w->gone = gone;
    base_gid_format(w->fab->caps.gid, gid);
    if (gone)
        base_log(BASE_LOG_ERROR,
                 "this metaserver's GID is gone from the port, and agents cannot read the table: "
                 "give the network interface its address back (`ip addr`), or restart this with "
                 "another",
                 "gid=%s port=%u", gid, w->fab->caps.port_num);
    else
        base_log(BASE_LOG_INFO, "this metaserver's GID is back", "gid=%s", gid);
}

static void on_seen(struct fab_ctl *ctl)
{
    struct meta_address_watch *w = ctl->user;
    const struct fab_own_address *now = &ctl->address.now;
    const struct fab_caps *caps = &w->fab->caps;
    w->asking = false;
    if (ctl->status != 0 || w->stopping)
        return;
    note_gone(w, !now->has_gid);
    if (!now->has_gid)
        return;
    /* A subnet manager that has not said a LID yet will. */
    const uint16_t lid = now->lid != 0 ? now->lid : caps->lid;
    if (now->sgid_index == caps->sgid_index && lid == caps->lid)
        return;
    base_log(BASE_LOG_WARN, "this metaserver's address has moved",
             "index=%u before=%u lid=%u lid_before=%u", now->sgid_index, caps->sgid_index, lid,
             caps->lid);
    uint8_t gid[16];
    memcpy(gid, caps->gid, sizeof gid);
    fab_set_address(w->fab, gid, now->sgid_index, lid);
    w->moved(w->user);
}

void meta_address_watch_look(struct meta_address_watch *w)
{
    if (w->asking) {
        w->due_ns = 0; /* once more */
        return;
    }
    w->asking = true;
    w->ctl = (struct fab_ctl){.kind = FAB_QUERY_ADDRESS, .done = on_seen, .user = w};
    memcpy(w->ctl.address.gid, w->fab->caps.gid, sizeof w->ctl.address.gid);
    fab_submit(w->fab, &w->ctl);
}

void meta_address_watch_tick(struct meta_address_watch *w, uint64_t now_ns)
{
    if (now_ns < w->due_ns || w->asking)
        return;
    meta_address_watch_look(w);
    w->due_ns = now_ns + LOOK_NS;
}

void meta_address_watch_stop(struct meta_address_watch *w)
{
    w->stopping = true;
    while (w->asking)
        if (fab_run(w->fab) == 0)
            fab_wait(w->fab);
}
