/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../../check_main.h"
#include "base/digest.h"
#include "base/text.h"

START_TEST(it_is_sha_256)
{
    /* FIPS 180-2, B.1; and of nothing. */
    static const char *const known[][2] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}};
    for (int i = 0; i < 2; i++) {
        uint8_t hash[BASE_DIGEST_BYTES];
        char text[2 * BASE_DIGEST_BYTES + 1];
        ck_assert_int_eq(base_digest(known[i][0], hash), 0);
        ck_assert_str_eq(base_hex_encode(hash, sizeof hash, text), known[i][1]);
    }
}
END_TEST

START_TEST(those_that_differ_in_any_byte_are_not_the_same)
{
    uint8_t a[BASE_DIGEST_BYTES], b[BASE_DIGEST_BYTES];
    ck_assert_int_eq(base_digest("abc", a), 0);
    memcpy(b, a, sizeof b);
    ck_assert(base_digest_same(a, b));
    for (int i = 0; i < BASE_DIGEST_BYTES; i++) {
        b[i] ^= 1;
        ck_assert(!base_digest_same(a, b));
        b[i] ^= 1;
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_sha_256)                                                                               \
    T(those_that_differ_in_any_byte_are_not_the_same)
KEDGE_CHECK_MAIN("base digest", TESTS)
