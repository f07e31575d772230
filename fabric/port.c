/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/port.h"

static const uint64_t EVERY_NS = 1000000000;

void kedge_fab_port_watch_init(struct kedge_fab_port_watch *w, struct kedge_fab *fab,
                               void (*changed)(struct kedge_fab_port_watch *w, enum ibv_mtu before),
                               void *user)
{
    *w = (struct kedge_fab_port_watch){
        .fab = fab, .active = IBV_MTU_4096, .mtu = fab->caps.mtu, .changed = changed, .user = user};
}

static void on_answer(struct kedge_fab_ctl *ctl)
{
    struct kedge_fab_port_watch *w = ctl->user;
    const enum ibv_mtu before = w->mtu;
    w->asking = false;
    if (ctl->status != 0) /* events say what is wrong with it */
        return;
    w->active = ctl->port.active;
    w->mtu = ctl->port.mtu;
    if (w->mtu != before)
        w->changed(w, before);
}

void kedge_fab_port_watch_tick(struct kedge_fab_port_watch *w, uint64_t now_ns)
{
    if (w->asking || now_ns < w->next_ns)
        return;
    w->asking = true;
    w->next_ns = now_ns + EVERY_NS;
    w->ctl = (struct kedge_fab_ctl){.kind = KEDGE_FAB_QUERY_PORT, .done = on_answer, .user = w};
    kedge_fab_submit(w->fab, &w->ctl);
}
