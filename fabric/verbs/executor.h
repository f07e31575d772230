/* SPDX-License-Identifier: Apache-2.0 */
/* The workers: a few threads that carry out control operations, all of which may block in the
 * kernel, so that one that does (a neighbour that does not answer) holds up no other.
 *
 * Order: two operations that need one object, one of them as its own (a move, a destruction), are
 * carried out in the order of their submission, and never at the same time. So is a queue pair
 * moved through its states by four operations submitted together, and destroyed before its CQ.
 * Operations that only share an object (two registrations in one PD) run side by side.
 *
 * Operations that may wait for a neighbour leave workers to the others, and wait in a queue of
 * their own, with what has to follow them: however many there are, nothing else stands behind. So
 * do those that take as long as memory is large: of these there may be some at all times, since
 * workers ask for them, and a neighbour is not to be asked behind them. DC targets that go are
 * drained one after the other, since nobody waits for that. All of them together leave one worker
 * to what is short, an overdue queue pair is to end at once, and memory and neighbours some to each
 * other.
 *
 * A queue pair is asked for its state one after the other: a device that answers none of these
 * questions has one worker for them, and keeps waiting what is to be done with the queue pairs that
 * it is asked about. One that goes is not asked any more if that has not begun. */
#ifndef VERBS_EXECUTOR_H
#define VERBS_EXECUTOR_H

#include <pthread.h>

#include "fabric/fabric.h"

enum {
    VERBS_WORKERS = 7,
    VERBS_RESOLVING = 3,  /* at most */
    VERBS_PINNING = 3,    /* at most */
    VERBS_ASKING = 1,     /* at most */
    VERBS_DRAINING = 1,   /* at most; all four together leave one worker */
    VERBS_LOOKAHEAD = 32, /* queued operations among which a worker looks for one that may begin */
    VERBS_NEEDS = 4,
};

/* For how long a worker may be away with it. */
enum verbs_length {
    VERBS_SHORT,    /* what the device's firmware takes */
    VERBS_PINS,     /* as long as memory takes to pin or to let go */
    VERBS_RESOLVES, /* until a neighbour answers */
    VERBS_ASKS,     /* until the device says what state a queue pair is in */
    VERBS_DRAINS,   /* until a DC target has answered all that it took, which its peers decide */
    VERBS_LENGTHS
};

/* The objects of an operation. */
struct verbs_needs {
    const void *own;               /* what it changes or frees; NULL for one that creates */
    const void *with[VERBS_NEEDS]; /* what has to stay as it is meanwhile; the rest NULL */
    enum verbs_length length;
    const struct fab_ctl *ctl; /* the pool's: the operation */
};

struct verbs_queue {
    struct fab_ctl *first, **end;
};

struct verbs_executor {
    /* Carries out an operation, and what it needs; of any worker, without the lock. */
    int (*carry_out)(void *of, struct fab_ctl *ctl);
    void (*needs)(const struct fab_ctl *ctl, struct verbs_needs *out);
    void *of;
    int over_efd; /* readable when something is over */
    pthread_t thread[VERBS_WORKERS];
    uint32_t threads;
    pthread_mutex_t lock;      /* what follows; never held over a call into libibverbs */
    pthread_cond_t work, idle; /* something may begin; nothing runs */
    struct verbs_queue todo[VERBS_LENGTHS]; /* each with what has to follow what is in it */
    struct verbs_queue over;
    struct verbs_needs running[VERBS_WORKERS]; /* in no order */
    uint32_t busy, of_length[VERBS_LENGTHS];   /* of `running`; of these, of each length */
    bool paused, stop;
    uint32_t objects; /* stop() refuses while there are any */
    uint64_t stop_ns; /* it waits so long; 0: FAB_CLOSE_MS */
};

/* Before anything else; the struct is zeroed, with carry_out, needs and of set. 0 or -errno; fini()
 * in either case. */
int verbs_executor_init(struct verbs_executor *p);
/* After stop(), or when start() failed. */
void verbs_executor_fini(struct verbs_executor *p);
/* 0 or -errno, and no thread runs. */
int verbs_executor_start(struct verbs_executor *p);
/* Any thread. */
void verbs_executor_submit(struct verbs_executor *p, struct fab_ctl *ctl);
/* The control thread: calls back for what is over, in the order of completion. Frees the objects
 * that were destroyed, so that what the control thread holds stays valid between two runs. */
int verbs_executor_run(struct verbs_executor *p);
/* The control thread: waits for what runs, ends the workers and calls back for whatever was
 * submitted: -ECANCELED. -EBUSY and nothing happens while there are objects. -ETIMEDOUT: something
 * still runs after stop_ns, since the device does not come back from it: the workers and what they
 * have stay, nothing more begins, and it may be called again. */
int verbs_executor_stop(struct verbs_executor *p);

#endif
