/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs of a test bed's nodes (bed.h), and what is posted to them. */
#ifndef TESTS_UNIT_FABRIC_BED_QP_H
#define TESTS_UNIT_FABRIC_BED_QP_H

#include "bed.h"

static inline struct fab_qp *bed_qp_new(struct bed_node *n, enum fab_qp_type type,
                                        struct fab_cq *cq)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = n->pd,
                                 .type = type,
                                 .send_cq = cq,
                                 .recv_cq = cq,
                                 .cap = {.send_wr = 128,
                                         .recv_wr = type == FAB_QP_DCI ? 0 : 16,
                                         .send_sge = 4,
                                         .recv_sge = type == FAB_QP_DCI ? 0 : 4,
                                         .inline_bytes = 64}}};
    bed_do(n->fab, &ctl);
    return ctl.qp.x;
}

static inline void bed_modify(struct fab_qp *qp, struct ibv_qp_attr attr, int mask)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = qp, .attr = attr, .mask = mask | IBV_QP_STATE}};
    bed_do(qp->pd->fab, &ctl);
}

/* How a queue pair waits: 4.096 us << timeout, retry_cnt + 1 times. */
struct bed_patience {
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t out, room; /* READs and atomics: its own, and of the peer's; 0: 16 */
};
static const struct bed_patience bed_patient = {
    .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
static const struct bed_patience bed_hasty = {
    .timeout = 8, .retry_cnt = 1, .rnr_retry = 1, .min_rnr_timer = 1};

/* From RESET to RTS; peer is for RC alone. */
static inline void bed_connect(struct fab_qp *qp, const struct bed_card *peer,
                               struct bed_patience p)
{
    bool rc = qp->type == FAB_QP_RC, ud = qp->type == FAB_QP_UD;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = qp->pd->fab->caps.port_num,
                            .qkey = BED_QKEY,
                            .qp_access_flags = BED_ALL_ACCESS};
    bed_modify(qp, a,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | (rc ? IBV_QP_ACCESS_FLAGS : 0) |
                   (ud ? IBV_QP_QKEY : 0));
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_4096,
                             .max_dest_rd_atomic = p.room != 0 ? p.room : 16,
                             .min_rnr_timer = p.min_rnr_timer,
                             .ah_attr = {.is_global = 1, .port_num = 1}};
    if (rc) {
        a.dest_qp_num = peer->qpn;
        memcpy(a.ah_attr.grh.dgid.raw, peer->gid, 16);
    }
    bed_modify(qp, a,
               ud   ? 0
               : rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                    : IBV_QP_PATH_MTU);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = p.timeout,
                             .retry_cnt = p.retry_cnt,
                             .rnr_retry = p.rnr_retry,
                             .max_rd_atomic = p.out != 0 ? p.out : 16};
    bed_modify(qp, a,
               ud ? IBV_QP_SQ_PSN
                  : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline struct fab_qp *bed_qp(struct bed_node *n, enum fab_qp_type type,
                                    struct bed_patience p)
{
    struct fab_qp *qp = bed_qp_new(n, type, n->cq);
    bed_connect(qp, NULL, p);
    return qp;
}

/* A connected pair of RC queue pairs. */
static inline void bed_rc_pair(struct bed_node *a, struct bed_node *b, struct bed_patience p,
                               struct fab_qp *qp[2])
{
    qp[0] = bed_qp_new(a, FAB_QP_RC, a->cq);
    qp[1] = bed_qp_new(b, FAB_QP_RC, b->cq);
    struct bed_card card[2] = {bed_card(a, qp[0]), bed_card(b, qp[1])};
    bed_connect(qp[0], &card[1], p);
    bed_connect(qp[1], &card[0], p);
}

static inline void bed_qp_free(struct fab_qp *qp)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    bed_do(qp->pd->fab, &ctl);
}

static inline struct fab_ah *bed_ah(struct bed_node *n, const uint8_t gid[16])
{
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = n->pd, .attr = {.is_global = 1, .port_num = n->fab->caps.port_num}}};
    memcpy(ctl.ah.attr.grh.dgid.raw, gid, 16);
    bed_do(n->fab, &ctl);
    return ctl.ah.x;
}

static inline void bed_ah_free(struct fab_ah *ah)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_AH, .ah = {.x = ah}};
    bed_do(ah->pd->fab, &ctl);
}

/* A request from `local` (an offset in n's memory) to `remote` (an offset in the peer's). */
struct bed_wr {
    struct fab_wr wr;
    struct ibv_sge sge;
};

static inline void bed_fill(struct bed_wr *b, const struct bed_node *n, const struct bed_card *to,
                            struct fab_ah *ah, enum ibv_wr_opcode opcode, uint64_t local,
                            uint64_t remote, uint32_t length)
{
    b->sge = (struct ibv_sge){.addr = n->mr->addr + local, .length = length, .lkey = n->mr->lkey};
    b->wr = (struct fab_wr){.wr_id = 1,
                            .sg_list = &b->sge,
                            .num_sge = 1,
                            .opcode = opcode,
                            .send_flags = IBV_SEND_SIGNALED,
                            .key.rkey = to->rkey,
                            .remote_addr = to->addr + remote,
                            .ah = ah,
                            .dest_qpn = to->dctn};
    b->wr.dc_key = BED_KEY;
}

static inline void bed_post(struct fab_qp *qp, struct fab_wr *wr)
{
    struct fab_wr *bad;
    int status = fab_post_send(qp, wr, &bad);
    if (status != 0)
        fprintf(stderr, "post_send: %s\n", strerror(-status));
    BASE_ASSERT(status == 0);
}

/* Waits for one completion, ten seconds at most. */
static inline struct ibv_wc bed_wait(struct fab_cq *cq)
{
    struct ibv_wc wc;
    uint64_t start = base_clock_ns();
    for (;;) {
        int n = fab_poll(cq, 1, &wc);
        BASE_ASSERT(n >= 0);
        if (n == 1)
            return wc;
        BASE_ASSERT(base_clock_ns() - start < 10 * BASE_NS_PER_S);
    }
}

static inline enum ibv_wc_status bed_post_wait(struct fab_qp *qp, struct fab_wr *wr)
{
    bed_post(qp, wr);
    return bed_wait(qp->send_cq).status;
}

/* A receive of length bytes at an offset of the node's memory. */
static inline int bed_recv(struct bed_node *n, struct fab_qp *qp, uint64_t wr_id, uint64_t offset,
                           uint32_t length)
{
    struct ibv_sge sge = {.addr = n->mr->addr + offset, .length = length, .lkey = n->mr->lkey};
    struct fab_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return qp != NULL ? fab_post_recv(qp, &wr, &bad) : fab_post_srq_recv(n->srq, &wr, &bad);
}

#endif
