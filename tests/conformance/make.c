/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's half that makes and frees objects, and moves queue pairs and links. */
#include <string.h>

#include "harness.h"

enum { INLINE = 128 /* bytes, which the agent asks for */ };

#define MUST(fab, ctl) ck_assert_int_eq(fab_call(fab, ctl), 0)

struct fab_pd *make_pd(struct fab *fab)
{
    struct fab_ctl ctl = {.kind = FAB_ALLOC_PD};
    MUST(fab, &ctl);
    ck_assert_ptr_eq(ctl.pd.x->fab, fab);
    return ctl.pd.x;
}

struct fab_cq *make_cq(struct fab *fab, uint32_t cqe, struct fab_chan *chan)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe, .chan = chan}};
    MUST(fab, &ctl);
    ck_assert_uint_ge(ctl.cq.x->cqe, cqe);
    return ctl.cq.x;
}

struct fab_chan *make_chan(struct fab *fab)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_CHAN};
    MUST(fab, &ctl);
    ck_assert_int_ge(ctl.chan.x->fd, 0);
    return ctl.chan.x;
}

struct fab_srq *make_srq(struct fab_pd *pd, uint32_t max_wr)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = pd, .max_wr = max_wr, .max_sge = 1}};
    MUST(pd->fab, &ctl);
    ck_assert_uint_ge(ctl.srq.x->max_wr, max_wr);
    return ctl.srq.x;
}

struct fab_mr *make_mr(struct fab_pd *pd, const struct fab_mem *mem, uint64_t offset,
                       uint64_t length, unsigned access)
{
    struct fab_ctl ctl = {
        .kind = FAB_REG_MR,
        .mr = {.pd = pd, .mem = mem, .offset = offset, .length = length, .access = access}};
    MUST(pd->fab, &ctl);
    ck_assert_uint_eq(ctl.mr.x->length, length);
    ck_assert_uint_eq(ctl.mr.x->addr, (uintptr_t)mem->addr + offset);
    return ctl.mr.x;
}

int make_mr_at(struct fab_pd *pd, const struct fab_mem *mem, uint64_t offset, uint64_t length,
               unsigned access, uint64_t iova, struct fab_mr **out)
{
    struct fab_ctl ctl = {.kind = FAB_REG_MR,
                          .mr = {.pd = pd,
                                 .mem = mem,
                                 .offset = offset,
                                 .length = length,
                                 .access = access,
                                 .iova = iova}};
    int status = fab_call(pd->fab, &ctl);
    if (status == 0)
        *out = ctl.mr.x;
    return status;
}

struct fab_ah *make_ah(struct fab_pd *pd, const uint8_t gid[16])
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_AH,
                          .ah = {.pd = pd, .attr = fab_address(pd->fab, gid, pd->fab->caps.lid)}};
    MUST(pd->fab, &ctl);
    ck_assert_mem_eq(ctl.ah.x->dgid, gid, 16);
    return ctl.ah.x;
}

struct fab_dct *make_dct(struct node *n, struct fab_srq *srq, uint64_t key)
{
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = n->pd, .cq = n->cq, .srq = srq, .dc_key = key, .access = ALL_ACCESS}};
    MUST(n->fab, &ctl);
    ck_assert_uint_ne(ctl.dct.x->dctn, 0);
    return ctl.dct.x;
}

struct fab_qp *make_qp(struct node *n, enum fab_qp_type type, const struct qp_options *options)
{
    struct qp_options o = options != NULL ? *options : (struct qp_options){0};
    const struct fab_caps *caps = &n->fab->caps;
    uint32_t sge = o.sge != 0 ? o.sge : 4;
    bool receives = type != FAB_QP_DCI && o.srq == NULL;
    if (sge > caps->max_sge)
        sge = caps->max_sge;
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = o.pd != NULL ? o.pd : n->pd,
               .type = type,
               .send_cq = o.send_cq != NULL ? o.send_cq : n->cq,
               .recv_cq = o.recv_cq != NULL ? o.recv_cq : n->cq,
               .srq = o.srq,
               .cap = {.send_wr = o.send_wr != 0 ? o.send_wr : 32,
                       .recv_wr = !receives        ? 0
                                  : o.recv_wr != 0 ? o.recv_wr
                                                   : 32,
                       .send_sge = sge,
                       .recv_sge = receives ? sge : 0,
                       .inline_bytes = caps->max_inline < INLINE ? caps->max_inline : INLINE},
               .user = n}};
    MUST(n->fab, &ctl);
    ck_assert_ptr_eq(ctl.qp.x->user, n);
    ck_assert_uint_ne(ctl.qp.x->qpn, 0);
    ck_assert_uint_lt(ctl.qp.x->qpn, 1 << 24);
    return ctl.qp.x;
}

