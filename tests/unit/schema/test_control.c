/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/control.h"

union packet {
    struct schema_control_header h;
    struct schema_control_attach attach;
    struct schema_control_resolve resolve;
    struct schema_control_publish publish;
    struct schema_control_error error;
    uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES + 1];
};

static const uint32_t sizes[] = {
    [SCHEMA_CONTROL_ATTACH] = 192,    [SCHEMA_CONTROL_ATTACHED] = 64,
    [SCHEMA_CONTROL_ARENA] = 24,      [SCHEMA_CONTROL_ARENA_OK] = 32,
    [SCHEMA_CONTROL_RESOLVE] = 80,    [SCHEMA_CONTROL_RESOLVED] = 40,
    [SCHEMA_CONTROL_ERROR] = 264,     [SCHEMA_CONTROL_PUBLISH] = 280,
    [SCHEMA_CONTROL_UNPUBLISH] = 280, [SCHEMA_CONTROL_PUBLISHED] = 24,
};
enum { LAST = SCHEMA_CONTROL_PUBLISHED };

static union packet good(uint16_t type)
{
    union packet p;
    memset(&p, 0, sizeof p);
    p.h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                         .version = SCHEMA_CONTROL_VERSION,
                                         .type = type,
                                         .tag = 7,
                                         .size = sizes[type]};
    if (type == SCHEMA_CONTROL_ERROR)
        p.error.status = -EACCES;
    return p;
}

START_TEST(each_type_is_taken_in_its_size_and_no_other)
{
    for (uint16_t type = SCHEMA_CONTROL_ATTACH; type <= LAST; type++) {
        union packet p = good(type);
        for (uint32_t bytes = 0; bytes <= sizeof p.bytes; bytes++)
            ck_assert_int_eq(schema_control_check(&p, bytes), bytes == sizes[type] ? 0 : -EPROTO);
        p.h.size++;
        ck_assert_int_eq(schema_control_check(&p, sizes[type]), -EPROTO);
    }
}
END_TEST

START_TEST(a_wrong_magic_type_or_version_is_refused)
{
    union packet p = good(SCHEMA_CONTROL_ATTACH);
    p.h.magic++;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTO);
    p = good(SCHEMA_CONTROL_ATTACH);
    p.h.version++;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTONOSUPPORT);
    p = good(SCHEMA_CONTROL_ATTACH);
    p.h.type = 0;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTO);
    p.h.type = LAST + 1;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTO);
}
END_TEST

START_TEST(a_string_without_its_end_is_refused)
{
    union packet p = good(SCHEMA_CONTROL_ATTACH);
    memset(p.attach.pool, 'x', sizeof p.attach.pool);
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTO);
    p = good(SCHEMA_CONTROL_ATTACH);
    memset(p.attach.token, 'x', sizeof p.attach.token);
    ck_assert_int_eq(schema_control_check(&p, sizeof p.attach), -EPROTO);
    p = good(SCHEMA_CONTROL_RESOLVE);
    memset(p.resolve.name, 'x', sizeof p.resolve.name);
    ck_assert_int_eq(schema_control_check(&p, sizeof p.resolve), -EPROTO);
    p = good(SCHEMA_CONTROL_UNPUBLISH);
    memset(p.publish.name, 'x', sizeof p.publish.name);
    ck_assert_int_eq(schema_control_check(&p, sizeof p.publish), -EPROTO);
    p = good(SCHEMA_CONTROL_ERROR);
    memset(p.error.text, 'x', sizeof p.error.text);
    ck_assert_int_eq(schema_control_check(&p, sizeof p.error), -EPROTO);
}
END_TEST

START_TEST(an_error_that_is_none_is_refused)
{
    union packet p = good(SCHEMA_CONTROL_ERROR);
    p.error.status = 0;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.error), -EPROTO);
    p.error.status = -4096;
    ck_assert_int_eq(schema_control_check(&p, sizeof p.error), -EPROTO);
}
END_TEST

START_TEST(random_packets_of_every_length_are_survived)
{
    struct base_prng prng;
    base_prng_seed(&prng, 3);
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = base_prng_below(&prng, SCHEMA_CONTROL_MAX_BYTES + 1);
        uint8_t *exact = malloc(bytes + 1); /* a sanitizer sees reads beyond it */
        for (uint64_t at = 0; at < bytes; at++)
            exact[at] = (uint8_t)base_prng_next(&prng);
        union packet p = good((uint16_t)(1 + base_prng_below(&prng, LAST)));
        memcpy(exact, &p, bytes < 12 ? bytes : 12);
        (void)schema_control_check(exact, bytes);
        free(exact);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_type_is_taken_in_its_size_and_no_other)                                                 \
    T(a_wrong_magic_type_or_version_is_refused)                                                    \
    T(a_string_without_its_end_is_refused)                                                         \
    T(an_error_that_is_none_is_refused)                                                            \
    T(random_packets_of_every_length_are_survived)
KEDGE_CHECK_MAIN("schema control", TESTS)
