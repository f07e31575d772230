/* SPDX-License-Identifier: Apache-2.0 */
#include "model_bed.h"

#include <errno.h>
#include <string.h>

enum {
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
             IBV_ACCESS_REMOTE_ATOMIC,
    READS = 16,   /* at a time, of a queue pair */
    TIMEOUT = 17, /* 0.5 s: what a card is behind with takes long, and nothing is lost */
    SGES = 8,
    INLINE = 64
};

static int call(struct fab *fab, struct fab_ctl *ctl, struct base_errbuf *err)
{
    const int status = fab_call(fab, ctl);
    return status == 0
               ? 0
               : base_err(err, status, "%s failed: %s", fab_ctl_name(ctl->kind), strerror(-status));
}

static int open_node(struct perf_bed *bed, uint32_t which, uint32_t slots, uint64_t bytes,
                     struct base_errbuf *err)
{
    const struct sim_device_attr attr = {.node = which};
    struct perf_bed_node *n = &bed->node[which];
    int status = sim_device_open(bed->net, &attr, &n->fab, err);
    if (status != 0)
        return status;
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = bed->qps * slots + 1}};
    if ((status = call(n->fab, &pd, err)) != 0 || (status = call(n->fab, &cq, err)) != 0)
        return status;
    n->pd = pd.pd.x;
    n->cq = cq.cq.x;
    status = fab_mem_alloc_for(n->fab, bytes, "kedge-perf", &n->mem);
    if (status != 0)
        return base_err(err, status, "%llu bytes of memory: %s", (unsigned long long)bytes,
                        strerror(-status));
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = n->pd, .mem = &n->mem, .length = bytes, .access = ACCESS, .iova = 1ull << 50}};
    status = call(n->fab, &mr, err);
    n->mr = mr.mr.x;
    for (uint32_t i = 0; i < bed->qps && status == 0; i++) {
        struct fab_ctl qp = {
            .kind = FAB_CREATE_QP,
            .qp = {.pd = n->pd,
                   .type = FAB_QP_RC,
                   .send_cq = n->cq,
                   .recv_cq = n->cq,
                   .cap = {.send_wr = slots, .send_sge = SGES, .inline_bytes = INLINE}}};
        status = call(n->fab, &qp, err);
        n->qp[i] = qp.qp.x;
    }
    return status;
}

static int modify(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask,
                  struct base_errbuf *err)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                        .modify = {.x = qp, .attr = *attr, .mask = mask | IBV_QP_STATE}};
    return call(qp->pd->fab, &c, err);
}

static int connect_qp(struct fab_qp *qp, const struct fab_qp *peer, struct base_errbuf *err)
{
    struct ibv_qp_attr a = fab_init_attr(qp->pd->fab);
    a.qp_access_flags = ACCESS;
    int status = modify(qp, &a, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, err);
    if (status != 0)
        return status;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = qp->pd->fab->caps.mtu,
                             .dest_qp_num = peer->qpn,
                             .max_dest_rd_atomic = READS,
                             .min_rnr_timer = 1,
                             .ah_attr = fab_address(qp->pd->fab, peer->pd->fab->caps.gid, 0)};
    status = modify(qp, &a,
                    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                    err);
    if (status != 0)
        return status;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = TIMEOUT,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = READS};
    return modify(qp, &a,
                  IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC,
                  err);
}

int perf_bed_open(struct perf_bed *bed, const struct model_preset *preset, uint64_t seed,
                  uint32_t qps, uint32_t slots, uint64_t bytes, struct base_errbuf *err)
{
    *bed = (struct perf_bed){.net = sim_net_new(seed, NULL, 0), .qps = qps};
    if (bed->net == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    sim_net_set_model(bed->net, preset);
    int status = 0;
    for (uint32_t i = 0; i < 2 && status == 0; i++)
        status = open_node(bed, i, slots, bytes, err);
    for (uint32_t i = 0; i < 2 * qps && status == 0; i++)
        status = connect_qp(bed->node[i % 2].qp[i / 2], bed->node[(i + 1) % 2].qp[i / 2], err);
    if (status != 0)
        perf_bed_close(bed);
    return status;
}

/* The devices go with all that is on them. */
void perf_bed_close(struct perf_bed *bed)
{
    for (uint32_t i = 0; i < 2; i++)
        if (bed->node[i].fab != NULL)
            sim_device_crash(bed->node[i].fab);
    sim_net_free(bed->net);
    *bed = (struct perf_bed){.net = NULL};
}

const struct fab_model_counters *perf_bed_counters(const struct perf_bed *bed)
{
    return &bed->node[0].fab->model->counters;
}
