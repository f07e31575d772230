/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues: filling them, and the queue pairs whose head waits. poll.h empties them. */
#ifndef SOFT_CQ_H
#define SOFT_CQ_H

#include <sys/queue.h>

#include "soft/pieces.h"
#include "soft/soft.h"

struct soft_chan;

/* A completion in the private ring: freed says how far the queue pair's send slots are given back
 * with it. */
struct soft_cqe {
    struct ibv_wc wc;
    uint32_t epoch;
    uint32_t freed;
    struct soft_qp_shared *qp;
};

/* The polling thread's, but where it says otherwise. */
struct soft_cq {
    struct fab_cq base;
    struct soft_cq_shared *shared;
    struct soft_chan *chan; /* or NULL */
    struct soft_cqe *ring;  /* room entries, a power of two */
    uint32_t room, head, tail;
    uint32_t attention;       /* the context's, as last seen */
    _Atomic uint32_t waiting; /* queue pairs whose head waits for time, a peer or its turn */
    struct soft_pace pace;    /* of their long requests */
    bool yielded;             /* the last poll left them for those that were complete */
    bool busy;                /* somebody waited for its turn when the last poll was over */
    bool dead;
    uint32_t looked; /* at queue pairs that wait, so far: what polls cost beside that */
    _Atomic(struct soft_qp *) begun; /* to wait, since the list was last looked at; newest first */
    _Atomic uint32_t users;          /* control thread */
    pthread_mutex_t qps_lock; /* the lists: the control thread waits for it, polls only try */
    TAILQ_HEAD(soft_waiters, soft_qp)
    waiters;             /* whose head waits, or waited not long ago; in turns */
    struct soft_qp *qps; /* all that complete sends here */
};

/* A send's completion, on the CQ's own thread; freed: how many send slots are over with it. */
void soft_cq_push(struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status status,
                  uint32_t freed);
/* A receive's, from any process, with cq's robust lock held. False: no room. */
bool soft_cq_append(struct soft_cq_shared *cq, const struct soft_arrival *a);
/* Whether a receive's completion has no room, which kills the CQ. With cq's robust lock held. */
bool soft_cq_is_full(struct soft_cq_shared *cq);
/* The CQ is dead: its queue pairs break, and their owner is told. On its own thread. */
void soft_cq_kill(struct soft_cq *cq);

/* The queue pair's head begins to wait: polls look at it from now on. The owning thread. */
void soft_cq_await(struct soft_qp *qp);
/* Those that have begun to wait are among the waiters. With qps_lock. */
void soft_cq_gather(struct soft_cq *cq);

/* 0, or -EINVAL: it has no channel. Its own thread. */
int soft_arm(struct fab_cq *cq, bool solicited_only);
/* An armed CQ's channel also becomes readable when something that waits is due. Its own thread. */
void soft_cq_timer(struct soft_cq *cq);
/* The same in a moment: somebody held a lock that polls only try, so that this one left something.
 * Its own thread. */
void soft_cq_look_again(struct soft_cq *cq);

#endif
