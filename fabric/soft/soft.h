/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/soft: one context's own structs, and what its files call of each other.
 *
 * Threads: lanes post and poll; the control thread runs control operations; the watcher marks
 * contexts dead. A lane never waits for another thread or process: whatever lock it finds taken, it
 * tries again at its next poll. */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>

#include "base/random.h"
#include "fabric/events.h"
#include "fabric/provider.h"
#include "soft/layout.h"

/* A region of a peer as we know it, mapped: what its slot said while its key was valid, so that
 * checks and copy agree even if the slot is used again meanwhile. Lanes find it by slot; the
 * control thread unmaps it when it is stale and no queue pair is inside. */
struct soft_map {
    uint32_t key, pd;
    uint64_t identity;
    soft_owner owner;
    unsigned access;
    uint64_t addr, length;
    uint8_t *base; /* of the region's first byte */
    void *start;   /* of the mapping, or NULL in the owner's own process */
    size_t bytes;
    struct soft_map *next; /* in the list of all */
};

/* The control thread's: keys that were given back, for the next regions, where that was asked for.
 */
enum { SOFT_KEYS = 64, SOFT_DIR_BYTES = 200 };
struct soft_keys {
    bool come_back, seeded;
    struct base_prng prng;
    uint32_t count;
    uint16_t index[SOFT_KEYS]; /* the last one on top */
};

/* The control thread's: how unkind the order is (order.c). */
struct soft_order {
    bool late, writes;
    uint64_t seed;
    uint32_t queue_pairs; /* so far: each draws from numbers of its own */
};

struct soft_fab {
    struct fab base;
    struct soft_shared *shared;
    struct soft_context_shared *me;
    soft_owner owner;
    int fd; /* of the device file; holds the lock that says this context lives */
    int dir_fd;
    int ctl_efd;  /* control: readable when run() has something to do */
    int ctl_tfd;  /* a timer for what stays pending */
    int ctl_epfd; /* both */
    char dir[SOFT_DIR_BYTES];
    uint32_t chans;       /* control thread: numbers given to channels */
    pthread_mutex_t lock; /* submitted, maps, qp_of's changes: never held for long */
    struct fab_ctl *submitted, **submitted_tail;
    struct fab_ctl *pending; /* control thread: what waits for another process */
    struct fab_events events;
    struct soft_map *maps;
    uint32_t swept; /* control thread: shared->mr_retired at the last sweep */
    struct soft_keys keys;
    struct soft_order order;
    _Atomic(struct soft_map *) map_of[SOFT_MRS];
    _Atomic(struct soft_qp *) qp_of[SOFT_QPS];
    _Atomic uint32_t objects; /* PDs, regions, ...: close() refuses while there are any */
    struct soft_watch *watch;
};

struct soft_pd {
    struct fab_pd base;
    uint32_t id;
    _Atomic uint32_t users;
};

struct soft_mr {
    struct fab_mr base;
    struct soft_mr_shared *shared;
};

struct soft_chan {
    struct fab_chan base;
    uint32_t number;
    int fifo;
    int timer;
    _Atomic uint64_t due_ns; /* what the timer is set to; 0: not set */
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
    struct fab_cq base;
    struct soft_cq_shared *shared;
    struct soft_chan *chan;    /* or NULL */
    struct soft_cqe *ring;     /* room entries, a power of two */
    uint32_t room, head, tail; /* the polling thread's */
    uint32_t attention;        /* the context's, as last seen */
    _Atomic uint32_t waiting;  /* queue pairs whose head waits for time, a peer or its turn */
    uint32_t polls;            /* so far, while somebody waited */
    uint32_t whole;            /* bytes of requests that were moved at once, running; */
    uint32_t whole_seen;       /* as it was when it was last looked at, */
    uint64_t whole_ns;         /* and when it had grown */
    uint32_t allowed_at;       /* before which poll long ones were given their allowance: */
    uint32_t allowance;        /* so many bytes more may be moved until that is over */
    bool yielded;              /* the last poll left them for those that were complete */
    bool busy;                 /* somebody waited for its turn when the last poll was over */
    uint32_t looked;           /* at queue pairs that wait, so far: what polls cost beside that */
    _Atomic(struct soft_qp *) begun; /* to wait, since the list was last looked at; newest first */
    _Atomic uint32_t users;
    bool dead;
    pthread_mutex_t qps_lock; /* the lists: the control thread waits for it, polls only try */
    TAILQ_HEAD(soft_waiters, soft_qp)
    waiters;             /* whose head waits, or waited not long ago; in turns */
    struct soft_qp *qps; /* all that complete sends here */
};

