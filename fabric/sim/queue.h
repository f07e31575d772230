/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues and receive queues. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "sim/sim_device.h"

struct sim_qp;

/* A completion; of a queue pair that was reset or destroyed since, it is void. */
struct sim_cqe {
    struct ibv_wc wc;
    const void *owner; /* the queue pair or DC target; NULL: void */
    uint32_t *freed;   /* not NULL: a send's; `slots` of its queue are over with it */
    uint32_t slots;
    uint64_t seen_ns; /* from when on it can be polled; 0: at once */
    bool solicited;
};

struct sim_cq {
    struct fab_cq base;
    struct sim_object object;
    struct sim_device *dev;
    struct sim_chan *chan; /* or NULL */
    struct sim_cqe *ring;  /* base.cqe of them */
    uint32_t head, tail;
    uint32_t shown; /* up to there they can be polled */
    uint32_t spare; /* so many can be posted before it could be too small */
    enum { SIM_DISARMED, SIM_ARMED_SOLICITED, SIM_ARMED } armed;
    bool dead;
    uint32_t users;
    /* Who uses it is to break, since it overflowed: by an event, so that nobody breaks in the
     * middle of something. */
    struct sim_event overflow;
    struct sim_event show; /* the next one that cannot be polled yet can be then */
};

struct sim_rqe {
    uint64_t wr_id;
    uint32_t num_sge;
    struct ibv_sge *sge;
};

/* A receive queue; of a queue pair or shared. */
struct sim_rq {
    struct sim_rqe *ring; /* max_wr of them; NULL: there is none */
    struct ibv_sge *sges;
    uint32_t max_wr, max_sge, head, tail;
    uint32_t promised; /* to messages that were accepted and are not executed yet */
};

struct sim_srq {
    struct fab_srq base;
    struct sim_object object;
    struct sim_rq rq;
    uint32_t users;
};

/* Adds a completion. Without room the queue overflows. */
void sim_cq_push(struct sim_cq *cq, const struct sim_cqe *e, bool solicited);
/* The queue is dead from now on, and says so. */
void sim_cq_kill(struct sim_cq *cq);
/* Completions of that owner are void. */
void sim_cq_void(struct sim_cq *cq, const void *owner);
/* As fab_poll(), but that no time goes by. */
int sim_cq_take(struct sim_cq *cq, int n, struct ibv_wc *wc);
/* What `show` does. */
void sim_cq_show(struct sim_event *e);
int sim_cq_arm(struct fab_cq *cq, bool solicited_only);
void sim_chan_drain(struct fab_chan *chan);

/* 0 or -ENOMEM. */
int sim_rq_init(struct sim_rq *rq, uint32_t max_wr, uint32_t max_sge);
void sim_rq_fini(struct sim_rq *rq);
int sim_rq_post(struct sim_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
/* The oldest receive; NULL: there is none. It stays until the next post. */
const struct sim_rqe *sim_rq_take(struct sim_rq *rq);
static inline bool sim_rq_has_one(const struct sim_rq *rq)
{
    return rq->tail - rq->head > rq->promised;
}

#endif
