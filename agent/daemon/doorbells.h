/* SPDX-License-Identifier: Apache-2.0 */
/* Workers' doorbells, as a lane's thread watches them: edge-triggered and never read or written,
 * since a worker holds the same descriptor, and could make either block.
 *
 * A worker that rings without an end would have the lane look at its events and at nothing else.
 * One that has rung a few times on end with nothing new in its ring is not heard for a while: what
 * it has then is found when its doorbell is watched again, which tells of it once if it was ever
 * rung. No worker that rings as schema/session.h says is ever one: what it rings for may have been
 * seen, since its ring for something earlier was heard late, after its next stores of the tail. But
 * that ring was a true one, and two false ones at the most come before the next: one that was
 * written already when the tail was read, and that for the last store (tests/model/doorbell.pml).
 */
#ifndef DAEMON_DOORBELLS_H
#define DAEMON_DOORBELLS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    DOORBELLS_FALSE = 4, /* that are forgiven: one now and then is how a worker asks for life */
    DOORBELLS_FORGET_MS = 20,
    DOORBELLS_DEAF_MS = 50,
};

struct world_rings;

struct doorbell {
    int fd; /* -1: none */
    bool deaf;
    bool muted;                 /* another lane hears it */
    uint64_t until_ns;          /* deaf */
    _Atomic uint32_t falses;    /* since the last true one */
    _Atomic uint64_t false_ns;  /* when the first of these came */
    TAILQ_ENTRY(doorbell) link; /* of those that are deaf, the first due first */
};

struct doorbells {
    int epfd; /* the caller's */
    uint32_t count;
    struct doorbell *of;  /* by session */
    pthread_mutex_t lock; /* fd, deaf and the list; nobody waits for anything with it */
    TAILQ_HEAD(, doorbell) deaf;
    _Atomic uint64_t due_ns; /* of the first of these; UINT64_MAX: none */
};

/* For so many sessions, whose events have their number as data. -ENOMEM. */
int agentd_doorbells_init(struct doorbells *d, int epfd, uint32_t count);
/* After the lane's thread. */
void agentd_doorbells_fini(struct doorbells *d);

/* Any other thread than the lane's. fd: readable anew whenever the doorbell is rung. 0 or -errno.
 */
int agentd_doorbells_watch(struct doorbells *d, uint32_t session, int fd);
void agentd_doorbells_unwatch(struct doorbells *d, uint32_t session);
/* One that is watched is not heard until it is told otherwise; then what was rung meanwhile is told
 * of once. Never waits for who has the descriptor. */
void agentd_doorbells_mute(struct doorbells *d, uint32_t session, bool muted);

/* A task's: the lane of these rings hears their doorbell, or does no more. Who ends that waits for
 * the lock of the eventfd's queue, into which a worker can hang as many watches as it likes; and
 * whoever begins to watch an epoll by another one waits for all on this host that do. So neither is
 * the control thread's or the lane's, and each doorbell has an epoll of its own, whose lock is
 * nobody else's. 0 or -errno. Not while the lane begins or stops. */
int agentd_doorbells_hear_rings(struct world_rings *r);
void agentd_doorbells_unhear_rings(struct world_rings *r);
/* Likewise: the lane that these rings lodge with hears it too, as that lodger's. */
int agentd_doorbells_lodge_rings(const struct world_rings *r);

/* The lane's thread. That session has rung with nothing new in its ring, or with something. None of
 * these waits. */
void agentd_doorbells_note_false(struct doorbells *d, uint32_t session, uint64_t now_ns);
void agentd_doorbells_note_true(struct doorbells *d, uint32_t session);
/* Some of those that are due are heard again. */
void agentd_doorbells_hear_again(struct doorbells *d, uint64_t now_ns);

static inline uint64_t doorbells_due(const struct doorbells *d)
{
    return atomic_load_explicit(&d->due_ns, memory_order_relaxed);
}

#endif
