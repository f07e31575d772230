/* SPDX-License-Identifier: Apache-2.0 */
/* READs, WRITEs and atomics: on the initiator's CPU, straight on the target's memory. */
#include "soft/one_sided.h"

#include "base/clock.h"
#include "ibta/ibta.h"
#include "soft/copy.h"
#include "soft/maps.h"
#include "soft/pieces.h"
#include "soft/soft_qp_error.h"
#include "soft/unseen.h"

static void do_atomic(const struct soft_fab *f, const struct fab_wr *wr, uint64_t *at)
{
    uint64_t before = wr->compare_add;
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        __atomic_compare_exchange_n(at, &before, wr->swap, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    else
        before = __atomic_fetch_add(at, wr->compare_add, __ATOMIC_SEQ_CST);
    soft_copy(soft_local_at(f, wr, 0), (const uint8_t *)&before, 8);
}

/* Requests of one queue pair are seen in their order: hence the barriers, of which x86 needs none.
 */
static void move_data(const struct soft_fab *f, const struct fab_wr *wr, uint8_t *remote)
{
    if (fab_opcode_is_atomic(wr->opcode)) {
        do_atomic(f, wr, (uint64_t *)(void *)remote);
        return;
    }
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < wr->num_sge; i++) {
        uint8_t *local = soft_local_at(f, wr, i);
        if (wr->opcode == IBV_WR_RDMA_READ)
            soft_copy(local, remote, wr->sg_list[i].length);
        else
            soft_copy(remote, local, wr->sg_list[i].length);
        remote += wr->sg_list[i].length;
    }
    atomic_thread_fence(memory_order_acquire);
}

/* The responder refuses: on RC its queue pair breaks too (IBTA 9.9.3). */
static enum soft_outcome refuse_request(struct soft_qp *qp, const struct soft_target *t,
                                        enum ibv_wc_status with, enum ibv_wc_status *status)
{
    soft_break_peer(qp, t,
                    with == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
    *status = with;
    return SOFT_DONE;
}

/* More READs and atomics than the peer was told to have room for. */
static bool has_too_many_out(const struct soft_qp *qp, const struct soft_target *t)
{
    return qp->ahead >= atomic_load_explicit(&t->qp->max_dest_reads, memory_order_relaxed);
}

enum soft_outcome soft_one_sided(struct soft_qp *qp, const struct fab_wr *wr,
                                 const struct soft_target *t, uint32_t length,
                                 enum ibv_wc_status *status)
{
    unsigned access = fab_opcode_row(wr->opcode)->access;
    uint8_t *at = NULL;
    if (!fab_opcode_is_aligned(wr->opcode, wr->remote_addr))
        return refuse_request(qp, t, IBV_WC_REM_INV_REQ_ERR, status);
    if (fab_opcode_is_answered(wr->opcode) && has_too_many_out(qp, t))
        return refuse_request(qp, t, IBV_WC_REM_INV_REQ_ERR, status);
    if ((atomic_load_explicit(&t->qp->access, memory_order_relaxed) & access) != access)
        return refuse_request(qp, t, IBV_WC_REM_ACCESS_ERR, status);
    *status = IBV_WC_SUCCESS;
    if (length == 0)
        return SOFT_DONE;
    switch (soft_mr_enter(qp, t->owner, atomic_load_explicit(&t->qp->pd, memory_order_relaxed),
                          wr->key.rkey, wr->remote_addr, length, access, &at)) {
    case SOFT_MR_OK:
        if (qp->unseen != NULL && soft_unseen_keep(qp, wr, t, length))
            return SOFT_DONE;
        if (length > SOFT_WHOLE)
            return soft_move_in_turns(qp, wr, at, length, status);
        qp->send_cq->pace.whole += length;
        move_data(soft_of(qp->base.pd->fab), wr, at);
        return SOFT_DONE;
    case SOFT_MR_DENIED:
        /* The key may be gone because we stood still since the clock was read: late, and no fault.
         */
        return soft_has_no_time(qp, wr, status)
                   ? SOFT_DONE
                   : refuse_request(qp, t, IBV_WC_REM_ACCESS_ERR, status);
    case SOFT_MR_FAILED: /* ours to mend: the peer does not even know */
        *status = IBV_WC_REM_OP_ERR;
        return SOFT_DONE;
    case SOFT_MR_GONE:
        break;
    }
    return SOFT_WAIT_PEER;
}
