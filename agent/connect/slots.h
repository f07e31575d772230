/* SPDX-License-Identifier: Apache-2.0 */
/* RC queue pairs that are made ahead, and rest between two lives. Control thread. */
#ifndef CONNECT_SLOTS_H
#define CONNECT_SLOTS_H

#include "agent/connector.h"
#include "fabric/reuse.h"
#include "schema/handshake.h"

enum slot_state {
    SLOT_EMPTY,
    SLOT_MAKING,
    SLOT_RESTING, /* in INIT, as long as packets of a former life may come in */
    SLOT_READY,   /* in INIT */
    SLOT_TAKEN,   /* a connection's */
    SLOT_CLEANING,
    SLOT_LEFT,     /* a connection's no longer, but for a change of state that is under way */
    SLOT_ENDING,   /* of no more use, and not destroyed yet */
    SLOT_DRAINING, /* in ERR, so that shared receives which it had taken complete */
};

struct slot {
    struct connector *c;
    struct slots *all;
    struct fab_qp *qp;
    uint8_t state; /* enum slot_state, moved by slot_move() alone */
    uint8_t busy;  /* of the following, those that are the fabric's */
    struct fab_ctl ctl, then;
    struct fab_reuse reuse; /* CLEANING */
    uint64_t rest_ns;       /* it is not used before; the lowest goes first */
    uint64_t drained_ns;    /* DRAINING: when it is put to RESET, once known; or 0 */
    int status;             /* of the first one that failed */
    void (*raised)(void *user, int status); /* while a connection raises it */
    void *user;
    void (*tried)(void *user, const struct fab_qp *qp, int status); /* ENDING; NULL: nobody asks */
    void *tried_user;
};

struct slot_change { /* of a queue pair's state */
    struct ibv_qp_attr attr;
    int mask;
};

struct slots { /* all of one kind */
    struct slot *at;
    uint32_t count, made, ready, resting, draining;
    bool initiators;
    uint64_t retry_ns; /* none is made before, since the last one failed */
    int status;        /* with which the last one failed */
    uint64_t taken_ns; /* when one last was, or 0 */
    uint32_t ending;   /* that the device refused to destroy, or is asked to destroy */
    uint64_t end_ns;   /* when it is asked to destroy them again */
};

int connector_slots_init(struct connector *c, struct slots *s, uint32_t count, bool initiators);
/* Those that are ahead when the connector begins: a part of a series, of one kind. */
int connector_slots_make_ahead(struct connector *c, struct slots *s, uint32_t over,
                               struct fab_ctl *ctl);
/* Those that have rested are ready. */
void connector_slots_wake(struct slots *s);
/* Keeps `ahead` of them ready; at least half of that while some are being taken. */
void connector_slots_refill(struct connector *c, struct slots *s);
/* The one that has rested for longest, or NULL. */
struct slot *connector_slot_take(struct slots *s);
/* Whether none is ready now, but one may soon be without anybody's leaving. */
bool connector_slots_may_come(const struct slots *s);
/* A change of state and another one (or NULL), then raised(user, status). */
void connector_slot_raise(struct slot *slot, const struct slot_change *rtr,
                          const struct slot_change *rts, void (*raised)(void *user, int status),
                          void *user);
/* The connection is over, and nobody uses it any more: made ready again, when nothing of it can
 * come in any more. raised() is not called any more. */
void connector_slot_leave(struct slot *slot);
/* Likewise, of one on which nothing was ever posted: it need not rest. */
void connector_slot_return(struct slot *slot);
/* Likewise; its initiator is gone without a word, and might still be repeating a request. */
void connector_slot_reclaim(struct slot *slot);
/* The connection is over, and what was posted may not be: it is destroyed, and another takes its
 * place. tried() hears of each try. */
void connector_slot_destroy(struct slot *slot,
                            void (*tried)(void *user, const struct fab_qp *qp, int status),
                            void *user);
struct slot *connector_slot_of(struct slots *s, const struct fab_qp *qp);
/* At the end, when nothing is under way: they are the device's to destroy. */
void connector_slots_retire(struct connector *c, struct slots *s);
/* INIT to RTR, towards a peer. */
struct slot_change connector_slot_rtr(const struct connector *c, const struct schema_handshake *h);

#endif
