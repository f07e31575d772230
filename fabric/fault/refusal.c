/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/refusal.h"

#include <errno.h>

#include "fault/poison.h"

bool fault_is_object(enum fab_ctl_kind kind)
{
    return fab_ctl_balance(kind) != 0 && kind != FAB_CREATE_CHAN && kind != FAB_DESTROY_CHAN;
}

static bool is_possible(const struct fab_qp_cap *cap, const struct fab_caps *caps)
{
    return cap->inline_bytes <= caps->max_inline && cap->send_sge <= caps->max_sge;
}

/* Whether others may be let do atomics by it: mlx5 takes no such queue pair and no such DC target
 * where it has none, and others no such region. */
static bool allows_atomics(const struct fab_ctl *ctl)
{
    const unsigned access = ctl->kind == FAB_REG_MR       ? ctl->mr.access
                            : ctl->kind == FAB_CREATE_DCT ? ctl->dct.access
                            : ctl->kind == FAB_MODIFY_QP && (ctl->modify.mask & IBV_QP_ACCESS_FLAGS)
                                ? ctl->modify.attr.qp_access_flags
                                : 0;
    return (access & IBV_ACCESS_REMOTE_ATOMIC) != 0;
}

int fault_refusal_of(const struct fault_fab *f, const struct fault_plan *plan,
                     const struct fab_ctl *ctl)
{
    if (plan->max_objects != 0 && f->objects >= plan->max_objects && fault_is_object(ctl->kind) &&
        fab_ctl_balance(ctl->kind) > 0)
        return -EAGAIN;
    const bool has_atomics =
        ctl->kind == FAB_CREATE_DCT ? f->base.caps.dc_atomics : f->base.caps.atomics;
    if (!has_atomics && allows_atomics(ctl))
        return -EOPNOTSUPP;
    if (ctl->kind == FAB_QUERY_CLOCK)
        return f->clock.no_clock ? -EOPNOTSUPP : 0;
    if (ctl->kind == FAB_CREATE_QP)
        return is_possible(&ctl->qp.cap, &f->base.caps) ? 0 : -EINVAL;
    if (ctl->kind != FAB_MODIFY_QP || !(ctl->modify.mask & IBV_QP_STATE))
        return 0;
    struct fault_qp *qp = (struct fault_qp *)ctl->modify.x;
    if (ctl->modify.attr.qp_state == IBV_QPS_INIT)
        return qp->over ? -EINVAL : 0;
    if (ctl->modify.attr.qp_state == IBV_QPS_RESET && qp->base.type != FAB_QP_DCI)
        qp->over = f->resets_are_final;
    return 0;
}

bool fault_fails(struct fault_fab *f, const struct fault_plan_state *now, const struct fab_ctl *ctl)
{
    const struct fault_plan *plan = &now->plan;
    return fault_hits(now, &f->control, plan->control_error_ppm) ||
           (ctl->kind == FAB_QUIESCE_MR && plan->fence_error_ppm > 0 &&
            fault_hits(now, &f->control, plan->fence_error_ppm)) ||
           (fab_ctl_balance(ctl->kind) < 0 && plan->destroy_error_ppm > 0 &&
            fault_hits(now, &f->control, plan->destroy_error_ppm));
}

bool fault_is_stuck(struct fault_fab *f, const struct fault_plan_state *now,
                    const struct fab_ctl *ctl)
{
    enum { ALL = 1000000 };
    const bool moves = ctl->kind == FAB_MODIFY_QP && (ctl->modify.mask & IBV_QP_STATE) != 0;
    if (!moves && ctl->kind != FAB_DESTROY_QP)
        return false;
    struct fault_qp *qp = (struct fault_qp *)(moves ? ctl->modify.x : ctl->qp.x);
    if (!moves) {
        const bool stays = qp->stays;
        qp->stays = false;
        return stays;
    }
    const enum ibv_qp_state state = ctl->modify.attr.qp_state;
    if (state == IBV_QPS_RESET && qp->raised && !qp->stuck && now->plan.stuck_ppm > 0) {
        qp->stuck = fault_hits(now, &f->control, now->plan.stuck_ppm);
        qp->stays = qp->stuck && fault_hits(now, &f->control, ALL / 2);
    }
    qp->raised |= state == IBV_QPS_RTR; /* where a responder stays */
    return qp->stuck && state != IBV_QPS_ERR;
}
