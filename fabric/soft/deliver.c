/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs and immediates: the sender's process takes a receive from the target's queue, fills its
 * buffers, and appends the completion. The target's process need not run for that. */
#include "soft/deliver.h"

#include <errno.h>

#include "ibta/ibta.h"
#include "soft/chan.h"
#include "soft/copy.h"
#include "soft/locks.h"
#include "soft/maps.h"
#include "soft/one_sided.h"
#include "soft/soft_qp_error.h"
#include "soft/unseen.h"

/* Where the message goes next: over the receive's SGEs. */
struct scatter {
    const struct soft_rqe *rqe;
    uint32_t sge, used;
    uint64_t left; /* bytes of it that are to come */
    uint8_t *at;   /* in the SGE; NULL: its region was not entered yet */
};

/* Once for all of the message that the SGE takes. Where the region ends before, the pieces that it
 * holds are written, as a card writes packets, each of which it looks at by itself. */
static enum soft_mr_status enter_sge(struct soft_qp *qp, struct scatter *to,
                                     const struct soft_target *t, uint32_t part, uint8_t **at)
{
    const struct ibv_sge *sge = &to->rqe->sge[to->sge];
    const uint32_t pd = atomic_load(&t->qp->pd), room = sge->length - to->used;
    const uint64_t addr = sge->addr + to->used, all = to->left < room ? to->left : room;
    *at = to->at;
    if (*at != NULL)
        return SOFT_MR_OK;
    const enum soft_mr_status status =
        soft_mr_enter(qp, t->owner, pd, sge->lkey, addr, all, IBV_ACCESS_LOCAL_WRITE, at);
    if (status != SOFT_MR_OK)
        return soft_mr_enter(qp, t->owner, pd, sge->lkey, addr, part, IBV_ACCESS_LOCAL_WRITE, at);
    to->at = *at;
    return SOFT_MR_OK;
}

/* Writes n bytes behind what was written before. OK, or why the receiver's memory refused. */
static enum soft_mr_status scatter_bytes(struct soft_qp *qp, struct scatter *to,
                                         const struct soft_target *t, const uint8_t *from,
                                         uint32_t n)
{
    while (n > 0) {
        const struct ibv_sge *sge = &to->rqe->sge[to->sge];
        uint32_t room = sge->length - to->used, part = n < room ? n : room;
        if (part > 0) {
            uint8_t *at;
            const enum soft_mr_status status = enter_sge(qp, to, t, part, &at);
            if (status != SOFT_MR_OK)
                return status;
            soft_copy(at, from, part);
            to->at = to->at != NULL ? at + part : NULL;
            from += part;
            n -= part;
            to->used += part;
            to->left -= part;
        }
        if (to->used == sge->length) {
            to->sge++;
            to->used = 0;
            to->at = NULL;
        }
    }
    return SOFT_MR_OK;
}

static enum soft_mr_status scatter_message(struct soft_qp *qp, const struct soft_rqe *rqe,
                                           const struct soft_target *t,
                                           const struct soft_message *m)
{
    struct scatter to = {.rqe = rqe,
                         .left = (uint64_t)m->length + (m->grh_dgid != NULL ? FAB_GRH_BYTES : 0)};
    enum soft_mr_status status = SOFT_MR_OK;
    if (m->grh_dgid != NULL) {
        uint8_t grh[FAB_GRH_BYTES];
        fab_ibta_make_grh(grh, &qp->base.pd->fab->caps, qp->base.pd->fab->caps.gid,
                          (const uint8_t *)m->grh_dgid, m->length,
                          m->wr->opcode == IBV_WR_SEND_WITH_IMM);
        status = scatter_bytes(qp, &to, t, grh, FAB_GRH_BYTES);
    }
    for (int i = 0; i < m->wr->num_sge && status == SOFT_MR_OK; i++)
        status = scatter_bytes(qp, &to, t, soft_local_at(soft_of(qp->base.pd->fab), m->wr, i),
                               m->wr->sg_list[i].length);
    return status;
}

/* Moves the payload. DONE with the sender's *answer, and what the receive's completion says in
 * m->arrival.status; or what to wait for, with nothing taken. */
static enum soft_outcome move_payload(struct soft_qp *qp, const struct soft_target *t,
                                      struct soft_message *m, const struct soft_rqe *rqe,
                                      bool *taken, enum ibv_wc_status *answer)
{
    uint64_t room = 0, needed = (uint64_t)m->length + (m->grh_dgid != NULL ? FAB_GRH_BYTES : 0);
    if (m->write_imm) {
        enum soft_outcome outcome = soft_one_sided(qp, m->wr, t, m->length, answer);
        *taken = outcome == SOFT_DONE && *answer == IBV_WC_SUCCESS;
        return outcome;
    }
    for (uint32_t i = 0; i < rqe->num_sge && i < SOFT_SGE; i++)
        room += rqe->sge[i].length;
    *taken = true;
    if (rqe->num_sge > SOFT_SGE || room < needed) {
        m->arrival.status = IBV_WC_LOC_LEN_ERR;
        *answer = IBV_WC_REM_INV_REQ_ERR;
        return SOFT_DONE;
    }
    switch (scatter_message(qp, rqe, t, m)) {
    case SOFT_MR_OK:
        break;
    case SOFT_MR_DENIED:
        m->arrival.status = IBV_WC_LOC_PROT_ERR;
        *answer = IBV_WC_REM_OP_ERR;
        break;
    case SOFT_MR_FAILED:
        *taken = false;
        *answer = IBV_WC_REM_OP_ERR;
        break;
    case SOFT_MR_GONE:
        return SOFT_WAIT_PEER;
    }
    return SOFT_DONE;
}

