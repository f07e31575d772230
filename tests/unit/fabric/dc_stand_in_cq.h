/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's one CQ. It has as much room as it was made with: the completion for which there is
 * none is lost, and all behind it, and an asynchronous event says so. What is in it already can be
 * polled: libmlx5 knows nothing of that. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_CQ_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_CQ_H

#include "dc_stand_in_device.h"

/* One more waits to be polled, if there is room. */
static inline void fake_push(struct fake_qp *q, uint32_t i, const struct ibv_wc *wc)
{
    ck_assert_ptr_nonnull(fake.cq);
    ck_assert(fake.cq->cqe > 0 && fake.cq->cqe <= FAKE_CQE);
    if (fake.completions >= fake.cq->cqe)
        fake.overflowed = true;
    if (fake.overflowed)
        return;
    fake.of[fake.completions] = (struct fake_of){.qp = q, .index = i};
    fake.wc[fake.completions++] = *wc;
}

/* What the device tells of the CQ. False: nothing. */
static inline bool fake_cq_event(struct ibv_async_event *e)
{
    *e = (struct ibv_async_event){.event_type = IBV_EVENT_CQ_ERR, .element.cq = fake.cq};
    return fake.overflowed;
}

/* Request i is over, with a completion if it is to have one. */
static inline void fake_end(struct fake_qp *q, uint32_t i, enum ibv_wc_status status)
{
    q->wr[i % FAKE_WRS].over = true;
    if (q->wr[i % FAKE_WRS].signalled || status != IBV_WC_SUCCESS) {
        const struct ibv_wc wc = {
            .wr_id = q->wr[i % FAKE_WRS].wr_id, .status = status, .qp_num = q->ex.qp_base.qp_num};
        fake_push(q, i, &wc);
    }
    while (q->oldest != q->head && q->wr[q->oldest % FAKE_WRS].over)
        q->oldest++;
}

/* The device completes the oldest n requests: the last one with a status, those before it well. */
static inline void fake_completes(struct ibv_qp *qp, uint32_t n, enum ibv_wc_status status)
{
    struct fake_qp *q = (struct fake_qp *)qp;
    ck_assert_uint_le(n, q->head - q->oldest);
    for (uint32_t i = 1; i <= n; i++)
        fake_end(q, q->oldest, i == n ? status : IBV_WC_SUCCESS);
    if (status != IBV_WC_SUCCESS)
        qp->state = IBV_QPS_ERR;
}

static inline int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq;
    pthread_mutex_lock(&fake_cq_lock);
    if (fake.failing != NULL && fake.completions == 0)
        fake.goes_on(fake.failing);
    int got = n < fake.completions ? n : fake.completions;
    memcpy(wc, fake.wc, (size_t)got * sizeof *wc);
    for (int i = 0; i < got; i++)
        fake.of[i].qp->tail = fake.of[i].index + 1; /* mlx5_parse_cqe: backwards too */
    fake.completions -= got;
    memmove(fake.of, fake.of + got, (size_t)fake.completions * sizeof fake.of[0]);
    memmove(fake.wc, fake.wc + got, (size_t)fake.completions * sizeof *wc);
    pthread_mutex_unlock(&fake_cq_lock);
    return got;
}

static void fake_forget(uint32_t number)
{
    int kept = 0;
    pthread_mutex_lock(&fake_cq_lock);
    for (int i = 0; i < fake.completions; i++)
        if (fake.wc[i].qp_num != number) {
            fake.of[kept] = fake.of[i];
            fake.wc[kept++] = fake.wc[i];
        }
    fake.completions = kept;
    pthread_mutex_unlock(&fake_cq_lock);
}

#endif
