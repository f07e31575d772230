/* SPDX-License-Identifier: Apache-2.0 */
/* Records of regions' names, in their table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/text.h"
#include "schema/table.h"

enum { ENTRIES = 64 };

struct fixture {
    struct schema_table table;
    _Alignas(64) uint8_t memory[(ENTRIES * 8 + 15) * SCHEMA_NAME_RECORD_BYTES];
};

static void setup(struct fixture *f, uint64_t seed, uint64_t generation)
{
    memset(f, 0, sizeof *f);
    ck_assert_uint_eq(schema_name_table_bytes(schema_table_log2_slots(ENTRIES)), sizeof f->memory);
    schema_table_init(&f->table, SCHEMA_TABLE_NAMES, f->memory, schema_table_log2_slots(ENTRIES),
                      seed, generation);
}

static struct schema_name_record record_of(const struct fixture *f, const char *name,
                                           uint32_t incarnation)
{
    const struct schema_token grant = {.gid = {0xfd, [15] = 9},
                                       .pool = 3,
                                       .access = SCHEMA_RECORD_READ,
                                       .vkey = incarnation,
                                       .addr = 0x1000,
                                       .length = 0x2000,
                                       .secret = {7}};
    uint8_t key[16];
    schema_name_key(&f->table.desc, "blue", name, key);
    return schema_name_record_make(key, incarnation, schema_tenant_number("blue"), &grant);
}

/* As a READ of the span finds it. */
static int look_up(const struct fixture *f, const char *tenant, const char *name,
                   struct schema_name_record *out)
{
    _Alignas(64) uint8_t span[SCHEMA_NAME_SPAN_BYTES];
    uint8_t key[16];
    schema_name_key(&f->table.desc, tenant, name, key);
    memcpy(span,
           f->memory + (size_t)schema_name_home(&f->table.desc, key) * SCHEMA_NAME_RECORD_BYTES,
           sizeof span);
    return schema_name_find(&f->table.desc, span, key, out);
}

START_TEST(the_hash_is_siphash_2_4_of_128_bits)
{
    /* vectors.h of its authors' implementation: key 00..0f, messages of 0, 1 and 15 bytes. */
    static const struct {
        size_t length;
        const char *hash;
    } vectors[] = {{0, "a3817f04ba25a8e66df67214c7550293"},
                   {1, "da87c1d86b99af44347659119b22fc45"},
                   {15, "5493e99933b0a8117e08ec0f97cfc3d9"}};
    static const uint64_t key[2] = {0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};
    uint8_t message[16], out[16];
    char text[33];
    for (uint8_t i = 0; i < sizeof message; i++)
        message[i] = i;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        base_siphash128(key, message, vectors[i].length, out);
        ck_assert_str_eq(base_hex_encode(out, 16, text), vectors[i].hash);
    }
}
END_TEST

START_TEST(a_name_is_found_by_its_tenant_with_all_that_it_grants)
{
    struct fixture f;
    struct schema_name_record found;
    setup(&f, 1, 2);
    struct schema_name_record r = record_of(&f, "kv/shard-17", 5);
    ck_assert_int_eq(look_up(&f, "blue", "kv/shard-17", &found), -ENOENT);
    ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    ck_assert_int_eq(look_up(&f, "blue", "kv/shard-17", &found), 0);
    const struct schema_token grant = schema_name_record_grant(&found);
    ck_assert_uint_eq(found.incarnation, 5);
    ck_assert_uint_eq(found.tenant, schema_tenant_number("blue"));
    ck_assert_uint_eq(grant.gid[15], 9);
    ck_assert_uint_eq(grant.pool, 3);
    ck_assert_uint_eq(grant.access, SCHEMA_RECORD_READ);
    ck_assert_uint_eq(grant.vkey, 5);
    ck_assert_uint_eq(grant.addr, 0x1000);
    ck_assert_uint_eq(grant.length, 0x2000);
    ck_assert_uint_eq(grant.secret[0], 7);
    ck_assert_int_eq(look_up(&f, "green", "kv/shard-17", &found), -ENOENT);
    ck_assert_int_eq(look_up(&f, "blu", "ekv/shard-17", &found), -ENOENT);
    r = record_of(&f, "kv/shard-17", 6);
    ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    ck_assert_uint_eq(f.table.live, 1);
    ck_assert_int_eq(look_up(&f, "blue", "kv/shard-17", &found), 0);
    ck_assert_uint_eq(found.incarnation, 6);
    ck_assert_int_ge(schema_table_remove(&f.table, &r), 0);
    ck_assert_int_eq(look_up(&f, "blue", "kv/shard-17", &found), -ENOENT);
}
END_TEST

START_TEST(a_record_of_which_half_is_old_is_not_believed)
{
    struct fixture f;
    struct schema_name_record found;
    setup(&f, 1, 2);
    struct schema_name_record r = record_of(&f, "n", 5);
    const int64_t slot = schema_table_put(&f.table, &r);
    ck_assert_int_ge(slot, 0);
    uint8_t *at = f.memory + (size_t)slot * SCHEMA_NAME_RECORD_BYTES;
    uint8_t second[64];
    memcpy(second, at + 64, sizeof second); /* a cache line: devices READ no more at once */
    r = record_of(&f, "n", 6);
    r.secret[8] = 1;
    ck_assert_int_eq(schema_table_put(&f.table, &r), slot);
    memcpy(at + 64, second, sizeof second);
    ck_assert_int_eq(look_up(&f, "blue", "n", &found), -EAGAIN);
    ck_assert_int_eq(schema_table_begin(&f.table, &r), slot);
    ck_assert_int_eq(look_up(&f, "blue", "n", &found), -EAGAIN);
    schema_table_commit(&f.table, slot, &r);
    ck_assert_int_eq(look_up(&f, "blue", "n", &found), 0);
}
END_TEST

