/* SPDX-License-Identifier: Apache-2.0 */
/* How many READs and atomics a connection's initiator may have out. */
#include <stdlib.h>

#include "../check_main.h"
#include "dc_bed.h"

/* mlx5's driver rounds up to a power of two. */
START_TEST(a_peer_is_sent_no_more_reads_at_a_time_than_it_takes)
{
    static const uint8_t taken[] = {0, 1, 2, 3, 7, 8, 12, 16}, most[] = {0, 1, 2, 2, 4, 8, 8, 16};
    struct dc_bed b;
    dc_bed_open(&b);
    verbs_dc_probe(b.f);
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = &b.vpd.base,
                                 .type = FAB_QP_RC,
                                 .send_cq = &b.vcq.base,
                                 .recv_cq = &b.vcq.base,
                                 .srq = &b.vsrq.base,
                                 .cap = {.send_wr = 4, .send_sge = 1}}};
    ck_assert_int_eq(verbs_qp_create(b.f, &ctl), 0);
    for (size_t i = 0; i < sizeof taken; i++) {
        struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .max_rd_atomic = taken[i]};
        ck_assert_int_eq(dc_bed_move(&b, ctl.qp.x, rts, IBV_QP_MAX_QP_RD_ATOMIC), 0);
        ck_assert_uint_eq(fake.last.max_rd_atomic, most[i]);
    }
    dc_bed_free_dci(&b, ctl.qp.x);
    dc_bed_close(&b);
}
END_TEST

#define TESTS(T) T(a_peer_is_sent_no_more_reads_at_a_time_than_it_takes)
KEDGE_CHECK_MAIN("fabric.verbs_reads", TESTS)
