/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/psn.h"

#include "base/clock.h"
#include "fault/poison.h"

enum { PSN_MASK = 0xffffff };

uint64_t fault_psn_now_ns(const struct fault_fab *f)
{
    return f->now_ns != NULL ? *f->now_ns : base_clock_ns();
}

/* A new one may have had a life in which nobody saw its numbers. */
void fault_psn_begin(const struct fault_fab *f, struct fault_qp *qp, uint32_t psn)
{
    if (f->numbers_return && qp->lives == 0)
        qp->life[qp->lives++] = (struct fault_life){
            .count = PSN_MASK + 1, .until_ns = f->numbers_gone_ns + f->packet_life_ns};
    qp->psn = qp->psn_first = psn & PSN_MASK;
}

void fault_psn_end(const struct fault_fab *f, struct fault_qp *qp)
{
    qp->target = NULL;
    const uint32_t count = (qp->psn - qp->psn_first) & PSN_MASK;
    if (f->packet_life_ns == 0 || count == 0)
        return;
    qp->life[qp->lives++ % FAULT_LIVES] =
        (struct fault_life){.psn_first = qp->psn_first,
                            .count = count,
                            .until_ns = fault_psn_now_ns(f) + f->packet_life_ns};
    qp->psn_first = qp->psn;
}

/* Whether so many numbers from psn on have one of them among them. */
static bool is_of_life(const struct fault_life *life, uint32_t psn, uint32_t count, uint64_t now)
{
    return life->count > 0 && now < life->until_ns &&
           (((psn - life->psn_first) & PSN_MASK) < life->count ||
            ((life->psn_first - psn) & PSN_MASK) < count);
}

/* An initiator that goes to another target ends one connection and begins one. Nobody has said
 * whether these packets take numbers: here each does or does not, as it comes. */
static uint32_t count_connecting(struct fault_fab *f, struct fault_qp *qp, const struct fab_wr *wr)
{
    enum { TAKES_PPM = 500000 };
    if (qp->base.type != FAB_QP_DCI || (qp->target == wr->ah && qp->target_qpn == wr->dest_qpn))
        return 0;
    qp->target = wr->ah;
    qp->target_qpn = wr->dest_qpn;
    return (uint32_t)fault_hits(&f->now, &qp->stream, TAKES_PPM) +
           (uint32_t)fault_hits(&f->now, &qp->stream, TAKES_PPM);
}

bool fault_psn_is_late(struct fault_fab *f, struct fault_qp *qp, const struct fab_wr *wr)
{
    if (f->packet_life_ns == 0 || qp->base.type == FAB_QP_UD)
        return false;
    const uint32_t mtu = 128u << atomic_load_explicit(&qp->mtu, memory_order_relaxed);
    const uint32_t psn = (qp->psn + count_connecting(f, qp, wr)) & PSN_MASK;
    uint64_t bytes = 0;
    bool late = false;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    const uint32_t count = (uint32_t)((bytes + mtu - 1) / mtu) + (bytes == 0);
    const uint64_t now_ns = fault_psn_now_ns(f);
    qp->psn = (psn + count) & PSN_MASK;
    for (uint32_t i = 0; i < FAULT_LIVES; i++)
        late = late || is_of_life(&qp->life[i], psn, count, now_ns);
    return late;
}
