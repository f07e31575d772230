/* SPDX-License-Identifier: Apache-2.0 */
/* DC initiators: with what one is created, and how it is brought up. */
#include <string.h>

#include "agent.h"

/* Of each request what workers may ask for, or all that the device has: the lane sees to the rest.
 */
uint32_t dci_sges(const struct fab_caps *caps)
{
    return caps->max_sge < SCHEMA_MAX_SGE ? caps->max_sge : SCHEMA_MAX_SGE;
}

uint32_t dci_inline_bytes(const struct fab_caps *caps)
{
    return caps->max_inline < SCHEMA_MAX_INLINE ? caps->max_inline : SCHEMA_MAX_INLINE;
}

/* Another one in each life, so that nothing of the one before is taken for an answer. */
static uint32_t random_psn(struct world *w)
{
    uint32_t psn = 0;
    (void)world_random(w, &psn, sizeof psn); /* else 0, as good as any that is known */
    return psn & 0xffffff;
}

bool dci_step(const struct pool *p, struct fab_qp *qp, uint32_t step, struct fab_ctl *ctl)
{
    static const struct {
        enum ibv_qp_state state;
        int mask;
    } steps[] = {
        {IBV_QPS_RESET, 0},
        {IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
        {IBV_QPS_RTR, IBV_QP_PATH_MTU},
        {IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC},
    };
    const uint32_t reads = p->device.fab->caps.max_rd_atomic;
    if (step >= sizeof steps / sizeof steps[0])
        return false;
    ctl->kind = FAB_MODIFY_QP;
    ctl->modify.x = qp;
    struct ibv_qp_attr *attr = &ctl->modify.attr;
    *attr = fab_pd_init_attr(qp->pd);
    attr->qp_state = steps[step].state;
    attr->path_mtu = p->device.path_mtu;
    attr->timeout = (uint8_t)p->config->ack_timeout;
    attr->retry_cnt = ACK_RETRIES;
    attr->rnr_retry = RNR_RETRIES;
    attr->sq_psn = random_psn(p->world);
    attr->max_rd_atomic = reads < 16 ? (uint8_t)reads : 16;
    ctl->modify.mask = IBV_QP_STATE | steps[step].mask;
    return true;
}

struct fab_ctl dci_creation(const struct pool *p, struct fab_pd *pd)
{
    const struct agent_device *d = &p->device;
    return (struct fab_ctl){.kind = FAB_CREATE_QP,
                            .qp = {.pd = pd,
                                   .type = FAB_QP_DCI,
                                   .send_cq = d->cq,
                                   .recv_cq = d->cq,
                                   .cap = {.send_wr = d->sq_depth,
                                           .send_sge = dci_sges(&d->fab->caps),
                                           .inline_bytes = dci_inline_bytes(&d->fab->caps)}}};
}
