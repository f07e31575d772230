/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"
#include "base/clock.h"
#include "schema/record.h"

START_TEST(a_lease_is_read_as_it_was_written_or_a_little_shorter)
{
    for (uint64_t us = 1000; us <= 2000000000; us += 1 + us / 97) {
        uint16_t flags = schema_record_lease_flags(us * 1000);
        uint64_t got = schema_record_lease_ns(flags);
        ck_assert_uint_eq(flags & 0x3f, 0);
        ck_assert_uint_le(got, us * 1000);
        ck_assert_uint_gt(got + BASE_NS_PER_MS, us * 1000 - us * 1000 / 32);
    }
    for (uint64_t ms = 1; ms < 64; ms++)
        ck_assert_uint_eq(schema_record_lease_ns(schema_record_lease_flags(ms * BASE_NS_PER_MS)),
                          ms * BASE_NS_PER_MS);
}
END_TEST

/* A pool at a metaserver may have 3600 s. */
START_TEST(a_lease_that_is_too_long_for_its_bits_is_the_longest_that_they_hold)
{
    const uint64_t most = (63ull << 15) * BASE_NS_PER_MS;
    ck_assert_uint_eq(schema_record_lease_ns(schema_record_lease_flags(most)), most);
    ck_assert_uint_eq(schema_record_lease_ns(schema_record_lease_flags(2 * most)), most);
    ck_assert_uint_eq(schema_record_lease_ns(schema_record_lease_flags(3600 * BASE_NS_PER_S)),
                      most);
    ck_assert_uint_eq(schema_record_lease_flags(3600 * BASE_NS_PER_S) & 0x3f, 0);
}
END_TEST

START_TEST(what_else_is_in_the_flags_is_not_the_leases)
{
    const uint16_t lease = schema_record_lease_flags(100 * BASE_NS_PER_MS);
    ck_assert_uint_eq(schema_record_lease_ns(lease | 0x3f), 100 * BASE_NS_PER_MS);
    ck_assert_uint_eq(schema_record_lease_ns(0x3f), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lease_is_read_as_it_was_written_or_a_little_shorter)                                       \
    T(a_lease_that_is_too_long_for_its_bits_is_the_longest_that_they_hold)                         \
    T(what_else_is_in_the_flags_is_not_the_leases)
KEDGE_CHECK_MAIN("schema.record", TESTS)
