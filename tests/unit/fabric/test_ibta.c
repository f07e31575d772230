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

#define TESTS(T) T(a_grh_counts_the_headers_the_pad_and_the_icrc_behind_it)
KEDGE_CHECK_MAIN("ibta", TESTS)
