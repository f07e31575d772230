/* SPDX-License-Identifier: Apache-2.0 */
#include "address_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/port.h"

/* ---- what is away */

void meta_address_watch_why(const struct meta_address_watch *w, char *why, size_t bytes)
{
    const struct fab_caps *caps = &w->fab->caps;
    char gid[BASE_GID_TEXT];
    why[0] = '\0';
    if (w->down)
        snprintf(why, bytes, "port %u of the device is down: %s", caps->port_num,
                 fab_port_down_advice(caps));
    else if (w->gone)
        snprintf(why, bytes,
                 "port %u has not the GID %s any more: %s, or restart this with another",
                 caps->port_num, base_gid_format(caps->gid, gid), fab_port_gid_advice(caps));
    else if (w->pkey_gone)
        snprintf(why, bytes,
                 "P_Key 0x%04x is not in the table of port %u any more: have the subnet manager "
                 "put the port into that partition",
                 w->pd->pkey, caps->port_num);
}

/* Says once what has become of one of them. */
static void note_away(struct meta_address_watch *w, bool *is, bool away, const char *what)
{
    char why[256];
    if (*is == away)
        return;
    *is = away;
    meta_address_watch_why(w, why, sizeof why);
    if (away)
        base_log(BASE_LOG_ERROR, "agents cannot read the table", "why=\"%s\"", why);
    else
        base_log(BASE_LOG_INFO, what, "port=%u why=\"%s\"", w->fab->caps.port_num, why);
    w->news(w->user);
}

void meta_address_watch_port(struct meta_address_watch *w, bool down)
{
    note_away(w, &w->down, down, "the device's port is up");
}

/* ---- where it is */

static void end_round(struct meta_address_watch *w)
{
    const bool moved = w->has_moved;
    w->asking = w->has_moved = false;
    if (moved)
        w->moved(w->user);
}

static void on_pkey(struct fab_ctl *ctl)
{
    struct meta_address_watch *w = ctl->user;
    const uint16_t before = w->pd->service.pkey_index, index = ctl->pkey.index;
    if (w->stopping) {
        w->asking = false;
        return;
    }
    if (ctl->status == 0)
        note_away(w, &w->pkey_gone, !ctl->pkey.there, "the table's P_Key is back");
    if (ctl->status == 0 && ctl->pkey.there && index != before) {
        base_log(BASE_LOG_WARN, "the table's P_Key is at another place of the port's",
                 "pkey=0x%04x index=%u before=%u", w->pd->pkey, index, before);
        fab_set_pkey_index(w->pd, index);
        w->has_moved = true;
    }
    end_round(w);
}

static void see_address(struct meta_address_watch *w, const struct fab_own_address *now)
{
    const struct fab_caps *caps = &w->fab->caps;
    meta_address_watch_port(w, !now->active);
    note_away(w, &w->gone, !now->has_gid, "this metaserver's GID is back");
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
    w->has_moved = true;
}

static void on_seen(struct fab_ctl *ctl)
{
    struct meta_address_watch *w = ctl->user;
    if (w->stopping) {
        w->asking = false;
        return;
    }
    if (ctl->status == 0)
        see_address(w, &ctl->address.now);
    if (w->pd == NULL || w->pd->pkey == 0) {
        end_round(w);
        return;
    }
    w->ctl = (struct fab_ctl){
        .kind = FAB_QUERY_PKEY, .done = on_pkey, .user = w, .pkey.pkey = w->pd->pkey};
    fab_submit(w->fab, &w->ctl);
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

uint64_t meta_address_watch_due_ns(const struct meta_address_watch *w)
{
    return w->asking ? UINT64_MAX : w->due_ns;
}

void meta_address_watch_tick(struct meta_address_watch *w, uint64_t now_ns)
{
    if (now_ns < meta_address_watch_due_ns(w))
        return;
    meta_address_watch_look(w);
    w->due_ns = fab_port_next_look_ns(now_ns);
}

void meta_address_watch_stop(struct meta_address_watch *w)
{
    w->stopping = true;
    while (w->asking)
        if (fab_run(w->fab) == 0)
            fab_wait(w->fab);
}
