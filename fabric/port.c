/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/port.h"

static const uint64_t EVERY_NS = 2000000000;

uint64_t fab_port_next_look_ns(uint64_t now_ns)
{
    return (now_ns / EVERY_NS + 1) * EVERY_NS;
}

void fab_port_watch_init(struct fab_port_watch *w, struct fab *fab,
                         void (*changed)(struct fab_port_watch *w, enum ibv_mtu before), void *user)
{
    *w = (struct fab_port_watch){
        .fab = fab, .active = IBV_MTU_4096, .mtu = fab->caps.mtu, .changed = changed, .user = user};
}

static void on_answer(struct fab_ctl *ctl)
{
    struct fab_port_watch *w = ctl->user;
    const enum ibv_mtu before = w->mtu;
    w->asking = false;
    if (ctl->status != 0) /* events say what is wrong with it */
        return;
    w->active = ctl->port.active;
    w->mtu = ctl->port.mtu;
    if (w->mtu != before)
        w->changed(w, before);
}

uint64_t fab_port_watch_due_ns(const struct fab_port_watch *w)
{
    return w->asking ? UINT64_MAX : w->next_ns;
}

void fab_port_watch_tick(struct fab_port_watch *w, uint64_t now_ns)
{
    if (now_ns < fab_port_watch_due_ns(w))
        return;
    w->asking = true;
    w->next_ns = fab_port_next_look_ns(now_ns);
    w->ctl = (struct fab_ctl){.kind = FAB_QUERY_PORT, .done = on_answer, .user = w};
    fab_submit(w->fab, &w->ctl);
}

const char *fab_port_down_advice(const struct fab_caps *caps)
{
    return caps->is_ethernet ? "is the cable in, and the interface up (`ip link`)?"
                             : "is the cable in, and does a subnet manager run (`sminfo`)?";
}

const char *fab_port_gid_advice(const struct fab_caps *caps)
{
    return caps->is_ethernet
               ? "give the network interface its address back (`ip addr`)"
               : "have the subnet manager give the port that prefix again (`ibv_devinfo -v` shows "
                 "its GIDs)";
}