START_TEST(another_life_of_the_table_is_not_believed)
{
    struct fixture f;
    struct schema_name_record found;
    setup(&f, 1, 2);
    struct schema_name_record r = record_of(&f, "n", 5);
    ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    uint8_t span[SCHEMA_NAME_SPAN_BYTES];
    memcpy(span,
           f.memory + (size_t)schema_name_home(&f.table.desc, r.key) * SCHEMA_NAME_RECORD_BYTES,
           sizeof span);
    f.table.desc.generation = 3;
    ck_assert_int_eq(schema_name_find(&f.table.desc, span, r.key, &found), -EAGAIN);
}
END_TEST

START_TEST(all_that_it_is_made_for_fit_and_are_found_by_any_seed)
{
    struct base_prng prng;
    base_prng_seed(&prng, 4711);
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        struct schema_name_record found;
        char name[32];
        setup(&f, base_prng_next(&prng), base_prng_next(&prng));
        for (uint32_t i = 0; i < ENTRIES; i++) {
            snprintf(name, sizeof name, "kv/%u", i);
            struct schema_name_record r = record_of(&f, name, i + 1);
            ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
        }
        for (uint32_t i = 0; i < ENTRIES; i++) {
            snprintf(name, sizeof name, "kv/%u", i);
            ck_assert_int_eq(look_up(&f, "blue", name, &found), 0);
            ck_assert_uint_eq(found.incarnation, i + 1);
        }
    }
}
END_TEST

START_TEST(a_name_is_printable_and_has_an_end)
{
    char text[SCHEMA_NAME_MAX + 2];
    memset(text, 'x', sizeof text);
    text[SCHEMA_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(schema_name_check(text), -EINVAL);
    text[SCHEMA_NAME_MAX] = '\0';
    ck_assert_int_eq(schema_name_check(text), 0);
    ck_assert_int_eq(schema_name_check(""), -EINVAL);
    ck_assert_int_eq(schema_name_check("kv/\xc3\xa4 17"), 0);
    ck_assert_int_eq(schema_name_check("kv/\xc3"), -EINVAL);
    ck_assert_int_eq(schema_name_check("a\nb"), -EINVAL);
    ck_assert_int_eq(schema_name_check("a\x1b[1m"), -EINVAL);
}
END_TEST

START_TEST(a_space_is_a_tenants_or_one_tenants_for_another_and_no_third)
{
    char space[SCHEMA_NAME_SPACE_BYTES], owner[SCHEMA_NAME_SPACE_BYTES], longest[33];
    uint8_t keys[4][16];
    const struct schema_table_desc d = {.seed = 1, .generation = 2};
    ck_assert_int_eq(schema_name_space("blue", "", space), 0);
    ck_assert_str_eq(space, "blue");
    ck_assert_str_eq(schema_name_owner(space, owner), "");
    ck_assert_str_eq(owner, "blue");
    schema_name_key(&d, space, "n", keys[0]);
    ck_assert_int_eq(schema_name_space("blue", "red", space), 0);
    ck_assert_str_eq(schema_name_owner(space, owner), "red");
    ck_assert_str_eq(owner, "blue");
    schema_name_key(&d, space, "n", keys[1]);
    ck_assert_int_eq(schema_name_space("red", "blue", space), 0);
    schema_name_key(&d, space, "n", keys[2]);
    ck_assert_int_eq(schema_name_space("red", "", space), 0);
    schema_name_key(&d, space, "n", keys[3]);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            ck_assert_mem_ne(keys[i], keys[k], 16);
    memset(longest, 'x', sizeof longest);
    longest[32] = '\0';
    ck_assert_int_eq(schema_name_space("blue", longest, space), -EINVAL);
    ck_assert_int_eq(schema_name_space(longest, "", space), -EINVAL);
    longest[31] = '\0';
    ck_assert_int_eq(schema_name_space(longest, longest, space), 0);
    ck_assert_str_eq(schema_name_owner(space, owner), longest);
    ck_assert_str_eq(owner, longest);
    ck_assert_int_eq(schema_name_space("blue,red", "", space), -EINVAL);
    ck_assert_int_eq(schema_name_space("blue", "red,", space), -EINVAL);
    ck_assert_int_eq(schema_name_space("", "red", space), -EINVAL);
    ck_assert_int_eq(schema_name_space("blue", "\n", space), -EINVAL);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_hash_is_siphash_2_4_of_128_bits)                                                         \
    T(a_name_is_found_by_its_tenant_with_all_that_it_grants)                                       \
    T(a_record_of_which_half_is_old_is_not_believed)                                               \
    T(another_life_of_the_table_is_not_believed)                                                   \
    T(all_that_it_is_made_for_fit_and_are_found_by_any_seed)                                       \
    T(a_name_is_printable_and_has_an_end)                                                          \
    T(a_space_is_a_tenants_or_one_tenants_for_another_and_no_third)
KEDGE_CHECK_MAIN("schema name record", TESTS)
