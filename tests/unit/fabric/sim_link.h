/* SPDX-License-Identifier: Apache-2.0 */
/* Links between nodes of a simulated network: an initiator that reaches another node, over RC or
 * DC; requests, and waiting for what becomes of them. */
#ifndef TESTS_SIM_LINK_H
#define TESTS_SIM_LINK_H

#include "sim_bed.h"

/* What both ends agree on, and how often an initiator tries again. */
struct bed_ways {
    uint8_t retry_cnt, max_rd_atomic, max_dest_rd_atomic;
};
static const struct bed_ways bed_usual = {7, 16, 16};

/* From RESET to RTS: of RC towards that queue pair at that GID; with the number of its first
 * packet. */
static inline void bed_connect_as(struct fab_qp *qp, const uint8_t gid[16], uint32_t qpn,
                                  uint32_t psn, const struct bed_ways *ways)
{
    const bool rc = qp->type == FAB_QP_RC;
    struct ibv_qp_attr a = fab_init_attr(qp->pd->fab);
    a.qp_access_flags = BED_ALL;
    a.qkey = 0x1234;
    ck_assert_int_eq(bed_modify(qp, &a,
                                IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                    (rc                      ? IBV_QP_ACCESS_FLAGS
                                     : qp->type == FAB_QP_UD ? IBV_QP_QKEY
                                                             : 0)),
                     0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = qpn,
                             .rq_psn = psn,
                             .max_dest_rd_atomic = ways->max_dest_rd_atomic,
                             .min_rnr_timer = 1};
    if (rc)
        a.ah_attr = fab_address(qp->pd->fab, gid, 0);
    ck_assert_int_eq(bed_modify(qp, &a,
                                IBV_QP_STATE | (rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                                         IBV_QP_MIN_RNR_TIMER
                                                : qp->type == FAB_QP_DCI ? IBV_QP_PATH_MTU
                                                                         : 0)),
                     0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = BED_TIMEOUT,
                             .retry_cnt = ways->retry_cnt,
                             .rnr_retry = 7,
                             .sq_psn = psn,
                             .max_rd_atomic = ways->max_rd_atomic};
    ck_assert_int_eq(
        bed_modify(qp, &a,
                   IBV_QP_STATE | IBV_QP_SQ_PSN |
                       (qp->type == FAB_QP_UD ? 0
                                              : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)),
        0);
}

static inline void bed_connect(struct fab_qp *qp, const uint8_t gid[16], uint32_t qpn, uint32_t psn)
{
    bed_connect_as(qp, gid, qpn, psn, &bed_usual);
}

/* An initiator on a that reaches b: RC with b's own, or a DCI. */
struct bed_link {
    struct bed_node *a, *b;
    struct fab_qp *qp, *peer;
    struct fab_ah *ah;
};

static inline void bed_link_up(struct bed_link *l, uint32_t psn)
{
    if (l->peer != NULL)
        bed_connect(l->peer, l->a->fab->caps.gid, l->qp->qpn, psn);
    bed_connect(l->qp, l->b->fab->caps.gid, l->peer != NULL ? l->peer->qpn : 0, psn);
}

static inline void bed_link(struct bed_link *l, struct bed_node *a, struct bed_node *b,
                            enum fab_qp_type type)
{
    *l = (struct bed_link){.a = a, .b = b, .qp = bed_qp(a, type)};
    struct fab_ctl c = {.kind = FAB_CREATE_AH,
                        .ah = {.pd = a->pd, .attr = fab_address(a->fab, b->fab->caps.gid, 0)}};
    ck_assert_int_eq(bed_call(a->fab, &c), 0);
    l->ah = c.ah.x;
    if (type == FAB_QP_RC)
        l->peer = bed_qp(b, type);
    bed_link_up(l, 100);
}

static inline void bed_unlink(struct bed_link *l)
{
    bed_free(l->a, FAB_DESTROY_QP, l->qp);
    bed_free(l->b, FAB_DESTROY_QP, l->peer);
    bed_free(l->a, FAB_DESTROY_AH, l->ah);
}

/* `bytes` between that place of a and that of b. */
struct bed_request {
    struct fab_wr wr;
    struct ibv_sge sge;
};

static inline struct bed_request bed_request(const struct bed_link *l, uint64_t id,
                                             enum ibv_wr_opcode opcode, uint32_t local,
                                             uint32_t remote, uint32_t bytes)
{
    return (struct bed_request){
        .sge = {.addr = l->a->mr->addr + local, .length = bytes, .lkey = l->a->mr->lkey},
        .wr = {.wr_id = id,
               .num_sge = 1,
               .opcode = opcode,
               .send_flags = IBV_SEND_SIGNALED,
               .key.rkey = l->b->mr->rkey,
               .remote_addr = l->b->mr->addr + remote,
               .ah = l->ah,
               .dest_qpn = l->b->dct != NULL ? l->b->dct->dctn : 0,
               .dc_key = 5}};
}

static inline int bed_post(const struct bed_link *l, struct bed_request *r)
{
    struct fab_wr *bad;
    r->wr.sg_list = &r->sge;
    return fab_post_send(l->qp, &r->wr, &bad);
}

/* Goes on until a completion comes, for a minute at most. */
static inline struct ibv_wc bed_wait(struct bed_node *n)
{
    struct ibv_wc wc = {.wr_id = UINT64_MAX};
    const uint64_t end = sim_net_now(n->net) + 60000000000ull;
    int got;
    while ((got = fab_poll(n->cq, 1, &wc)) == 0 && sim_net_next_due(n->net) <= end)
        (void)sim_net_step(n->net);
    ck_assert_msg(got == 1, "no completion comes: %d", got);
    return wc;
}

static inline enum ibv_wc_status bed_do(const struct bed_link *l, enum ibv_wr_opcode opcode,
                                        uint32_t local, uint32_t remote, uint32_t bytes)
{
    struct bed_request r = bed_request(l, 1, opcode, local, remote, bytes);
    ck_assert_int_eq(bed_post(l, &r), 0);
    return bed_wait(l->a).status;
}

/* Lets so much time go by. */
static inline void bed_pass(struct sim_net *net, uint64_t ns)
{
    sim_net_run_until(net, sim_net_now(net) + ns);
}

#endif
