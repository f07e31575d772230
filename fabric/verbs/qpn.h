/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a queue pair number, which several lives of queue pairs have one after the other.
 */
#ifndef VERBS_QPN_H
#define VERBS_QPN_H

#include <stdatomic.h>
#include <stdint.h>

/* What the threads that poll know of a queue pair number. Lives until the device is closed, so
 * that a late completion of a queue pair that is gone finds something to write to.
 *
 * One word, so that nothing of one life of the number is counted to another: its epoch, given anew
 * whenever a queue pair gets the number or goes to RESET; what failed; and how many signalled
 * requests succeeded in it, running. A poll that began before an epoch did has nothing of it, since
 * it is a later post's: what it brings of that number is of the life before, and is dropped. */
struct verbs_qpn {
    _Atomic uint64_t word; /* epoch << 24 | enum verbs_failed << 22 | completed */
};

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
