/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs provider on the stand-in: an open device with a PD, a CQ, an SRQ and an address. */
#ifndef TESTS_UNIT_FABRIC_DC_BED_H
#define TESTS_UNIT_FABRIC_DC_BED_H

#include "dc_stand_in.h"
#include "verbs/verbs_data.h"
#include "verbs/objects.h"

struct dc_bed {
    struct verbs_fab *f;
    struct ibv_context context;
    struct ibv_pd pd;
    struct ibv_cq cq;
    struct ibv_srq srq;
    struct verbs_pd vpd;
    struct verbs_cq vcq;
    struct verbs_srq vsrq;
};

static const struct fab_ops dc_ops = {.name = "verbs on the stand-in",
                                      .post_send = verbs_post_send,
                                      .poll = verbs_poll,
                                      .qp_state = verbs_qp_state};

/* A device that offers everything, but for streams. */
static inline void dc_bed_open(struct dc_bed *b)
{
    memset(&fake, 0, sizeof fake);
    memset(b, 0, sizeof *b);
    fake.mlx5 = true;
    fake.cq = &b->cq;
    fake.max_inline = 256;
    fake.max_rd_atomic = 16;
    fake.next_number = 100;
    b->f = calloc(1, sizeof *b->f);
    ck_assert_ptr_nonnull(b->f);
    b->context.ops.poll_cq = fake_poll;
    b->pd.context = &b->context;
    b->cq = (struct ibv_cq){.context = &b->context, .cq_context = &b->vcq, .cqe = FAKE_CQE};
    b->f->context = &b->context;
    b->f->dc.calls = fake_calls;
    b->f->dc.dci_av = true; /* a kernel of today; the probe finds out */
    b->f->base.ops = &dc_ops;
    b->f->base.caps = (struct fab_caps){.transports = FAB_RC | FAB_UD,
                                        .max_qp_wr = 64,
                                        .max_sge = 30,
                                        .max_inline = 512,
                                        .max_cqe = 1024,
                                        .max_rd_atomic = 16,
                                        .gid = {0xfd, [15] = 0x17},
                                        .sgid_index = 3,
                                        .port_num = 2,
                                        .mtu = IBV_MTU_4096,
                                        .is_ethernet = true};
    ck_assert_int_eq(fab_events_init(&b->f->events), 0);
    b->vpd = (struct verbs_pd){.base.fab = &b->f->base, .pd = &b->pd};
    b->vcq =
        (struct verbs_cq){.base = {.fab = &b->f->base, .cqe = FAKE_CQE}, .cq = &b->cq, .fab = b->f};
    b->vsrq = (struct verbs_srq){.base.pd = &b->vpd.base, .srq = &b->srq};
}

static inline void dc_bed_close(struct dc_bed *b)
{
    ck_assert_int_eq(fake.live, 0);
    ck_assert_uint_eq(atomic_load(&b->vpd.users), 0);
    ck_assert_uint_eq(atomic_load(&b->vcq.users), 0);
    ck_assert_uint_eq(atomic_load(&b->vsrq.users), 0);
    fab_events_fini(&b->f->events);
    verbs_qpn_free(b->f);
    free(b->f);
}

static inline struct fab_qp *dc_bed_dci(struct dc_bed *b, uint32_t send_wr)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = &b->vpd.base,
                                 .type = FAB_QP_DCI,
                                 .send_cq = &b->vcq.base,
                                 .recv_cq = &b->vcq.base,
                                 .cap = {.send_wr = send_wr, .send_sge = 4, .inline_bytes = 64}}};
    ck_assert_int_eq(verbs_qp_create(b->f, &ctl), 0);
    return ctl.qp.x;
}

static inline int dc_bed_move(struct dc_bed *b, struct fab_qp *qp, struct ibv_qp_attr attr,
                              int mask)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = qp, .attr = attr, .mask = mask | IBV_QP_STATE}};
    verbs_own_address(&ctl);
    return verbs_qp_modify(b->f, &ctl);
}

/* As the agent and the conformance suite do. */
static inline void dc_bed_bring_up(struct dc_bed *b, struct fab_qp *qp)
{
    const struct fab_caps *caps = &b->f->base.caps;
    ck_assert_int_eq(dc_bed_move(b, qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0), 0);
    ck_assert_int_eq(
        dc_bed_move(b, qp, fab_init_attr(&b->f->base), IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
    ck_assert_int_eq(
        dc_bed_move(b, qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = caps->mtu},
                    IBV_QP_PATH_MTU),
        0);
    ck_assert_int_eq(dc_bed_move(b, qp,
                                 (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                                      .timeout = 14,
                                                      .retry_cnt = 7,
                                                      .rnr_retry = 7,
                                                      .max_rd_atomic = 8},
                                 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

/* As a worker does what the control thread has submitted. */
static inline int dc_bed_make_dct(struct dc_bed *b, struct fab_ctl *ctl)
{
    verbs_own_address(ctl);
    return verbs_dct_create(b->f, ctl);
}

static inline void dc_bed_free_dci(struct dc_bed *b, struct fab_qp *qp)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    ck_assert_int_eq(verbs_qp_destroy(b->f, &ctl), 0);
    free(qp); /* the pool's, otherwise */
}

static inline struct fab_ah *dc_bed_ah(struct dc_bed *b, uint8_t last_byte)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_AH,
                          .ah = {.pd = &b->vpd.base,
                                 .attr = {.is_global = 1,
                                          .dlid = 7,
                                          .port_num = 2,
                                          .grh.dgid.raw = {0xfd, [15] = last_byte}}}};
    ck_assert_int_eq(verbs_ah_create(b->f, &ctl), 0);
    return ctl.ah.x;
}

static inline void dc_bed_free_ah(struct dc_bed *b, struct fab_ah *ah)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_AH, .ah = {.x = ah}};
    ck_assert_int_eq(verbs_ah_destroy(b->f, &ctl), 0);
    free(ah);
}

#endif
