/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/lane_event.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "control/world.h"
#include "dci.h"
#include "device_objects.h"
#include "bounds.h"
#include "pool.h"

enum { PSNS = 1 << 24, UNCOUNTED = PSNS };
static_assert(LANE_POST_BYTES == 3 * (128 << IBV_MTU_4096), "packets of the largest MTU");

/* Of each work request what the lane may make of workers', or all that the device has: the lane
 * sees to the rest. */
uint32_t agent_dci_sges(const struct fab_caps *caps)
{
    return caps->max_sge < LANE_MERGE_SGES ? caps->max_sge : LANE_MERGE_SGES;
}

uint32_t agent_dci_inline_bytes(const struct fab_caps *caps)
{
    return caps->max_inline < SCHEMA_MAX_INLINE ? caps->max_inline : SCHEMA_MAX_INLINE;
}

static void begin_first_life(struct pool *p, struct agent_dci *d, struct fab_qp *qp,
                             uint64_t gone_ns)
{
    struct agent_device *device = &p->device;
    *d = (struct agent_dci){.qp = qp,
                            .mtu = device->path_mtu,
                            .pkey_index = qp->pd->service.pkey_index,
                            .address = device->addresses,
                            .behind = UNCOUNTED,
                            .gone_ns = gone_ns + device->fab->caps.time_wait_ns};
    (void)world_random(p->world, &d->psn, sizeof d->psn); /* else 0, as good as any that is known */
    d->psn %= PSNS;
}

struct agent_dci *agent_dci_add(struct pool *p, struct fab_qp *qp, uint64_t gone_ns)
{
    struct agent_device *device = &p->device;
    BASE_ASSERT(device->dcis < sizeof device->dci / sizeof device->dci[0]);
    struct agent_dci *d = &device->dci[device->dcis++];
    begin_first_life(p, d, qp, gone_ns);
    return d;
}

struct agent_dci *agent_dci_find(struct pool *p, const struct fab_qp *qp)
{
    uint32_t i = 0;
    while (p->device.dci[i].qp != qp)
        BASE_ASSERT(++i < p->device.dcis);
    return &p->device.dci[i];
}

void agent_dci_remove(struct pool *p, const struct fab_qp *qp)
{
    struct agent_device *device = &p->device;
    *agent_dci_find(p, qp) = device->dci[device->dcis - 1];
    device->dcis--;
}

void agent_dci_leave_place(struct pool *p, const struct fab_qp *qp)
{
    *agent_dci_find(p, qp) = (struct agent_dci){.qp = NULL};
}

void agent_dci_replace(struct pool *p, bool system, struct fab_qp *qp, uint64_t gone_ns)
{
    uint32_t i = system ? 0 : 1;
    while (p->device.dci[i].qp != NULL)
        BASE_ASSERT(++i < p->device.dcis && !system);
    begin_first_life(p, &p->device.dci[i], qp, gone_ns);
}

bool agent_dcis_have_room(const struct pool *p, uint32_t others)
{
    const uint32_t room = 1 + p->prewarm.dcis + p->device.max_spares;
    return p->device.dcis - agent_dcis_missing(p) + others < room;
}

void agent_dci_end_life(const struct pool *p, struct agent_dci *d, uint64_t posted)
{
    const uint64_t now_ns = world_now_ns(p->world), used = posted / (128u << d->mtu) + 1;
    d->behind = (now_ns < d->gone_ns ? d->behind : 0) + used;
    d->gone_ns = now_ns + p->device.fab->caps.time_wait_ns;
    d->psn = (uint32_t)((d->psn + used) % PSNS);
}

uint64_t agent_dci_rests_ns(const struct pool *p, const struct agent_dci *d)
{
    return d->behind >= PSNS / 2 && world_now_ns(p->world) < d->gone_ns ? d->gone_ns : 0;
}

uint64_t agent_dcis_rest_ns(const struct pool *p)
{
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < p->device.dcis; i++) {
        const uint64_t rests_ns = agent_dci_rests_ns(p, &p->device.dci[i]);
        last_ns = rests_ns > last_ns ? rests_ns : last_ns;
    }
    return last_ns;
}

bool agent_dci_is_of_now(const struct pool *p, const struct agent_dci *d)
{
    return d->pkey_index == d->qp->pd->service.pkey_index && d->address == p->device.addresses;
}

uint32_t agent_dcis_resting(const struct pool *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->device.dcis; i++)
        n += agent_dci_rests_ns(p, &p->device.dci[i]) != 0;
    return n;
}

uint32_t agent_dcis_missing(const struct pool *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->device.dcis; i++)
        n += p->device.dci[i].qp == NULL;
    return n;
}

void agent_dcis_count(const struct pool *p, struct dci_counts *sum)
{
    const uint64_t until_ns = agent_dcis_rest_ns(p);
    sum->resting += agent_dcis_resting(p);
    sum->until_ns = until_ns > sum->until_ns ? until_ns : sum->until_ns;
    sum->missing += agent_dcis_missing(p);
    sum->replaced += p->repairs.replaced;
}

void agent_dcis_status(const struct dci_counts *sum, uint64_t now_ns, struct base_text *t)
{
    const uint64_t left_ns = sum->until_ns > now_ns ? sum->until_ns - now_ns : 0;
    base_json_u64(t, "dcis_resting", sum->resting);
    base_json_u64(t, "dcis_rest_for_ms", (left_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS);
    base_json_u64(t, "dcis_missing", sum->missing);
    base_json_u64(t, "dcis_replaced", sum->replaced);
}

bool agent_dci_step(const struct pool *p, struct agent_dci *d, uint32_t step, struct fab_ctl *ctl)
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
    ctl->modify.x = d->qp;
    struct ibv_qp_attr *attr = &ctl->modify.attr;
    *attr = fab_pd_init_attr(d->qp->pd);
    attr->qp_state = steps[step].state;
    if (steps[step].mask & IBV_QP_PKEY_INDEX)
        d->pkey_index = attr->pkey_index;
    if (steps[step].state == IBV_QPS_RTR) /* when it is submitted, the device's is put into it */
        d->address = p->device.addresses;
    attr->path_mtu = d->mtu;
    attr->timeout = (uint8_t)p->config->ack_timeout;
    attr->retry_cnt = ACK_RETRIES;
    attr->rnr_retry = RNR_RETRIES;
    attr->sq_psn = d->psn;
    attr->max_rd_atomic = reads < 16 ? (uint8_t)reads : 16;
    ctl->modify.mask = IBV_QP_STATE | steps[step].mask;
    return true;
}

struct fab_ctl agent_dci_creation(const struct pool *p, struct fab_pd *pd)
{
    const struct agent_device *d = &p->device;
    return (struct fab_ctl){.kind = FAB_CREATE_QP,
                            .qp = {.pd = pd,
                                   .type = FAB_QP_DCI,
                                   .send_cq = d->cq,
                                   .recv_cq = d->cq,
                                   .cap = {.send_wr = d->sq_depth,
                                           .send_sge = agent_dci_sges(&d->fab->caps),
                                           .inline_bytes = agent_dci_inline_bytes(&d->fab->caps)}}};
}
