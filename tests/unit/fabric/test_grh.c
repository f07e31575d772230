/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the bytes in front of a datagram name. */
#include <string.h>

#include "../check_main.h"
#include "fabric/grh.h"
#include "ibta/ibta.h"

#define IPV4(a, b, c, d)                                                                           \
    {                                                                                              \
        [10] = 0xff, 0xff, a, b, c, d                                                              \
    }
static const uint8_t a4[16] = IPV4(10, 0, 0, 1), b4[16] = IPV4(10, 0, 0, 2),
                     c4[16] = IPV4(10, 0, 0, 3);
static const uint8_t a6[16] = {0xfd, [15] = 1}, b6[16] = {0xfd, [15] = 2},
                     c6[16] = {0xfd, [15] = 3};
static const struct fab_caps ethernet = {.is_ethernet = true}, infiniband;

static void check_names(const struct fab_caps *caps, const uint8_t a[16], const uint8_t b[16],
                        const uint8_t c[16])
{
    uint8_t grh[FAB_GRH_BYTES];
    fab_ibta_make_grh(grh, caps, a, b, 96, false);
    ck_assert(fab_grh_is(grh, a, b));
    ck_assert(!fab_grh_is(grh, c, b));
    ck_assert(!fab_grh_is(grh, a, c));
    ck_assert(!fab_grh_is(grh, b, a));
}

START_TEST(a_header_names_its_sender_and_no_other)
{
    check_names(&ethernet, a6, b6, c6);
    check_names(&infiniband, a6, b6, c6);
    check_names(&ethernet, a4, b4, c4);
    check_names(&infiniband, a4, b4, c4);
}
END_TEST

/* As IPv4 has it (RFC 791), for RoCE v2 in the last 20 bytes. */
START_TEST(between_ipv4_addresses_it_is_a_header_of_ipv4)
{
    uint8_t grh[FAB_GRH_BYTES];
    uint32_t sum = 0;
    fab_ibta_make_grh(grh, &ethernet, a4, b4, 96, false);
    const uint8_t *ip = grh + 20;
    ck_assert_uint_eq(ip[0], 0x45);
    ck_assert_uint_eq((uint32_t)ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + 96 + 4);
    ck_assert_uint_eq(ip[9], 17);
    ck_assert_mem_eq(ip + 12, a4 + 12, 4);
    ck_assert_mem_eq(ip + 16, b4 + 12, 4);
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    ck_assert_uint_eq((sum & 0xffff) + (sum >> 16), 0xffff);
    memset(grh, 0, 20); /* as rxe has it */
    ck_assert(fab_grh_is(grh, a4, b4));
}
END_TEST

/* Who has an IPv6 address of his own choice writes what he likes where IPv4 has its version and
 * its source, but not where it has its destination. */
START_TEST(an_ipv6_packet_does_not_pass_for_one_of_ipv4)
{
    static const uint8_t from[16] = {0xfd, [12] = 0x45}, to[16] = {0xfd, [8] = 10, 0, 0, 1, 9, 9};
    uint8_t grh[FAB_GRH_BYTES];
    fab_ibta_make_grh(grh, &ethernet, from, to, 96, false);
    ck_assert_mem_eq(grh + 32, a4 + 12, 4); /* that stands there */
    ck_assert(!fab_grh_is(grh, a4, b4));
    ck_assert(!fab_grh_is(grh, a4, to));
    ck_assert(fab_grh_is(grh, from, to));
}
END_TEST

START_TEST(bytes_that_are_no_header_name_nobody)
{
    uint8_t grh[FAB_GRH_BYTES] = {0};
    memcpy(grh + 8, a6, 16);
    memcpy(grh + 24, b6, 16);
    ck_assert(!fab_grh_is(grh, a6, b6)); /* no version */
    memset(grh, 0, sizeof grh);
    ck_assert(!fab_grh_is(grh, a4, b4));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_header_names_its_sender_and_no_other)                                                      \
    T(between_ipv4_addresses_it_is_a_header_of_ipv4)                                               \
    T(an_ipv6_packet_does_not_pass_for_one_of_ipv4)                                                \
    T(bytes_that_are_no_header_name_nobody)
KEDGE_CHECK_MAIN("fabric grh", TESTS)
