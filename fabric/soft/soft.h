/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/soft: one open of the device, a context.
 *
 * Threads: lanes post and poll; the control thread runs control operations; the watcher marks
 * contexts dead. A lane never waits for another thread or process: whatever lock it finds taken, it
 * tries again at its next poll.
 *
 * Files call downward only:
 *
 *    - device, control: opening, closing, control operations
 *    - create, qp, states: making, changing and freeing objects
 *    - model: the data path's entries where the device has a cost model
 *    - poll, sendq: the data path's entries
 *    - order, exec, deliver, one_sided, pieces: executing one request
 *    - recv, cq, qp_error, chan: queues, and waking their owners
 *    - mr, maps, hazards: regions
 *    - watch, context: which processes live
 *    - tables, locks, keys, copy: the shared memory */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include <stdatomic.h>
#include <string.h>

#include "fabric/bell.h"
#include "fabric/events.h"
#include "fabric/provider.h"
#include "soft/keys.h"
#include "soft/layout.h"
#include "soft/order.h"

/* What became of a request: it is over, or waits for something. */
enum soft_outcome { SOFT_DONE, SOFT_WAIT_PEER, SOFT_WAIT_RNR, SOFT_WAIT_LOCK, SOFT_WAIT_TURN };

struct soft_map;
struct soft_model;
struct soft_qp;
struct soft_watch;

enum { SOFT_DIR_BYTES = 200 };

struct soft_fab {
    struct fab base;
    struct soft_shared *shared;
    struct soft_context_shared *me;
    soft_owner owner;
    int fd; /* of the device file; holds the lock that says this context lives */
    int dir_fd;
    struct fab_bell ctl;    /* when run() has something to do */
    int ctl_tfd;            /* a timer for what stays pending */
    int ctl_epfd;           /* both */
    uint64_t ctl_period_ns; /* control thread: what the timer is set to; 0: not set */
    uint64_t ctl_due_ns;    /* and when it is over, at the soonest */
    char dir[SOFT_DIR_BYTES];
    uint32_t chans;       /* control thread: numbers given to channels */
    pthread_mutex_t lock; /* submitted, maps, qp_of's changes: never held for long */
    struct fab_ctl *submitted, **submitted_tail;
    struct fab_ctl *pending; /* control thread: what waits for another process */
    struct fab_events events;
    struct soft_map *maps;                       /* all of them */
    _Atomic(struct soft_map *) map_of[SOFT_MRS]; /* by slot, for lanes */
    uint32_t swept; /* control thread: shared->mr_retired at the last sweep */
    struct soft_keys keys;
    struct soft_order order;
    _Atomic(struct soft_qp *) qp_of[SOFT_QPS];
    _Atomic uint32_t objects; /* PDs, regions, ...: close() refuses while there are any */
    struct soft_watch *watch;
    struct soft_model *model; /* what things cost; NULL, and never asked for: nothing */
    struct fab_ops modelled;  /* with one: our operations, but for those that charge */
};

struct soft_pd {
    struct fab_pd base;
    uint32_t id;
    _Atomic uint32_t users;
};

static inline struct soft_fab *soft_of(const struct fab *fab)
{
    return (struct soft_fab *)fab;
}

/* As far as the watcher knows. */
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

#endif
