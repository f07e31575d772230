/* SPDX-License-Identifier: Apache-2.0 */
/* What the doubles have of the InfiniBand specification. */
#include <string.h>

#include "../check_main.h"
#include "ibta/ibta.h"

static uint32_t pay_len(uint32_t bytes, bool imm)
{
    static const uint8_t from[16] = {1}, to[16] = {2};
    uint8_t grh[FAB_GRH_BYTES];
    fab_ibta_make_grh(grh, from, to, bytes, imm);
    ck_assert_uint_eq(grh[0] >> 4, 6);
    ck_assert_uint_eq(grh[6], 0x1b); /* a BTH comes next */
    ck_assert_int_eq(memcmp(grh + 8, from, sizeof from), 0);
    ck_assert_int_eq(memcmp(grh + 24, to, sizeof to), 0);
    return (uint32_t)grh[4] << 8 | grh[5];
}

/* 8.3.4: from the first byte after the GRH up to and with the ICRC; 9.2.3: the pad counts. */
START_TEST(a_grh_counts_the_headers_the_pad_and_the_icrc_behind_it)
{
    enum { HEADERS = 12 + 8, IMM_DT = 4, ICRC = 4 };
    ck_assert_uint_eq(pay_len(0, false), HEADERS + ICRC);
    ck_assert_uint_eq(pay_len(1, false), HEADERS + 4 + ICRC);
    ck_assert_uint_eq(pay_len(64, false), HEADERS + 64 + ICRC);
    ck_assert_uint_eq(pay_len(66, true), HEADERS + IMM_DT + 68 + ICRC);
    ck_assert_uint_eq(pay_len(4096, true), HEADERS + IMM_DT + 4096 + ICRC);
}
END_TEST

static struct fab fab = {
    .caps = {.port_num = 1, .mtu = IBV_MTU_1024, .max_rd_atomic = 16, .is_ethernet = true}};
static struct fab_pd pd = {.fab = &fab};

/* What a driver refuses is not to be found out on the first real device. */
START_TEST(a_queue_pair_takes_no_more_than_its_port_and_device_have)
{
    static const struct {
        struct ibv_qp_attr attr;
        int mask;
        bool takes;
    } of[] = {
        {{.path_mtu = IBV_MTU_1024}, IBV_QP_PATH_MTU, true},
        {{.path_mtu = IBV_MTU_2048}, IBV_QP_PATH_MTU, false},
        {{.path_mtu = 0}, IBV_QP_PATH_MTU, false},
        {{.path_mtu = IBV_MTU_4096}, IBV_QP_TIMEOUT, true}, /* it does not say it */
        {{.max_rd_atomic = 16}, IBV_QP_MAX_QP_RD_ATOMIC, true},
        {{.max_rd_atomic = 17}, IBV_QP_MAX_QP_RD_ATOMIC, false},
        {{.max_dest_rd_atomic = 16}, IBV_QP_MAX_DEST_RD_ATOMIC, true},
        {{.max_dest_rd_atomic = 17}, IBV_QP_MAX_DEST_RD_ATOMIC, false},
        {{.timeout = 31}, IBV_QP_TIMEOUT, true},
        {{.timeout = 32}, IBV_QP_TIMEOUT, false},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        ck_assert_msg(fab_ibta_takes_values(&pd, &of[i].attr, of[i].mask) == of[i].takes,
                      "number %zu", i);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_grh_counts_the_headers_the_pad_and_the_icrc_behind_it)                                     \
    T(a_queue_pair_takes_no_more_than_its_port_and_device_have)
KEDGE_CHECK_MAIN("ibta", TESTS)
