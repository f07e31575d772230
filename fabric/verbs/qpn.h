/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a queue pair number, which several lives of queue pairs have one after the other.
 */
#ifndef VERBS_QPN_H
#define VERBS_QPN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ibv_wc;
struct verbs_fab;

/* What the threads that poll know of a queue pair number. Lives until the device is closed, so
 * that a late completion of a queue pair that is gone finds something to write to.
 *
 * One word, so that nothing of one life of the number is counted to another: its epoch, given anew
 * whenever a queue pair gets the number, goes to RESET or is destroyed; what failed; and how many
 * signalled requests succeeded in it, running. A poll that began before an epoch did has nothing of
 * it, since it is a later post's: what it brings of that number is of the life before, and is
 * dropped. */
struct verbs_qpn {
    _Atomic uint64_t word; /* epoch << 24 | enum verbs_failed << 22 | completed */
    _Atomic(struct verbs_ring *) ring;
    _Atomic uint64_t ringed; /* the epoch of the last life that goes by the ring; 0: none did */
};

/* What is out on a DCI with streams, whose requests complete in another order than they were posted
 * in. libmlx5 takes each completion for the end of all requests before it, and would write a new
 * one over one that is still to be executed; so the provider knows which is the oldest, and lets no
 * more be posted than fit behind that. The device is given a number for each, and a poll finds by
 * it what the caller called it. */
struct verbs_slot {
    _Atomic uint64_t id; /* life << 32 | running number, as the device has it; 0: free */
    uint64_t wr_id;      /* the caller's */
    bool silent;         /* who wants to hear of it only if it fails */
};

/* Lives as long as the number does. */
struct verbs_ring {
    struct verbs_ring *older; /* which was too small */
    uint32_t mask;
    struct verbs_slot slot[];
};

/* qpn.c */
/* Room for so many requests, a power of two, from this life of the number on. 0 or -ENOMEM. */
int verbs_ring_make(struct verbs_qpn *n, uint32_t slots);
/* Whoever begins a life of that epoch that goes by the ring: nothing is out. */
void verbs_ring_begin(struct verbs_qpn *n, uint64_t epoch);
/* A completion of this life: false, nobody is to hear of it; true, with the caller's wr_id. */
bool verbs_ring_complete(struct verbs_qpn *n, struct ibv_wc *wc);
/* With the pages: the device is closed. */
void verbs_qpn_free(struct verbs_fab *f);

enum verbs_failed {
    VERBS_SOME_FAILED = 1, /* the queue is in ERR: the device alone knows what is free in it */
    VERBS_BROKEN = 2,      /* a completion said why, so that the state is ERR before the device
                            * says so: rxe moves it after completing */
};
enum { VERBS_FAILED_SHIFT = 22, VERBS_EPOCH_SHIFT = 24 };
#define VERBS_COMPLETED ((1u << VERBS_FAILED_SHIFT) - 1) /* more than any queue has room for */

static inline uint32_t verbs_failed_of(const struct verbs_qpn *n)
{
    return (uint32_t)(atomic_load_explicit(&n->word, memory_order_relaxed) >> VERBS_FAILED_SHIFT) &
           (VERBS_SOME_FAILED | VERBS_BROKEN);
}
static inline uint32_t verbs_completed_of(const struct verbs_qpn *n)
{
    return (uint32_t)atomic_load_explicit(&n->word, memory_order_relaxed) & VERBS_COMPLETED;
}

#endif
