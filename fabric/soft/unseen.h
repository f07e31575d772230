/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs and messages that are acknowledged, and that nobody at the responder sees yet. A responder
 * acknowledges what its NIC has; its processors, and requests of other queue pairs, may see the
 * memory as it was for some time. What makes it seen is what comes behind it on that queue pair and
 * completes there: a message's receive, an atomic (IBTA vol. 1, 9.5, o9-20), and a READ, which is
 * executed behind it (table 79). Asked for by KEDGE_SOFT_ORDER=unseen-writes (fabric.h), or it
 * never happens.
 *
 * A SEND is acknowledged when the NIC has it too, and a receive for it: that this has ended its
 * receiver may see later, and all that was written before by then.
 *
 * The owning thread's, but where it says otherwise. Invariant: while some of a queue pair are
 * unseen, all are of one target, and its WRITEs of one region, whose key is in shared->unseen, and
 * whoever quiesces it waits for them. Of a region that is deregistered first the rest is never
 * seen, nor is a receive of a queue pair that is gone. */
#ifndef SOFT_UNSEEN_H
#define SOFT_UNSEEN_H

#include "soft/deliver.h"
#include "soft/soft_qp.h"

enum { UNSEEN_MOST = 16, UNSEEN_BYTES = 16 * 1024 /* of one queue pair, at a time */ };

struct soft_unseen {
    uint32_t first, count; /* those that were seen, and all, since there were none */
    uint32_t used;         /* of data */
    uint32_t polls;        /* until the next one is seen */
    uint32_t qpn, pd, key; /* the target, and where to; key: 0: there are receives alone */
    uint64_t gid[2];
    soft_owner owner;
    struct soft_unseen_one {
        uint64_t to;
        uint32_t at, bytes;        /* in data */
        struct soft_cq_shared *cq; /* a receive's, which has taken its place; else NULL */
        struct soft_arrival arrival;
        bool solicited;
    } of[UNSEEN_MOST];
    uint8_t data[UNSEEN_BYTES];
};

static inline bool soft_has_unseen(const struct soft_qp *qp)
{
    return qp->unseen != NULL && qp->unseen->first != qp->unseen->count;
}

/* All of it is seen. No region is held by the queue pair then. Also the control thread, with the
 * CQ's qps_lock. */
void soft_unseen_end(struct soft_qp *qp);
/* The queue pair is polled: its next one may be seen. No region is held then. */
void soft_unseen_poll(struct soft_qp *qp);
/* wr, of so many bytes, goes to t behind it: what that makes seen is. Likewise. */
void soft_unseen_before(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                        uint32_t length);
/* Whether wr, a WRITE that its target takes, is kept to be seen later. */
bool soft_unseen_keep(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                      uint32_t length);

/* Whether m, which t's receive queue has taken well, is kept so that its completion in cq is seen
 * later. */
bool soft_unseen_keep_receive(struct soft_qp *qp, const struct soft_message *m,
                              const struct soft_target *t, struct soft_cq_shared *cq);

#endif