struct soft_rq {
    struct soft_rq_shared *shared;
};

struct soft_srq {
    struct fab_srq base;
    struct soft_rq rq;
    _Atomic uint32_t users;
};

struct soft_ah {
    struct fab_ah base;
};

/* A request that could not be executed at the doorbell: a copy with its own SGEs and inline bytes.
 */
struct soft_pending {
    struct fab_wr wr;
    uint64_t kept_ns;
    enum ibv_wc_status status; /* executed: its completion's, when its turn comes */
    bool executed;             /* before what stands before it */
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
    TAILQ_ENTRY(soft_qp) by_turn; /* among the CQ's waiters, */
    struct soft_qp *next_begun;   /* or before that; */
    bool listed;                  /* in one of the two: set by the owning thread alone */
    /* The owning thread's. */
    uint32_t posted; /* send slots taken, running; shared->sq_freed are given back */
    uint32_t pending_head, pending_tail;
    struct soft_pending *pending; /* pending_room of them, a power of two */
    uint32_t pending_room;
    bool waiting;         /* the head of pending waits; counted in the CQ */
    bool flushed;         /* the ERR state was seen and everything flushed */
    uint64_t deadline_ns; /* when the head gives up, UINT64_MAX: never; 0: not begun */
    int waits_for;        /* enum soft_outcome, with the deadline */
    uint64_t next_try_ns;
    uint32_t moved;      /* bytes of the head so far */
    uint32_t fences;     /* of the head's region, when it began */
    uint64_t resumed_ns; /* the end of the last wait for a receive or a turn: bounds count from
                          * there */
    uint32_t rnr_tries;
    uint32_t held, held_local; /* the keys in shared->inside, kept over one doorbell's requests */
    uint64_t held_ns;          /* a time since when they have been held; 0: not looked at */
    uint32_t vendor_err;       /* of the next completion with an error */
    struct soft_target targets[8]; /* by number; an RC queue pair uses the first */
    bool late_order;               /* READs and atomics may be overtaken (order.c) */
    bool late_writes;              /* and WRITEs by WRITEs and SENDs */
    uint32_t held_polls;           /* for so many more the head is held back for that */
    struct base_prng order;
    /* From MODIFY. */
    uint8_t timeout, retry_cnt, rnr_retry;
};

struct soft_dct {
    struct fab_dct base;
    struct soft_qp_shared *shared;
    struct soft_cq *cq;
    struct soft_srq *srq;
};

static inline struct soft_fab *soft_of(const struct fab *fab)
{
    return (struct soft_fab *)fab;
}

static inline uint32_t soft_pd_of(const struct soft_qp *qp)
{
    return ((const struct soft_pd *)qp->base.pd)->id;
}

static inline bool soft_context_lives(const struct soft_fab *f, soft_owner owner)
{
    return atomic_load_explicit(&f->shared->context[(uint32_t)owner - 1].owner,
                                memory_order_acquire) == owner;
}

/* A GID as two words, so that it can be read while somebody writes it. */
static inline void soft_gid_words(const uint8_t gid[16], uint64_t words[2])
{
    memcpy(words, gid, 16);
}
static inline bool soft_gid_is(const _Atomic uint64_t shared[2], const uint64_t words[2])
{
    return atomic_load_explicit(&shared[0], memory_order_relaxed) == words[0] &&
           atomic_load_explicit(&shared[1], memory_order_relaxed) == words[1];
}

/* tables.c */
/* The first free slot of a table at or after `from` becomes this context's: its index below count,
 * or -ENOSPC. The first `bytes` of it exist in memory then. */
int64_t soft_claim(struct soft_fab *f, void *table, size_t slot_bytes, size_t bytes, uint32_t count,
                   uint32_t from, _Atomic uint32_t *high);
/* Makes the memory of [at, at + bytes) of the shared tables exist: what a full tmpfs refuses is an
 * error here and not a SIGBUS later. 0 or -errno. */
int soft_reserve(const struct soft_fab *f, const void *at, size_t bytes);

/* locks.c */
/* Both locks are only ever tried: 0 or -EBUSY. What a dead process left half done is finished. */
int soft_rq_trylock(struct soft_fab *f, struct soft_rq_shared *rq);
int soft_cq_trylock(struct soft_fab *f, struct soft_cq_shared *cq);
void soft_unlock(pthread_mutex_t *lock);
int soft_make_lock(_Atomic uint32_t *made, pthread_mutex_t *lock);

