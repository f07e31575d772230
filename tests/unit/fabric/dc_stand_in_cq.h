/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's one CQ. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_CQ_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_CQ_H

#include "dc_stand_in_device.h"

/* The device completes the oldest n requests: the last one with a status, those before it well. */
static inline void fake_completes(struct ibv_qp *qp, uint32_t n, enum ibv_wc_status status)
{
    struct fake_qp *q = (struct fake_qp *)qp;
    ck_assert_uint_le(n, q->head - q->tail);
    for (uint32_t i = 1; i <= n; i++, q->tail++) {
        enum ibv_wc_status of_this = i == n ? status : IBV_WC_SUCCESS;
        if (q->wr[q->tail % FAKE_WRS].signalled || of_this != IBV_WC_SUCCESS)
            fake.wc[fake.completions++] = (struct ibv_wc){
                .wr_id = q->wr[q->tail % FAKE_WRS].wr_id, .status = of_this, .qp_num = qp->qp_num};
    }
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
    fake.completions -= got;
    memmove(fake.wc, fake.wc + got, (size_t)fake.completions * sizeof *wc);
    pthread_mutex_unlock(&fake_cq_lock);
    return got;
}

static void fake_forget(uint32_t number)
{
    int kept = 0;
    pthread_mutex_lock(&fake_cq_lock);
    for (int i = 0; i < fake.completions; i++)
        if (fake.wc[i].qp_num != number)
            fake.wc[kept++] = fake.wc[i];
    fake.completions = kept;
    pthread_mutex_unlock(&fake_cq_lock);
}

#endif
