/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that break: ours, because a CQ of theirs died, and those of peers, because they
 * refused a request. Any thread. */
#include "soft/soft_qp_error.h"

#include "soft/chan.h"

bool soft_qp_to_err(struct soft_qp_shared *s, uint32_t qpn, enum ibv_event_type cause)
{
    uint64_t ident = atomic_load(&s->ident);
    do {
        enum ibv_qp_state state = soft_state(ident);
        if (soft_qpn(ident) != qpn || state == IBV_QPS_RESET || state == IBV_QPS_ERR)
            return false;
    } while (!atomic_compare_exchange_weak(&s->ident, &ident, soft_ident(qpn, IBV_QPS_ERR)));
    atomic_store(&s->cause, (uint32_t)cause + 1);
    return true;
}

void soft_qp_attend(struct soft_fab *f, struct soft_qp *qp)
{
    atomic_fetch_add(&f->me->attention, 1);
    soft_cq_notify(f, qp->send_cq->shared, true);
    soft_cq_notify(f, ((struct soft_cq *)qp->base.recv_cq)->shared, true);
}

void soft_break_peer(struct soft_qp *qp, const struct soft_target *t, enum ibv_event_type cause)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    uint32_t send_cq = atomic_load(&t->qp->send_cq), recv_cq = atomic_load(&t->qp->recv_cq);
    const uint32_t kind = atomic_load(&t->qp->kind);
    if ((kind != SOFT_RC && kind != SOFT_UD) || !soft_qp_to_err(t->qp, t->qpn, cause))
        return; /* a DC target stays (it has nobody's connection to lose) */
    atomic_fetch_add(&t->context->attention, 1);
    if (send_cq == 0 || recv_cq == 0)
        return;
    soft_cq_notify(f, &f->shared->cq[send_cq - 1], true);
    soft_cq_notify(f, &f->shared->cq[recv_cq - 1], true);
}
