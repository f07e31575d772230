/* SPDX-License-Identifier: Apache-2.0 */
/* A device's port as it is now. Devices tell of a changed MTU by no event, so it is asked now and
 * then: one control operation at a time. On the control thread. */
#ifndef FABRIC_PORT_H
#define FABRIC_PORT_H

#include "fabric/fabric.h"

struct fab_port_watch {
    struct fab *fab;
    struct fab_ctl ctl;
    bool asking; /* ctl is the fabric's: the struct must outlive it */
    uint64_t next_ns;
    enum ibv_mtu active; /* that the port takes now */
    enum ibv_mtu mtu;    /* that connections can be made with */
    /* It is another one than before. */
    void (*changed)(struct fab_port_watch *w, enum ibv_mtu before);
    void *user;
};

/* What the device had when it was opened, for a start. */
void fab_port_watch_init(struct fab_port_watch *w, struct fab *fab,
                         void (*changed)(struct fab_port_watch *w, enum ibv_mtu before),
                         void *user);
/* What there is to do about a port that is down, or that has not its GID any more, by what brings
 * it there: the end of a sentence. */
const char *fab_port_down_advice(const struct fab_caps *caps);
const char *fab_port_gid_advice(const struct fab_caps *caps);
/* Asks, unless it is being asked, at each multiple of two seconds of the caller's clock: whatever
 * else of the port has to be asked now and then is asked at the same time, so that a process that
 * sleeps is woken once for all of it. */
void fab_port_watch_tick(struct fab_port_watch *w, uint64_t now_ns);
/* When the next tick asks; UINT64_MAX: not before it has answered. */
uint64_t fab_port_watch_due_ns(const struct fab_port_watch *w);
/* The next of those times. */
uint64_t fab_port_next_look_ns(uint64_t now_ns);

#endif
