/* SPDX-License-Identifier: Apache-2.0 */
/* Hazard words: which regions a queue pair's thread is in. */
#include "soft/hazards.h"

void soft_mr_step_out(struct soft_qp *qp)
{
    if (qp->moved == 0) {
        soft_mr_leave(qp);
        return;
    }
    qp->held = qp->held_local = 0;
    atomic_store_explicit(&qp->shared->inside, 0, memory_order_release);
    atomic_store_explicit(&qp->shared->inside_local, 0, memory_order_release);
}

void soft_mr_pause(struct soft_qp *qp, const struct fab_key *key, uint32_t moved)
{
    struct soft_qp_shared *s = qp->shared;
    if (qp->moved == 0) {
        atomic_store(&s->middle_until_ns, key->not_after_ns != 0 ? key->not_after_ns : UINT64_MAX);
        atomic_store(&s->middle, qp->held);
        atomic_store(&s->middle_local, qp->held_local);
    }
    qp->moved = moved;
    soft_mr_step_out(qp);
}

void soft_mr_resign(struct soft_qp *qp)
{
    struct soft_qp_shared *s = qp->shared;
    if (qp->moved == 0)
        return;
    qp->moved = 0;
    atomic_store(&s->middle, 0);
    atomic_store(&s->middle_local, 0);
    soft_mr_leave(qp);
    atomic_fetch_add(&s->left, 1); /* also if it was not inside just now */
}