/* context.c */
/* A context for this process, with the open lock held; what dead ones left is taken back. */
struct base_errbuf;
int soft_context_take(struct soft_fab *f, const uint8_t gid[16], struct base_errbuf *err);
/* Locks or unlocks a byte of the device file, without waiting. 0 or -errno. */
int soft_lock_byte(int fd, off_t byte, bool lock);
/* Whether the process of the context that `owner` names still lives, asked of the kernel. */
bool soft_owner_process_lives(const struct soft_fab *f, soft_owner owner);
/* Ends the context `dead` (0: none), and takes back every slot that no living context owns. */
void soft_reclaim(struct soft_fab *f, soft_owner dead);

/* watch.c: marks contexts dead when their processes die. */
int soft_watch_start(struct soft_fab *f);
void soft_watch_stop(struct soft_fab *f);
/* Watches the context that owner names from now on; idempotent, any thread. False: it is dead, or
 * cannot be watched just now. */
bool soft_watch_add(struct soft_fab *f, soft_owner owner);

/* keys.c */
/* Reads KEDGE_SOFT_KEYS (fabric.h). 0, or -EINVAL with a sentence. */
int soft_keys_init(struct soft_keys *k, struct base_errbuf *err);
/* The slot of a region that is gone, whose keys the next one has; -ENOENT: it has new ones. */
int64_t soft_keys_next(struct soft_keys *k);
void soft_keys_give(struct soft_keys *k, uint32_t index);

/* mr.c, maps.c, hazards.c */
int soft_mr_register(struct soft_fab *f, struct fab_ctl *ctl);
/* 0, or -EINPROGRESS while some thread is inside. */
int soft_mr_deregister(struct soft_fab *f, struct fab_ctl *ctl);
/* 0, or -EINPROGRESS while somebody is inside who was when it was first called. */
int soft_mr_fence(struct soft_fab *f, struct fab_ctl *ctl);
/* Whether an SGE is our own memory, in this PD, in bounds. Between soft_hold() and soft_mr_leave()
 * it then stays. */
bool soft_mr_is_local(const struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write);
enum soft_mr_status { SOFT_MR_OK, SOFT_MR_DENIED, SOFT_MR_GONE, SOFT_MR_FAILED };
/* Enters a region of `owner` named by key for the queue pair's thread: OK and *at, which stays
 * valid until soft_mr_leave() or until another region is entered. FAILED: it could not be mapped,
 * for qp->vendor_err's reason. */
enum soft_mr_status soft_mr_enter(struct soft_qp *qp, soft_owner owner, uint32_t pd, uint32_t key,
                                  uint64_t addr, uint64_t length, unsigned access, uint8_t **at);
/* Unmaps what is stale, or all. Control thread. */
void soft_map_sweep(struct soft_fab *f, bool all);

/* Where an SGE of a request is in our own process. It is of a region of ours that is held. */
static inline uint8_t *soft_local_at(const struct soft_fab *f, const struct fab_wr *wr, int i)
{
    const struct ibv_sge *sge = &wr->sg_list[i];
    uint64_t shift =
        wr->send_flags & IBV_SEND_INLINE ? 0 : f->shared->mr[sge->lkey & (SOFT_MRS - 1)].shift;
    return (uint8_t *)(uintptr_t)(sge->addr + shift);
}

/* Publishes which regions this thread is about to look at. Fenced: what is valid afterwards stays.
 */