#define FREE(function, type, kind_, member)                                                        \
    int function(struct type *object)                                                              \
    {                                                                                              \
        struct fab_ctl ctl = {.kind = kind_, .member = {.x = object}};                             \
        return fab_call(FAB_OF(object), &ctl);                                                     \
    }
#define FAB_OF(object) (object)->fab
FREE(free_pd, fab_pd, FAB_FREE_PD, pd)
FREE(free_cq, fab_cq, FAB_DESTROY_CQ, cq)
FREE(free_chan, fab_chan, FAB_DESTROY_CHAN, chan)
#undef FAB_OF
#define FAB_OF(object) (object)->pd->fab
FREE(free_srq, fab_srq, FAB_DESTROY_SRQ, srq)
FREE(free_mr, fab_mr, FAB_DEREG_MR, mr)
FREE(free_ah, fab_ah, FAB_DESTROY_AH, ah)
FREE(free_qp, fab_qp, FAB_DESTROY_QP, qp)
FREE(free_dct, fab_dct, FAB_DESTROY_DCT, dct)

/* ---- states */

int attr_init(const struct fab_qp *qp, unsigned access, struct ibv_qp_attr *attr)
{
    *attr = fab_init_attr(qp->pd->fab);
    attr->qp_access_flags = access;
    attr->qkey = 0x1234;
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (qp->type == FAB_QP_RC)
        mask |= IBV_QP_ACCESS_FLAGS;
    if (qp->type == FAB_QP_UD)
        mask |= IBV_QP_QKEY;
    return mask;
}

static const uint8_t nobody[16];

int attr_rtr(const struct fab_qp *qp, const uint8_t gid[16], uint32_t qpn,
             const struct rc_options *options, struct ibv_qp_attr *attr)
{
    const struct fab_caps *caps = &qp->pd->fab->caps;
    uint8_t timer = options != NULL && options->min_rnr_timer != 0 ? options->min_rnr_timer : 1;
    *attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = caps->mtu,
        .dest_qp_num = qpn,
        .max_dest_rd_atomic = caps->max_rd_atomic < 16 ? (uint8_t)caps->max_rd_atomic : 16,
        .min_rnr_timer = timer,
        .ah_attr = fab_address(qp->pd->fab, gid != NULL ? gid : nobody, caps->lid)};
    switch (qp->type) {
    case FAB_QP_RC:
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case FAB_QP_DCI:
        return IBV_QP_STATE | IBV_QP_PATH_MTU;
    default:
        return IBV_QP_STATE;
    }
}

int attr_rts(const struct fab_qp *qp, const struct rc_options *options, struct ibv_qp_attr *attr)
{
    struct rc_options o = options != NULL ? *options : (struct rc_options){0};
    uint32_t reads = qp->pd->fab->caps.max_rd_atomic;
    *attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                 .timeout = o.timeout != 0 ? o.timeout : 18,
                                 .retry_cnt = o.retry_cnt != 0 ? (uint8_t)(o.retry_cnt - 1) : 7,
                                 .rnr_retry = o.rnr_retry != 0 ? (uint8_t)(o.rnr_retry - 1) : 7,
                                 .max_rd_atomic = reads < 16 ? (uint8_t)reads : 16};
    if (qp->type == FAB_QP_UD)
        return IBV_QP_STATE | IBV_QP_SQ_PSN;
    return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
}

int modify(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP, .modify = {.x = qp, .attr = *attr, .mask = mask}};
    return fab_call(qp->pd->fab, &ctl);
}

int modify_state(struct fab_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return modify(qp, &attr, IBV_QP_STATE);
}

/* By both ways to ask. */
enum ibv_qp_state state_of(struct fab_qp *qp)
{
    struct fab_ctl ctl = {.kind = FAB_QUERY_QP, .asked.x = qp};
    const enum ibv_qp_state state = fab_qp_state(qp);
    MUST(qp->pd->fab, &ctl);
    ck_assert_int_eq(ctl.asked.state, state);
    return state;
}