/* With the receive queue's and the CQ's locks held. */
static enum soft_outcome deliver_locked(struct soft_qp *qp, const struct soft_target *t,
                                        struct soft_message *m, struct soft_rq_shared *rq,
                                        struct soft_cq_shared *cq, enum ibv_wc_status *status)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    bool ud = m->grh_dgid != NULL, taken;
    enum ibv_wc_status answer = IBV_WC_SUCCESS;
    uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
        return SOFT_WAIT_RNR;
    if (soft_cq_is_full(cq))
        return SOFT_WAIT_PEER; /* its owner breaks its queue pairs at its next poll */
    const struct soft_rqe *rqe = &rq->ring[head & rq->mask]; /* its owner's again behind head */
    m->arrival.status = IBV_WC_SUCCESS;
    enum soft_outcome outcome = move_payload(qp, t, m, rqe, &taken, &answer);
    if (outcome != SOFT_DONE)
        return outcome;
    *status = ud ? IBV_WC_SUCCESS : answer;
    if (!taken)
        return SOFT_DONE;

    m->arrival.wr_id = rqe->wr_id;
    m->arrival.qpn = t->qpn;
    m->arrival.epoch = atomic_load(&t->qp->epoch);
    m->arrival.byte_len = m->length + (ud ? FAB_GRH_BYTES : 0);
    m->arrival.wc_flags |= (uint16_t)(ud ? IBV_WC_GRH : 0);
    if (qp->unseen != NULL && answer == IBV_WC_SUCCESS && soft_unseen_keep_receive(qp, m, t, cq)) {
        atomic_store_explicit(&rq->head, head + 1, memory_order_release);
        return SOFT_DONE;
    }
    rq->taking_head = head;
    rq->taking_tail = atomic_load(&cq->tail);
    atomic_store(&rq->taking, (uint32_t)(cq - f->shared->cq) + 1);
    (void)soft_cq_append(cq, &m->arrival);
    atomic_store_explicit(&rq->head, head + 1, memory_order_release);
    atomic_store_explicit(&rq->taking, 0, memory_order_release);
    return SOFT_DONE;
}

/* Under the locks: whether the target is still what we looked up before. */
static bool still_there(const struct soft_target *t, const struct soft_rq_shared *rq,
                        const struct soft_cq_shared *cq)
{
    uint64_t ident = atomic_load(&t->qp->ident);
    return atomic_load(&rq->owner) == t->owner && atomic_load(&cq->owner) == t->owner &&
           soft_qpn(ident) == t->qpn &&
           (soft_state(ident) == IBV_QPS_RTR || soft_state(ident) == IBV_QPS_RTS);
}

enum soft_outcome soft_deliver(struct soft_qp *qp, const struct soft_target *t,
                               struct soft_message *m, enum ibv_wc_status *status)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    uint32_t rq_number = atomic_load(&t->qp->rq), cq_number = atomic_load(&t->qp->recv_cq);
    *status = IBV_WC_SUCCESS;
    if (rq_number == 0) /* it never posts a receive */
        return SOFT_WAIT_RNR;
    if (cq_number == 0 || rq_number > SOFT_RQS || cq_number > SOFT_CQS)
        return SOFT_WAIT_PEER;
    struct soft_rq_shared *rq = &f->shared->rq[rq_number - 1];
    struct soft_cq_shared *cq = &f->shared->cq[cq_number - 1];
    if (atomic_load(&rq->owner) != t->owner || atomic_load(&cq->owner) != t->owner)
        return SOFT_WAIT_PEER;
    if (soft_rq_trylock(f, rq) != 0)
        return SOFT_WAIT_LOCK;
    enum soft_outcome outcome = SOFT_WAIT_LOCK;
    if (soft_cq_trylock(f, cq) == 0) {
        outcome =
            still_there(t, rq, cq) ? deliver_locked(qp, t, m, rq, cq, status) : SOFT_WAIT_PEER;
        soft_unlock(&cq->lock);
    }
    soft_unlock(&rq->lock);
    bool overflow = atomic_load(&cq->overflow) != 0;
    if (outcome == SOFT_DONE || overflow)
        soft_cq_notify(f, cq,
                       (m->wr->send_flags & IBV_SEND_SOLICITED) != 0 ||
                           m->arrival.status != IBV_WC_SUCCESS || overflow);
    if (outcome != SOFT_DONE)
        return outcome;
    /* The receiver's own fault breaks it: a stranger's datagram that is longer than a receive too,
     * as cards may have it (rxe drops that one). */
    if (m->arrival.status != IBV_WC_SUCCESS)
        soft_break_peer(qp, t, IBV_EVENT_QP_FATAL);
    return SOFT_DONE;
}