static inline void soft_hold(struct soft_qp *qp, uint32_t key, uint32_t local)
{
    if (qp->held == key && qp->held_local == local)
        return;
    qp->held = key;
    qp->held_local = local;
    qp->held_ns = 0;
    atomic_store_explicit(&qp->shared->inside, key, memory_order_release);
    atomic_store_explicit(&qp->shared->inside_local, local, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static inline void soft_mr_leave(struct soft_qp *qp)
{
    if ((qp->held | qp->held_local) == 0)
        return;
    qp->held = qp->held_local = 0;
    atomic_store_explicit(&qp->shared->inside, 0, memory_order_release);
    atomic_store_explicit(&qp->shared->inside_local, 0, memory_order_release);
    atomic_store_explicit(&qp->shared->left,
                          atomic_load_explicit(&qp->shared->left, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* The same, but for a fence it is still in there when its head goes on some other time. */
void soft_mr_step_out(struct soft_qp *qp);

/* So many bytes of the head are done, with its regions held, and the rest is for later: it steps
 * out. */
void soft_mr_pause(struct soft_qp *qp, const struct fab_key *key, uint32_t moved);
/* Of a head that was paused, however it ended, there is nothing more to come. */
void soft_mr_resign(struct soft_qp *qp);

/* copy.c */
/* Copies as a device does, racing with whoever uses the memory too early. Aligned 1, 2, 4 and 8
 * bytes are copied whole. Ranges may overlap. */
void soft_copy(uint8_t *to, const uint8_t *from, size_t n);

/* states.c */
/* 0, -EINVAL, or -EINPROGRESS while a sender is inside its receive queue. */
int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr,
                   int mask);
/* qp_error.c */
/* Puts a queue pair in ERR from whatever state but RESET, if it still has this number. `cause` is
 * the event that its owner gets. False: nothing changed. */
bool soft_qp_to_err(struct soft_qp_shared *s, uint32_t qpn, enum ibv_event_type cause);
/* A queue pair of ours is in ERR: those who poll its CQs flush it, and are woken for that. */
void soft_qp_attend(struct soft_fab *f, struct soft_qp *qp);
/* Breaks the peer's RC queue pair, whose owner learns of it at its next poll. */
void soft_break_peer(struct soft_qp *qp, const struct soft_target *t, enum ibv_event_type cause);

/* exec.c */
enum {
    SOFT_WHOLE = 4096,    /* bytes of a request that is moved at once */
    SOFT_TURN = 1024,     /* that longer ones of all queue pairs move from poll to poll, or as many
                           * as the others did, */
    SOFT_QUIET_NS = 1000000,  /* or more, if there was no other one for so long: a byte for each */
    SOFT_ALONE_NS = 2,        /* of these since, about a twentieth of what it takes to move them, */
    SOFT_ALONE_MOST = 1 << 21 /* and no more than these */
};
enum soft_outcome { SOFT_DONE, SOFT_WAIT_PEER, SOFT_WAIT_RNR, SOFT_WAIT_LOCK, SOFT_WAIT_TURN };
/* Executes a request now, or a piece of it, or says what it waits for. dgid: the address handle's,
 * or NULL. One of more than SOFT_WHOLE bytes goes on, where qp->moved says, when it is called
 * again. */
enum soft_outcome soft_execute(struct soft_qp *qp, const struct fab_wr *wr, const uint64_t dgid[2],
                               enum ibv_wc_status *status);
/* pieces.c: how much long requests may still move until the next poll is over: little, for the sake
 * of short ones, and more where there are none. */
uint32_t soft_allowance(struct soft_cq *cq);
/* Of one that is longer than SOFT_WHOLE the next piece, its regions being held. */
enum soft_outcome soft_move_in_turns(struct soft_qp *qp, const struct fab_wr *wr, uint8_t *remote,
                                     uint32_t length, enum ibv_wc_status *status);
/* Whether its time is over, if it has one; then *status. In the middle a READ may begin anew, while
 * of a WRITE a part is done. */
bool soft_has_no_time(const struct soft_qp *qp, const struct fab_wr *wr,
                      enum ibv_wc_status *status);
static inline bool soft_is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
/* one_sided.c: the remote side of a one-sided request: checked and carried out. */
enum soft_outcome soft_one_sided(struct soft_qp *qp, const struct fab_wr *wr,
                                 const struct soft_target *t, uint32_t length,
                                 enum ibv_wc_status *status);

/* order.c */
static inline struct soft_pending *soft_pending_at(const struct soft_qp *qp, uint32_t index)
{
    return &qp->pending[index & (qp->pending_room - 1)];
}
/* Reads KEDGE_SOFT_ORDER. 0, or -EINVAL with a sentence. */
int soft_order_init(struct soft_order *order, struct base_errbuf *err);
/* Of a new queue pair. */
void soft_order_begin(struct soft_fab *f, struct soft_qp *qp);
/* Whether a request that could be executed at once waits for others to overtake it. */
bool soft_order_holds_back(struct soft_qp *qp, const struct fab_wr *wr);
/* Executes the last of those that wait, if it may overtake all of them. */
void soft_order_overtake(struct soft_qp *qp);

/* sendq.c */
int soft_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
/* Goes on with what waits in the queue pair. */
void soft_qp_progress(struct soft_qp *qp);
/* The queue pair was found in ERR: flushes its queues, and tells who broke it. */
void soft_qp_flush(struct soft_qp *qp);

/* deliver.c: SENDs and immediates into a peer's receive queue. */
struct soft_message {
    const struct fab_wr *wr;
    uint32_t length;
    struct soft_arrival arrival; /* opcode, imm_data, wc_flags, src_qp; the rest is filled in */
    const uint64_t *grh_dgid;    /* UD: 40 bytes in front */
    bool write_imm;              /* no payload: the bytes are written */
};
enum soft_outcome soft_deliver(struct soft_qp *qp, const struct soft_target *t,
                               struct soft_message *m, enum ibv_wc_status *status);

/* recv.c: receive queues */
/* Appends receives: 0, or -ENOMEM or -EINVAL with *bad. The owning thread. */
int soft_rq_post(struct soft_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int soft_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
/* Flushes a broken queue pair's own receives. False: somebody is inside, try again. */
bool soft_rq_flush(struct soft_fab *f, struct soft_qp *qp);
/* The slot's index + 1, or -errno. */
int soft_rq_claim(struct soft_fab *f, struct soft_rq *rq, uint32_t max_wr, uint32_t max_sge);
/* Gives the slot back, or -EBUSY while a sender is inside. */
int soft_rq_release(struct soft_fab *f, struct soft_rq *rq);
/* Waits for nobody: 0 and everything queued is dropped, or -EBUSY. */
int soft_rq_drop(struct soft_fab *f, struct soft_rq *rq);

/* poll.c */
int soft_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int soft_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
bool soft_is_busy(const struct fab_cq *cq);
/* cq.c */
/* The CQ is dead: its queue pairs break, and their owner is told. On its own thread. */
void soft_cq_kill(struct soft_cq *cq);
/* A send's completion, on the CQ's own thread; freed: how many send slots are over with it. */
void soft_cq_push(struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status status,
                  uint32_t freed);
/* The queue pair's head begins to wait: polls look at it from now on. The owning thread. */
void soft_cq_await(struct soft_qp *qp);
/* Those that have begun to wait are among the waiters. With qps_lock. */
void soft_cq_gather(struct soft_cq *cq);
/* A receive's, from any process, with cq's robust lock held. False: no room. */
bool soft_cq_append(struct soft_cq_shared *cq, const struct soft_arrival *a);
/* Whether a receive's completion has no room, which kills the CQ. With cq's robust lock held. */
bool soft_cq_is_full(struct soft_cq_shared *cq);

int soft_arm(struct fab_cq *cq, bool solicited_only);
/* An armed CQ's channel also becomes readable when something that waits is due. Its own thread. */
void soft_cq_timer(struct soft_cq *cq);
/* The same in a moment: somebody held a lock that polls only try, so that this one left something.
 */
void soft_cq_look_again(struct soft_cq *cq);

/* chan.c */
int soft_chan_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_chan_destroy(struct soft_fab *f, struct fab_ctl *ctl);
/* Removes what dead contexts left in the directory. With the open lock held. */
void soft_chan_clean(struct soft_fab *f);
void soft_chan_drain(struct fab_chan *chan);
/* The channel becomes readable then, unless another CQ's time comes before. UINT64_MAX: never. */
void soft_chan_set_timer(struct soft_chan *chan, uint64_t due);
static inline bool soft_is_wanted(uint32_t armed, bool solicited)
{
    return (armed & 3) == SOFT_ARMED || ((armed & 3) == SOFT_ARMED_SOLICITED && solicited);
}
/* Wakes whoever waits for this CQ, if it is armed for that. */
void soft_cq_notify(struct soft_fab *f, struct soft_cq_shared *cq, bool solicited);
/* Wakes everybody who waits: a process died, perhaps just before it would have. */
void soft_wake_all(struct soft_fab *f);

/* create.c */
int soft_pd_alloc(struct soft_fab *f, struct fab_ctl *ctl);
int soft_pd_free(struct fab_ctl *ctl);
int soft_ah_create(struct fab_ctl *ctl);
/* Whether this network takes an address: one that lacks what the device was opened with (its
 * service) gets nowhere, as in a fabric whose switches drop what is in no priority of theirs. */
bool soft_serves(const struct fab_pd *pd, const struct ibv_ah_attr *address);
int soft_ah_destroy(struct fab_ctl *ctl);
int soft_cq_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_cq_destroy(struct soft_fab *f, struct fab_ctl *ctl);
int soft_srq_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_srq_destroy(struct soft_fab *f, struct fab_ctl *ctl);
/* qp.c */
int soft_qp_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_qp_destroy(struct soft_fab *f, struct fab_ctl *ctl);
int soft_dct_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_dct_destroy(struct soft_fab *f, struct fab_ctl *ctl);

/* control.c */
void soft_submit(struct fab *fab, struct fab_ctl *ctl);
int soft_run(struct fab *fab);

static inline uint32_t soft_power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

#endif
