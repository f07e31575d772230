/* SPDX-License-Identifier: Apache-2.0 */
/* RC: the queue pairs that metaservers' tables are READ through. Control thread. */
#ifndef CONTROL_TABLE_INITIATORS_H
#define CONTROL_TABLE_INITIATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "fabric/reuse.h"

struct fab_qp;
struct pool;
struct registration;

/* A metaserver's own: two, so that one can be in use while the next is made. */
struct table_initiator {
    struct registration *registration;
    enum table_initiator_state {
        INITIATOR_CLEANING, /* or just made; qp may be NULL meanwhile, and while FAILED */
        INITIATOR_READY,    /* in INIT */
        INITIATOR_OFFERED,  /* the metaserver is asked to connect to it */
        INITIATOR_RAISING,
        INITIATOR_UP, /* the lane's */
        INITIATOR_FAILED,
    } state;
    uint64_t again_ns; /* FAILED: when it is cleaned again */
    uint32_t failures; /* of cleaning, on end */
    uint64_t rest_ns;  /* READY, and not offered before: packets of its former life may come in */
    struct fab_qp *qp;
    uint32_t psn;
    uint8_t step; /* of what is under way */
    uint8_t reads;
    struct fab_ctl ctl;
    struct fab_reuse reuse;                                         /* while CLEANING */
    struct ibv_qp_attr rtr;                                         /* while RAISING */
    void (*tried)(void *user, const struct fab_qp *qp, int status); /* while CLEANING; or NULL */
};

/* What a metaserver says of its end. */
struct table_initiator_peer {
    uint8_t gid[16];
    uint32_t qpn, psn;
    uint16_t lid;
    enum ibv_mtu mtu; /* the path's */
    uint8_t reads;    /* that it may have out at a time */
};

/* A part of the series that makes the device objects of a pool (fabric/series.h). */
int agent_table_initiators_make(void *pool, uint32_t over, struct fab_ctl *ctl);
/* One to offer, with a new PSN; NULL: none is ready yet. */
struct table_initiator *agent_table_initiator_offer(struct registration *r);
/* None is, but one only rests: in how many milliseconds it has; else 0. */
uint64_t agent_table_initiator_rests_ms(const struct registration *r);
/* The metaserver did not connect to it. */
void agent_table_initiator_withdraw(struct table_initiator *initiator);
/* It is up, and of no use. */
void agent_table_initiator_drop(struct table_initiator *initiator);
/* It did; agent_registration_initiator_up() follows. */
void agent_table_initiator_raise(struct table_initiator *initiator,
                                 const struct table_initiator_peer *peer);
/* Now and then: brings up what has rested, and tries again what could not be repaired. */
void agent_table_initiators_tick(struct pool *p);
uint64_t agent_table_initiators_due_ns(const struct pool *p);
/* That which has the queue pair; NULL: none has. */
const struct table_initiator *agent_table_initiator_of(const struct registration *r,
                                                       const struct fab_qp *qp);
/* The lane is done with a queue pair. False: it is no table initiator's. */
bool agent_table_initiator_done(struct pool *p, const struct fab_qp *qp);
/* The lane has it still, with requests out, and the device does not put it to ERR: it is destroyed,
 * and tried() hears how that went, each time that it is tried: -errno until it is 0. False: it is
 * no table initiator's. */
bool agent_table_initiator_destroy(struct pool *p, const struct fab_qp *qp,
                                   void (*tried)(void *user, const struct fab_qp *qp, int status));
void agent_table_initiators_stop(struct pool *p);

#endif
