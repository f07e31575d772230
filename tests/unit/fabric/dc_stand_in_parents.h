/* SPDX-License-Identifier: Apache-2.0 */
/* What queue pairs of the stand-in are made with: protection domains, CQs, SRQs and address
 * handles.
 */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_PARENTS_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_PARENTS_H

#include "dc_stand_in_device.h"

static struct ibv_pd *fake_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = context;
    fake.live++;
    return pd;
}

static int fake_free_pd(struct ibv_pd *pd)
{
    free(pd);
    fake.live--;
    return 0;
}

static struct ibv_cq *fake_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                     struct ibv_comp_channel *channel, int vector)
{
    (void)vector;
    struct ibv_cq *cq = calloc(1, sizeof *cq);
    *cq = (struct ibv_cq){
        .context = context, .cqe = cqe, .cq_context = cq_context, .channel = channel};
    fake.live++;
    return cq;
}

static int fake_destroy_cq(struct ibv_cq *cq)
{
    free(cq);
    fake.live--;
    return 0;
}

static struct ibv_srq *fake_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = calloc(1, sizeof *srq);
    srq->pd = pd;
    srq->srq_context = attr->srq_context;
    fake.live++;
    return srq;
}

static int fake_destroy_srq(struct ibv_srq *srq)
{
    free(srq);
    fake.live--;
    return 0;
}

static struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *ah = calloc(1, sizeof *ah);
    ah->pd = pd;
    fake.last_ah = *attr;
    fake.live++;
    return ah;
}

static int fake_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    fake.live--;
    return 0;
}

#endif
