/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair as its owner has it: what waits in it, and whom it has reached before.
 *
 * Fields are the owning thread's, but where it says otherwise; the control thread touches them
 * while no lane does. */
#ifndef SOFT_QP_H
#define SOFT_QP_H

#include <sys/queue.h>

#include "soft/cq.h"
#include "soft/recv.h"
#include "soft/soft.h"

/* A request that could not be executed at the doorbell: a copy with its own SGEs and inline bytes.
 */
struct soft_pending {
    struct fab_wr wr;
    uint64_t kept_ns;
    enum ibv_wc_status status; /* executed: its completion's, when its turn comes */
    bool executed;             /* before what stands before it */
    uint32_t ahead;            /* a READ or an atomic: how many may be out before it */
    bool late;                 /* held back, so that others may come before it */
    bool overtaken;            /* and one did */
    struct ibv_sge sge[SOFT_SGE];
    uint64_t dgid[2];
    uint8_t inline_data[SOFT_INLINE];
};

/* A queue pair or DC target that was reached before, with what named it. */
struct soft_target {
    struct soft_qp_shared *qp; /* NULL: nothing */
    uint32_t qpn;
    soft_owner owner;
    struct soft_context_shared *context;
    uint64_t gid[2];
};

struct soft_qp {
    struct fab_qp base;
    struct soft_qp_shared *shared;
    struct soft_cq *send_cq;
    struct soft_rq rq; /* its own, or shared is NULL */
    struct soft_qp *next_in_cq;
    TAILQ_ENTRY(soft_qp) by_turn; /* of the CQ's waiters */
    struct soft_qp *next_begun;   /* of those that have just begun to wait */
    bool listed;                  /* in one of these two lists: set by the owning thread alone */
    uint32_t posted;              /* send slots taken, running; shared->sq_freed are given back */
    uint32_t pending_head, pending_tail;
    struct soft_pending *pending; /* pending_room of them, a power of two */
    uint32_t pending_room;
    bool waiting;                /* the head of pending waits; counted in the CQ */
    bool flushed;                /* the ERR state was seen and everything flushed */
    uint64_t deadline_ns;        /* when the head gives up, UINT64_MAX: never; 0: not begun */
    enum soft_outcome waits_for; /* with the deadline */
    uint64_t next_try_ns;
    uint32_t moved;      /* bytes of the head so far */
    uint32_t quiesces;   /* of the head's region, when it began */
    uint64_t resumed_ns; /* the end of the last wait for a receive or a turn: bounds count from
                          * there */
    uint32_t rnr_tries;
    uint32_t held, held_local; /* the keys in shared->inside, kept over one doorbell's requests */
    uint64_t held_ns;          /* a time since when they have been held; 0: not looked at */
    uint32_t vendor_err;       /* of the next completion with an error */
    struct soft_target targets[8]; /* by number; an RC queue pair uses the first */
    uint32_t reads, reads_over;    /* READs and atomics: posted, and no longer out; running */
    uint32_t read_at[SOFT_READS];  /* where each is that is out, as `posted` counts */
    uint32_t ahead;                /* of those, how many are before what is executed now */
    bool late_order;               /* READs and atomics may be overtaken (order.c) */
    bool late_writes;              /* and WRITEs by WRITEs and SENDs */
    uint32_t held_polls;           /* for so many more the head is held back for that */
    struct base_prng order;
    struct soft_unseen *unseen; /* NULL: its WRITEs are seen before they are acknowledged */
    /* From MODIFY. */
    uint8_t timeout, retry_cnt, rnr_retry, max_reads;
    struct soft_model_qp *model; /* NULL: the device has no model */
};

static inline uint32_t soft_pd_of(const struct soft_qp *qp)
{
    return ((const struct soft_pd *)qp->base.pd)->id;
}

static inline struct soft_pending *soft_pending_at(const struct soft_qp *qp, uint32_t index)
{
    return &qp->pending[index & (qp->pending_room - 1)];
}

#endif
