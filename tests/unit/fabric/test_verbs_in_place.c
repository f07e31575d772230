/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in is in the memory that its SGE names, which is no pointer of this process. */
#include "../check_main.h"
#include "dc_bed.h"
#include "dc_stand_in_data.h"

static struct fab_qp *make_qp(struct dc_bed *b, enum fab_qp_type type)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = &b->vpd.base,
                                 .type = type,
                                 .send_cq = &b->vcq.base,
                                 .recv_cq = &b->vcq.base,
                                 .srq = &b->vsrq.base,
                                 .cap = {.send_wr = 4, .send_sge = 1}}};
    ck_assert_int_eq(verbs_qp_create(b->f, &ctl), 0);
    return ctl.qp.x;
}

START_TEST(a_small_message_on_a_connection_of_mlx5_is_in_its_memory)
{
    struct dc_bed b;
    char memory[64] = "";
    const struct fake_memory m = {.iova = 0x2000000000, .at = memory, .size = sizeof memory};
    const struct ibv_sge sge = {.addr = m.iova + 8, .length = 8};
    dc_bed_open(&b);
    verbs_dc_probe(b.f);
    struct fab_qp *qp = make_qp(&b, FAB_QP_RC);
    fake_receives(((struct verbs_qp *)qp)->qp, &m, &sge, "8 bytes", 8);
    ck_assert_int_eq(fake.wrong, 0);
    ck_assert_str_eq(memory + 8, "8 bytes");
    dc_bed_free_dci(&b, qp);
    dc_bed_close(&b);
}
END_TEST

/* libmlx5's functions are not for it. */
START_TEST(other_devices_and_datagrams_have_plain_queue_pairs)
{
    for (int i = 0; i < 2; i++) {
        struct dc_bed b;
        dc_bed_open(&b);
        fake.mlx5 = i != 0;
        verbs_dc_probe(b.f);
        fake.trace[0] = '\0';
        b.f->dc.calls.dv_create_qp = NULL;
        struct fab_qp *qp = make_qp(&b, i == 0 ? FAB_QP_RC : FAB_QP_UD);
        expect_trace(i == 0 ? "create qp type=2\n" : "create qp type=4\n");
        dc_bed_free_dci(&b, qp);
        dc_bed_close(&b);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_small_message_on_a_connection_of_mlx5_is_in_its_memory)                                    \
    T(other_devices_and_datagrams_have_plain_queue_pairs)

KEDGE_CHECK_MAIN("fabric.verbs_in_place", TESTS)
