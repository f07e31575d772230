/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/soft: one context's own structs, and what its files call of each other. */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include <stdatomic.h>

#include "fabric/provider.h"
#include "soft/layout.h"

/* A region of a peer as we know it, mapped: what its slot said while its key was valid, so that
 * checks and copy agree even if the slot is used again meanwhile. Lanes find it by slot; the
 * control thread unmaps it when it is stale and no queue pair is inside. */
struct soft_map {
    uint32_t key, pd;
    soft_owner owner;
    unsigned access;
    uint64_t addr, length;
    uint8_t *base; /* of the region's first byte */
    void *start;   /* of the mapping, or NULL in the owner's own process */
    size_t bytes;
    struct soft_map *next; /* in the list of all */
};

struct soft_event {
    struct kedge_fab_event event;
    struct soft_event *next;
};

struct soft_fab {
    struct kedge_fab base;
    struct soft_shared *shared;
    struct soft_context_shared *me;
    soft_owner owner;
    int fd; /* of the device file; holds the lock that says this context lives */
    int dir_fd;
    int ctl_efd;  /* control: readable when run() has something to do */
    int ctl_tfd;  /* a timer for what stays pending */
    int ctl_epfd; /* both */
    int event_efd;
    char dir[200];
    pthread_mutex_t lock; /* submitted, events, maps: never held across anything slow */
    struct kedge_fab_ctl *submitted, **submitted_tail;
    struct kedge_fab_ctl *pending; /* control thread: deregistrations that wait for a hazard */
    struct soft_event *events, **events_tail;
    struct soft_map *maps;
    _Atomic(struct soft_map *) map_of[SOFT_MRS];
    _Atomic(struct soft_qp *) qp_of[SOFT_QPS];
    _Atomic uint32_t objects; /* PDs, regions, ...: close() refuses while there are any */
    struct soft_watch *watch;
};

struct soft_pd {
    struct kedge_fab_pd base;
    uint32_t id;
    _Atomic uint32_t users;
};

struct soft_mr {
    struct kedge_fab_mr base;
    struct soft_mr_shared *shared;
};

struct soft_chan {
    struct kedge_fab_chan base;
    uint32_t number;
    int fifo;
    int timer;
    _Atomic uint32_t users;
};

/* A completion in the private ring: freed says how far the queue pair's send slots are given back
 * with it. */
struct soft_cqe {
    struct ibv_wc wc;
    uint32_t epoch;
    uint32_t freed;
    struct soft_qp_shared *qp;
};

struct soft_cq {
    struct kedge_fab_cq base;
    struct soft_cq_shared *shared;
    struct soft_chan *chan;    /* or NULL */
    struct soft_cqe *ring;     /* room entries, a power of two */
    uint32_t room, head, tail; /* the polling thread's */
    uint32_t attention;        /* the context's, as last seen */
    _Atomic uint32_t waiting;  /* queue pairs whose head waits for time or a peer */
    _Atomic uint32_t users;
    bool dead;
    pthread_mutex_t qps_lock; /* the list: control thread changes it, polls only try */
    struct soft_qp *qps;      /* that complete sends here */
};

struct soft_rq {
    struct soft_rq_shared *shared;
    uint32_t pd;
};

struct soft_srq {
    struct kedge_fab_srq base;
    struct soft_rq rq;
    _Atomic uint32_t users;
};

struct soft_ah {
    struct kedge_fab_ah base;
};

/* A request that could not be executed at the doorbell: a copy with its own SGEs and inline bytes.
 */
struct soft_pending {
    struct kedge_fab_wr wr;
    struct ibv_sge sge[SOFT_SGE];
    uint8_t dgid[16];
    uint8_t inline_data[SOFT_INLINE];
};

struct soft_qp {
    struct kedge_fab_qp base;
    struct soft_qp_shared *shared;
    struct soft_cq *send_cq;
    struct soft_rq rq; /* its own, or shared is NULL */
    struct soft_qp *next_in_cq;
    /* The owning thread's. */
    uint32_t posted; /* send slots taken, running; shared->sq_freed are given back */
    uint32_t pending_head, pending_tail;
    struct soft_pending *pending; /* pending_room of them, a power of two */
    uint32_t pending_room;
    bool waiting;         /* the head of pending waits; counted in the CQ */
    bool flushed;         /* the ERR state was seen and everything flushed */
    uint64_t deadline_ns; /* when the head gives up, UINT64_MAX: never; 0: not begun */
    uint64_t next_try_ns;
    uint32_t rnr_tries;
    uint32_t held; /* the key in shared->inside, kept over the requests of one doorbell */
    struct soft_qp_shared *target; /* last one used, with what named it */
    uint32_t target_qpn;
    soft_owner target_owner;
    struct soft_context_shared *target_context;
    const struct kedge_fab_ah *target_ah;
    /* From MODIFY. */
    uint8_t timeout, retry_cnt, rnr_retry;
};

struct soft_dct {
    struct kedge_fab_dct base;
    struct soft_qp_shared *shared;
    struct soft_cq *cq;
    struct soft_srq *srq;
};

static inline struct soft_fab *soft_of(const struct kedge_fab *fab)
{
    return (struct soft_fab *)fab;
}

static inline bool soft_context_lives(const struct soft_fab *f, soft_owner owner)
{
    return atomic_load_explicit(&f->shared->context[(uint32_t)owner - 1].owner,
                                memory_order_acquire) == owner;
}

