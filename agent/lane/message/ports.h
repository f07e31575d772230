/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: which VQP hears what is sent to a number of a tenant's at this endpoint
 * (docs/messages.md#what-a-worker-sees). Private to agent/lane, and the lane thread's. Pure.
 *
 * A port is of one VQP at a time, and of its tenant: the same number of two tenants is two ports.
 * Bounded: so many in all, and of one session, which the caller counts, as many as it has VQPs. */
#ifndef LANE_PORTS_H
#define LANE_PORTS_H

#include <stdint.h>

struct port {
    uint32_t tenant, number;
    uint32_t session;     /* whose VQP it is, and */
    uint16_t vqp;         /* which one */
    uint32_t next;        /* place + 1 in its bucket, or of the next that is free */
    uint32_t next_of_vqp; /* likewise, of those that its VQP has joined */
};

struct ports {
    struct port *port;
    uint32_t *bucket; /* place + 1 of the first */
    uint32_t most, mask, used, free;
    uint32_t unbound; /* so often was one given back: while it is the same, so is whose each is */
    uint64_t seed;    /* workers choose numbers: nobody can choose such as are in one bucket */
};

/* Room for `most`, 1 to 2^20. 0 or -ENOMEM. */
int lane_ports_init(struct ports *p, uint32_t most, uint64_t seed);
void lane_ports_free(struct ports *p);
/* 0; -EADDRINUSE: another VQP has it; -EALREADY: this one has it; -EDQUOT: all are in use. */
int lane_port_bind(struct ports *p, uint32_t tenant, uint32_t number, uint32_t session,
                   uint16_t vqp);
/* NULL: nobody hears it. Until the next bind or unbind. */
const struct port *lane_port_find(const struct ports *p, uint32_t tenant, uint32_t number);
/* It is nobody's any more; it is in no list. One that nobody has: nothing. */
void lane_port_unbind(struct ports *p, uint32_t tenant, uint32_t number);

/* The list of a VQP's ports, of which *list is the first, 0 where it has none: one that it has
 * bound is put in front. */
void lane_port_join(struct ports *p, uint32_t tenant, uint32_t number, uint32_t *list);
/* All of that list are nobody's any more, without a look at any other. Returns how many it were. */
uint32_t lane_ports_unbind_all(struct ports *p, uint32_t *list);

#endif
