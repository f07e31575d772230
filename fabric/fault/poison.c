/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are made to fail, and whether one is. */
#include "fault/poison.h"

/* Never valid: 0 names no region, here and in verbs. */
static const struct ibv_sge nowhere = {.addr = 0, .length = 1, .lkey = 0};
static const uint32_t million = 1000000;

bool fault_hits(const struct fault_plan_state *now, struct fault_stream *stream, uint32_t ppm)
{
    if (stream->generation != now->generation) {
        struct base_prng mix;
        stream->generation = now->generation;
        base_prng_seed(&mix, now->plan.seed);
        base_prng_seed(&stream->prng, base_prng_next(&mix) ^ ((uint64_t)stream->ordinal << 32));
    }
    return base_prng_below(&stream->prng, million) < ppm;
}

void fault_count_one(struct fault_fab *f)
{
    atomic_fetch_add_explicit(&f->count, 1, memory_order_relaxed);
}

struct fault_poison *fault_poison_take(struct fault_fab *f, struct fault_qp *qp)
{
    struct fault_cq *cq = (struct fault_cq *)qp->base.send_cq;
    struct fault_poison *poison = &cq->poison[cq->poison_next++ % cq->poison_room];
    *poison = (struct fault_poison){.qpn = qp->base.qpn};
    qp->broken = true;
    fault_count_one(f);
    return poison;
}

void fault_make_fail(const struct fault_qp *qp, struct fault_poison *poison, struct fab_wr *wr)
{
    wr->wr_id = (uintptr_t)poison;
    wr->opcode = qp->base.type == FAB_QP_UD ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
    wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
    wr->sg_list = &nowhere;
    wr->num_sge = 1;
}