/* device.c */
/* Whether the process of the context that `owner` names still lives, asked of the kernel. */
bool soft_owner_process_lives(const struct soft_fab *f, soft_owner owner);
/* Makes the memory of [at, at + bytes) of the shared tables exist. 0 or -ENOSPC. */
int soft_reserve(const struct soft_fab *f, const void *at, size_t bytes);
/* Ends a context whose process is gone, and takes back every slot that no living context owns. */
void soft_reclaim(struct soft_fab *f, soft_owner dead);
/* Claims a slot for this context: its index below count, or -ENOSPC. */
int64_t soft_claim(struct soft_fab *f, void *table, size_t slot_bytes, uint32_t count,
                   _Atomic uint32_t *high);

/* watch.c: marks contexts dead when their processes die. */
int soft_watch_start(struct soft_fab *f);
void soft_watch_stop(struct soft_fab *f);
/* Watches the context that owner names from now on; idempotent, any thread, no blocking call. */
void soft_watch_add(struct soft_fab *f, soft_owner owner);

/* mr.c */
int soft_mr_register(struct soft_fab *f, struct kedge_fab_ctl *ctl);
/* 0, or -EINPROGRESS while some process is inside. */
int soft_mr_deregister(struct soft_fab *f, struct kedge_fab_ctl *ctl);
/* Our own memory behind an SGE, or NULL. */
uint8_t *soft_mr_local(struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write);
enum soft_mr_status { SOFT_MR_OK, SOFT_MR_DENIED, SOFT_MR_GONE };
/* Enters a region of `owner` named by key for the queue pair's thread (hazard in
 * qp->shared->inside): OK and *at, which stays valid until soft_mr_leave(). */
enum soft_mr_status soft_mr_enter(struct soft_qp *qp, soft_owner owner, uint32_t pd, uint32_t key,
                                  uint64_t addr, uint64_t length, unsigned access, uint8_t **at);
void soft_mr_leave(struct soft_qp *qp);
/* Unmaps what is stale. Control thread. */
void soft_map_sweep(struct soft_fab *f, bool all);

/* states.c */
int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr,
                   int mask);

/* exec.c */
enum soft_outcome { SOFT_DONE, SOFT_WAIT_PEER, SOFT_WAIT_RNR, SOFT_WAIT_LOCK };
int soft_post_send(struct kedge_fab_qp *qp, struct kedge_fab_wr *wr, struct kedge_fab_wr **bad);
/* Goes on with what waits in the queue pair. */
void soft_qp_progress(struct soft_qp *qp);
/* The queue pair was found in ERR: flushes its queues. */
void soft_qp_flush(struct soft_qp *qp);
/* Puts the queue pair in ERR and flushes it. */
void soft_qp_break(struct soft_qp *qp);

/* deliver.c: SENDs and immediates into a peer's receive queue. */
struct soft_message {
    const struct ibv_sge *sg_list; /* the sender's, or inline */
    int num_sge;
    bool is_inline, solicited;
    uint32_t length;
    struct ibv_wc wc;        /* opcode, imm_data, wc_flags, src_qp; the rest is filled in */
    const uint8_t *grh_sgid; /* UD: the 40 bytes in front */
    const uint8_t *grh_dgid;
    bool write_imm; /* no payload: the bytes were written */
};
enum soft_outcome soft_deliver(struct soft_qp *qp, struct soft_qp_shared *target, soft_owner owner,
                               struct soft_message *m, enum ibv_wc_status *status);
int soft_post_recv(struct kedge_fab_qp *qp, struct kedge_fab_recv_wr *wr,
                   struct kedge_fab_recv_wr **bad);
int soft_post_srq_recv(struct kedge_fab_srq *srq, struct kedge_fab_recv_wr *wr,
                       struct kedge_fab_recv_wr **bad);
void soft_rq_flush(struct soft_fab *f, struct soft_qp *qp);

/* cq.c */
int soft_poll(struct kedge_fab_cq *cq, int n, struct ibv_wc *wc);
int soft_arm(struct kedge_fab_cq *cq, bool solicited_only);
void soft_chan_drain(struct kedge_fab_chan *chan);
/* A send's completion, on the CQ's own thread. */
void soft_cq_push(struct soft_qp *qp, const struct kedge_fab_wr *wr, enum ibv_wc_status status,
                  uint32_t freed);
/* A receive's, from any process, with cq's robust lock held. False: overflowed. */
bool soft_cq_append(struct soft_fab *f, struct soft_cq_shared *cq, const struct ibv_wc *wc,
                    bool solicited);
/* Wakes whoever waits for this CQ, if it is armed. */
void soft_cq_notify(struct soft_fab *f, struct soft_cq_shared *cq, bool solicited);
/* Kills a CQ: its queue pairs break. On its own thread. */
void soft_cq_overflow(struct soft_cq *cq);
/* A robust lock, only tried: 0 or -EBUSY. What a dead process left locked is taken over. */
int soft_trylock(pthread_mutex_t *lock);
int soft_make_lock(_Atomic uint32_t *made, pthread_mutex_t *lock);
void soft_cq_timer(struct soft_cq *cq);

/* control.c */
void soft_submit(struct kedge_fab *fab, struct kedge_fab_ctl *ctl);
int soft_run(struct kedge_fab *fab);
void soft_push_event(struct soft_fab *f, enum ibv_event_type type, void *object);
int soft_get_event(struct kedge_fab *fab, struct kedge_fab_event *out);

#endif
