/* SPDX-License-Identifier: Apache-2.0 */
/* Hazard words: which regions a queue pair's thread is in (hazard pointers, Michael 2004).
 *
 * An initiator first writes the keys into its queue pair's words, issues a barrier, and then looks
 * whether they are still valid; the owner first clears a key, issues a barrier, and then looks at
 * every queue pair's words. One of the two sees the other: either the initiator refuses, or the
 * owner waits. The queue pair's thread calls these. */
#ifndef SOFT_HAZARDS_H
#define SOFT_HAZARDS_H

#include "soft/soft_qp.h"

/* Publishes which regions this thread is about to look at; 0: none; local may be SOFT_ANY_KEY. What
 * is valid afterwards stays. */
static inline void soft_mr_hold(struct soft_qp *qp, uint32_t key, uint32_t local)
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

/* It has left them all, for good. */
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

/* The same, but for whoever quiesces a region it is still in there when its head goes on some other
 * time. */
void soft_mr_step_out(struct soft_qp *qp);
/* So many bytes of the head are done, with its regions held, and the rest is for later: it steps
 * out. */
void soft_mr_pause(struct soft_qp *qp, const struct fab_key *key, uint32_t moved);
/* Of a head that was paused, however it ended, there is nothing more to come. Also the control
 * thread, with the CQ's qps_lock. */
void soft_mr_resign(struct soft_qp *qp);

#endif
