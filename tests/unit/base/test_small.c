/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

START_TEST(crc32c_of_the_standard_check_string_is_known)
{
    ck_assert_uint_eq(base_crc32c(0, "123456789", 9), 0xe3069283);
    ck_assert_uint_eq(base_crc32c_portable(0, "123456789", 9), 0xe3069283);
}
END_TEST

START_TEST(crc32c_by_instruction_and_by_table_agree_at_every_length_and_in_parts)
{
    uint8_t bytes[257];
    struct base_prng prng;
    base_prng_seed(&prng, 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)base_prng_next(&prng);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        uint32_t whole = base_crc32c(0, bytes, n);
        ck_assert_uint_eq(whole, base_crc32c_portable(0, bytes, n));
        ck_assert_uint_eq(whole,
                          base_crc32c(base_crc32c(0, bytes, n / 3), bytes + n / 3, n - n / 3));
    }
}
END_TEST

START_TEST(hashes_of_sequential_keys_spread_evenly_over_buckets)
{
    enum { BUCKETS = 1024, KEYS = 64 * BUCKETS };
    static unsigned count[BUCKETS];
    uint8_t gid[16] = {0xfd};
    for (uint32_t i = 0; i < KEYS; i++) {
        memcpy(gid + 12, &i, sizeof i);
        count[base_hash_gid(gid, 1, 42) % BUCKETS]++;
    }
    double chi2 = 0;
    for (int i = 0; i < BUCKETS; i++)
        chi2 += (count[i] - 64.0) * (count[i] - 64.0) / 64.0;
    /* 1023 degrees of freedom: mean 1023, deviation 45; six deviations either way. */
    ck_assert_double_gt(chi2, 1023 - 6 * 45);
    ck_assert_double_lt(chi2, 1023 + 6 * 45);
}
END_TEST

START_TEST(another_seed_gives_another_order)
{
    unsigned same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += (base_hash_u64(i, 1) & 63) == (base_hash_u64(i, 2) & 63);
    ck_assert_uint_lt(same, 50);
}
END_TEST

START_TEST(an_errno_and_its_http_status_lead_to_one_row)
{
    ck_assert_int_eq(base_error_of(-ENOENT)->http, 404);
    ck_assert_int_eq(base_error_of_http(404)->errnum, ENOENT);
    ck_assert_int_eq(base_error_of(ENOSPC)->http, 507);
    ck_assert_int_eq(base_error_of(12345)->http, 500);
    ck_assert_int_ne(base_error_of_http(599)->exit_code, 0);
    ck_assert_int_eq(base_error_of(ESTALE)->http, 409);
    ck_assert_int_eq(base_error_of(EREMCHG)->http, 412);
    ck_assert_int_eq(base_error_of_http(401)->errnum, EKEYREJECTED);
    ck_assert_int_eq(base_error_of_http(412)->errnum, EREMCHG);
    ck_assert_int_eq(base_error_of_http(503)->errnum, EHOSTUNREACH);
    ck_assert_int_eq(base_error_of_http(504)->errnum, ETIMEDOUT);
}
END_TEST

START_TEST(a_sentence_that_is_too_long_is_cut_not_overrun)
{
    struct base_errbuf err;
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(base_err(&err, -EIO, "%s", longer), -EIO);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_int_eq(base_err(NULL, -EIO, "nobody reads this"), -EIO);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_numbers_and_the_kernel_gives_others)
{
    struct base_prng a, b;
    uint64_t x = 0, y = 0;
    base_prng_seed(&a, 7);
    base_prng_seed(&b, 7);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(base_prng_next(&a), base_prng_next(&b));
        ck_assert_uint_lt(base_prng_below(&a, 10), 10);
        base_prng_next(&b);
    }
    ck_assert_int_eq(base_random_bytes(&x, sizeof x), 0);
    ck_assert_int_eq(base_random_bytes(&y, sizeof y), 0);
    ck_assert_uint_ne(x, y);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(crc32c_of_the_standard_check_string_is_known)                                                \
    T(crc32c_by_instruction_and_by_table_agree_at_every_length_and_in_parts)                       \
    T(hashes_of_sequential_keys_spread_evenly_over_buckets)                                        \
    T(another_seed_gives_another_order)                                                            \
    T(an_errno_and_its_http_status_lead_to_one_row)                                                \
    T(a_sentence_that_is_too_long_is_cut_not_overrun)                                              \
    T(the_same_seed_gives_the_same_numbers_and_the_kernel_gives_others)
KEDGE_CHECK_MAIN("base", TESTS)