void bring_to(struct fab_qp *qp, enum ibv_qp_state state, const uint8_t gid[16], uint32_t qpn,
              const struct rc_options *options)
{
    struct ibv_qp_attr attr;
    unsigned access = options != NULL && options->access != 0 ? options->access : ALL_ACCESS;
    if (state_of(qp) != IBV_QPS_RESET)
        ck_assert_int_eq(modify_state(qp, IBV_QPS_RESET), 0);
    if (state == IBV_QPS_RESET)
        return;
    int mask = attr_init(qp, access, &attr);
    ck_assert_int_eq(modify(qp, &attr, mask), 0);
    if (state == IBV_QPS_INIT)
        return;
    mask = attr_rtr(qp, gid, qpn, options, &attr);
    ck_assert_int_eq(modify(qp, &attr, mask), 0);
    if (state == IBV_QPS_RTR)
        return;
    mask = attr_rts(qp, options, &attr);
    ck_assert_int_eq(modify(qp, &attr, mask), 0);
}

/* ---- links */

void link_open(struct link *l, enum fab_transport transport, struct node *a, struct node *b,
               const struct rc_options *options, const struct qp_options *qp_options)
{
    *l = (struct link){.transport = transport, .a = a, .b = b};
    if (transport == FAB_RC) {
        l->qp = make_qp(a, FAB_QP_RC, qp_options);
        l->peer = make_qp(b, FAB_QP_RC, NULL);
    } else {
        l->qp = make_qp(a, FAB_QP_DCI, qp_options);
        l->srq = make_srq(b->pd, 32);
        l->dct = make_dct(b, l->srq, 0x1122334455667788);
        l->ah = make_ah(a->pd, b->fab->caps.gid);
    }
    link_repair(l, options);
}

/* Where time costs nothing, packets of the former life are waited for, as fabric.h wants it. */
static void rest_link(struct link *l)
{
    if (!time_is_free() || l->peer == NULL)
        return;
    ck_assert_int_eq(modify_state(l->qp, IBV_QPS_RESET), 0);
    ck_assert_int_eq(modify_state(l->peer, IBV_QPS_RESET), 0);
    pause_us((unsigned)(l->a->fab->caps.time_wait_ns / 1000));
}

void link_repair(struct link *l, const struct rc_options *options)
{
    rest_link(l);
    if (l->peer != NULL) {
        bring_to(l->peer, IBV_QPS_RTS, l->a->fab->caps.gid, l->qp->qpn, options);
        bring_to(l->qp, IBV_QPS_RTS, l->b->fab->caps.gid, l->peer->qpn, options);
    } else {
        bring_to(l->qp, IBV_QPS_RTS, NULL, 0, options);
    }
}

void link_close(struct link *l)
{
    ck_assert_int_eq(free_qp(l->qp), 0);
    if (l->peer != NULL)
        ck_assert_int_eq(free_qp(l->peer), 0);
    if (l->dct != NULL)
        ck_assert_int_eq(free_dct(l->dct), 0);
    if (l->srq != NULL)
        ck_assert_int_eq(free_srq(l->srq), 0);
    if (l->ah != NULL)
        ck_assert_int_eq(free_ah(l->ah), 0);
}

void link_address(const struct link *l, struct fab_wr *wr)
{
    if (l->dct == NULL)
        return;
    wr->ah = l->ah;
    wr->dest_qpn = l->dct->dctn;
    wr->dc_key = l->dct->dc_key;
}

int link_post(struct link *l, struct fab_wr *wr)
{
    struct fab_wr *bad;
    return fab_post_send(l->qp, wr, &bad);
}

void link_post_recv(struct link *l, uint64_t wr_id, struct ibv_sge *sge, int num_sge)
{
    struct fab_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge}, *bad;
    if (l->peer != NULL)
        ck_assert_int_eq(fab_post_recv(l->peer, &wr, &bad), 0);
    else
        ck_assert_int_eq(fab_post_srq_recv(l->srq, &wr, &bad), 0);
}

bool nodes_open(struct pair *p, uint32_t transports, const char *test)
{
    if (conf_lacks(transports, test))
        return false;
    node_open(&p->a);
    if (!conf_has(p->a.fab, transports, test)) {
        node_close(&p->a);
        return false;
    }
    node_open(&p->b);
    harness_drive(p);
    return true;
}

void nodes_close(struct pair *p)
{
    harness_drive(NULL);
    node_close(&p->a);
    node_close(&p->b);
}

bool pair_open(struct pair *p, enum fab_transport transport, const struct rc_options *options,
               const struct qp_options *qp_options, const char *test)
{
    if (!nodes_open(p, transport, test))
        return false;
    link_open(&p->l, transport, &p->a, &p->b, options, qp_options);
    return true;
}

void pair_close(struct pair *p)
{
    link_close(&p->l);
    nodes_close(p);
}
