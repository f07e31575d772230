/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "metaserver/names.h"

enum { MAX = 32 };

struct fixture {
    void *memory;
    struct meta_names *names;
};

static void setup(struct fixture *f)
{
    const size_t bytes = schema_name_table_bytes(schema_table_log2_slots(MAX));
    f->memory = aligned_alloc(64, bytes);
    memset(f->memory, 0, bytes);
    f->names = meta_names_new(MAX, f->memory, 1, 2);
    ck_assert_ptr_nonnull(f->names);
}

static void teardown(struct fixture *f)
{
    meta_names_free(f->names);
    free(f->memory);
}

static struct meta_store_name named(const char *tenant, const char *name, const char *node,
                                    uint32_t incarnation)
{
    const struct schema_token grant = {.gid = {0xfd}, .vkey = incarnation, .length = 1};
    struct meta_store_name n = {.incarnation = incarnation};
    snprintf(n.tenant, sizeof n.tenant, "%s", tenant);
    snprintf(n.name, sizeof n.name, "%s", name);
    snprintf(n.node, sizeof n.node, "%s", node);
    schema_token_format(&grant, n.grant);
    return n;
}

static int put(struct fixture *f, struct meta_store_name name, bool shown)
{
    return meta_names_put(f->names, &name, shown);
}

/* The incarnation that who READs the table finds; 0: none. */
static uint32_t read_name(const struct fixture *f, const char *tenant, const char *name)
{
    const struct schema_table_desc *d = meta_names_table(f->names);
    struct schema_name_record r;
    uint8_t key[16];
    schema_name_key(d, tenant, name, key);
    const uint8_t *span =
        (const uint8_t *)f->memory + (size_t)schema_name_home(d, key) * SCHEMA_NAME_RECORD_BYTES;
    return schema_name_find(d, span, key, &r) == 0 ? r.incarnation : 0;
}

START_TEST(names_are_found_in_their_order_and_in_the_table)
{
    struct fixture f;
    setup(&f);
    ck_assert_int_eq(put(&f, named("b", "x", "n", 1), true), 0);
    ck_assert_int_eq(put(&f, named("a", "y", "n", 2), true), 0);
    ck_assert_int_eq(put(&f, named("a", "x", "n", 3), false), 0);
    ck_assert_uint_eq(meta_names_count(f.names), 3);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "a"), 2);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "b"), 1);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "c"), 0);
    const struct meta_store_name *at = meta_names_after(f.names, "", "");
    ck_assert_uint_eq(at->incarnation, 3);
    at = meta_names_after(f.names, at->tenant, at->name);
    ck_assert_uint_eq(at->incarnation, 2);
    at = meta_names_after(f.names, at->tenant, at->name);
    ck_assert_uint_eq(at->incarnation, 1);
    ck_assert_ptr_null(meta_names_after(f.names, at->tenant, at->name));
    ck_assert_uint_eq(read_name(&f, "b", "x"), 1);
    ck_assert_uint_eq(read_name(&f, "a", "y"), 2);
    ck_assert_uint_eq(read_name(&f, "a", "x"), 0);
    ck_assert_int_eq(put(&f, named("b", "x", "m", 9), true), 0);
    ck_assert_uint_eq(read_name(&f, "b", "x"), 9);
    struct meta_store_name other = named("b", "x", "n", 1);
    meta_names_remove(f.names, &other); /* another one's by now */
    ck_assert_uint_eq(read_name(&f, "b", "x"), 9);
    other.node[0] = '\0';
    meta_names_remove(f.names, &other);
    ck_assert_ptr_null(meta_names_find(f.names, "b", "x"));
    ck_assert_uint_eq(read_name(&f, "b", "x"), 0);
    meta_names_begin_load(f.names);
    meta_names_end_load(f.names);
    ck_assert_uint_eq(read_name(&f, "a", "y"), 0);
    teardown(&f);
}
END_TEST

START_TEST(what_grants_nothing_and_what_has_no_room_is_refused)
{
    struct fixture f;
    char name[16];
    setup(&f);
    struct meta_store_name one = named("t", "x", "n", 1);
    snprintf(one.grant, sizeof one.grant, "kedge1.nothing");
    ck_assert_int_eq(meta_names_put(f.names, &one, true), -EINVAL);
    for (uint32_t i = 0; i < MAX; i++) {
        snprintf(name, sizeof name, "%u", i);
        one = named("t", name, "n", i + 1);
        ck_assert_int_eq(meta_names_check(f.names, &one), 0);
        ck_assert_int_eq(meta_names_put(f.names, &one, true), 0);
    }
    ck_assert_int_eq(meta_names_check(f.names, &one), 0);
    one = named("t", "more", "n", 1);
    ck_assert_int_eq(meta_names_check(f.names, &one), -ENOSPC);
    ck_assert_int_eq(meta_names_put(f.names, &one, true), -ENOSPC);
    teardown(&f);
}
END_TEST

static enum meta_name_life life_of(void *user, const struct meta_store_name *name)
{
    (void)user;
    return name->node[0] == 'l'   ? META_NAME_LIVE
           : name->node[0] == 'a' ? META_NAME_AWAY
                                  : META_NAME_DEAD;
}

START_TEST(a_sweep_shows_who_lives_and_tells_who_is_dead)
{
    struct fixture f;
    struct meta_store_name dead[META_STORE_NAMES_MAX];
    char name[16];
    setup(&f);
    ck_assert_int_eq(put(&f, named("t", "x", "live", 1), false), 0);
    ck_assert_int_eq(put(&f, named("t", "y", "away", 2), true), 0);
    ck_assert_int_eq(put(&f, named("t", "z", "dead", 3), true), 0);
    ck_assert_uint_eq(meta_names_sweep(f.names, life_of, NULL, dead), 1);
    ck_assert_str_eq(dead[0].name, "z");
    ck_assert_uint_eq(read_name(&f, "t", "x"), 1);
    ck_assert_uint_eq(read_name(&f, "t", "y"), 0);
    ck_assert_uint_eq(read_name(&f, "t", "z"), 0);
    ck_assert_uint_eq(meta_names_count(f.names), 3);
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%u", i);
        ck_assert_int_eq(put(&f, named("u", name, "dead", 1), false), 0);
    }
    ck_assert_uint_eq(meta_names_sweep(f.names, life_of, NULL, dead), META_STORE_NAMES_MAX);
    ck_assert_uint_eq(meta_names_sweep(f.names, life_of, NULL, NULL), 0);
    teardown(&f);
}
END_TEST

/* Against a list that is plain. */
START_TEST(any_order_of_changes_leaves_what_it_should)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct fixture f;
        struct base_prng prng;
        uint32_t incarnation[2][10] = {{0}}, all = 0;
        char tenant[] = "t0", name[] = "n0";
        base_prng_seed(&prng, seed);
        setup(&f);
        for (uint32_t step = 1; step <= 300; step++) {
            const uint64_t t = base_prng_below(&prng, 2), k = base_prng_below(&prng, 10);
            tenant[1] = (char)('0' + t);
            name[1] = (char)('0' + k);
            struct meta_store_name one = named(tenant, name, "n", step);
            const bool puts = base_prng_below(&prng, 3) > 0;
            if (puts)
                ck_assert_int_eq(meta_names_put(f.names, &one, true), 0);
            one.node[0] = '\0';
            if (!puts)
                meta_names_remove(f.names, &one);
            incarnation[t][k] = puts ? step : 0;
        }
        for (int t = 0; t < 2; t++)
            for (int k = 0; k < 10; k++) {
                tenant[1] = (char)('0' + t);
                name[1] = (char)('0' + k);
                all += incarnation[t][k] != 0;
                ck_assert_uint_eq(read_name(&f, tenant, name), incarnation[t][k]);
            }
        ck_assert_uint_eq(meta_names_count(f.names), all);
        ck_assert_uint_eq(meta_names_of_tenant(f.names, "t0") + meta_names_of_tenant(f.names, "t1"),
                          all);
        teardown(&f);
    }
}
END_TEST

/* Names that sort around a comma, which tenants do not have. */
START_TEST(a_tenants_names_are_counted_with_those_for_others_and_no_other_tenants)
{
    static const char *const spaces[] = {"a",     "a,b", "a,z", "a-b", "a.b",
                                         "a-b,a", "a0",  "b,a", "aa"};
    struct fixture f;
    setup(&f);
    for (uint32_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        ck_assert_int_eq(put(&f, named(spaces[i], "x", "n", i + 1), true), 0);
        ck_assert_int_eq(put(&f, named(spaces[i], "y", "n", i + 1), true), 0);
        ck_assert_uint_eq(read_name(&f, spaces[i], "x"), i + 1);
    }
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "a"), 6);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "a-b"), 4);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "b"), 2);
    ck_assert_uint_eq(meta_names_of_tenant(f.names, "z"), 0);
    teardown(&f);
}
END_TEST

/* What a walk through all of them finds. */
static void expect_nodes(const struct fixture *f, uint64_t seed)
{
    for (int node = 0; node < 4; node++) {
        char id[8];
        uint32_t count = 0;
        const struct meta_store_name *own, *all = meta_names_after(f->names, "", "");
        snprintf(id, sizeof id, "n%d", node);
        own = meta_names_after_of_node(f->names, id, "", "");
        for (; all != NULL; all = meta_names_after(f->names, all->tenant, all->name)) {
            if (strcmp(all->node, id) != 0)
                continue;
            ck_assert_msg(own == all, "seed %" PRIu64, seed);
            own = meta_names_after_of_node(f->names, id, own->tenant, own->name);
            count++;
        }
        ck_assert_ptr_null(own);
        ck_assert_uint_eq(meta_names_of_node(f->names, id), count);
    }
}

START_TEST(those_of_a_node_are_what_a_walk_through_all_of_them_finds)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture f;
        struct base_prng prng;
        setup(&f);
        base_prng_seed(&prng, seed);
        for (int step = 0; step < 400; step++) {
            char tenant[8], name[8], node[8];
            snprintf(tenant, sizeof tenant, "t%d", (int)base_prng_below(&prng, 3));
            snprintf(name, sizeof name, "%d", (int)base_prng_below(&prng, 16));
            snprintf(node, sizeof node, "n%d", (int)base_prng_below(&prng, 3));
            struct meta_store_name one = named(tenant, name, node, 1);
            const uint64_t what = base_prng_below(&prng, 50);
            if (what == 0) {
                meta_names_begin_load(f.names);
                (void)meta_names_put(f.names, &one, true);
                meta_names_end_load(f.names);
            } else if (what < 15) {
                one.node[0] = what < 10 ? '\0' : one.node[0];
                meta_names_remove(f.names, &one);
            } else {
                (void)meta_names_put(f.names, &one, what < 40);
            }
            expect_nodes(&f, seed);
        }
        teardown(&f);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(names_are_found_in_their_order_and_in_the_table)                                             \
    T(what_grants_nothing_and_what_has_no_room_is_refused)                                         \
    T(a_sweep_shows_who_lives_and_tells_who_is_dead)                                               \
    T(any_order_of_changes_leaves_what_it_should)                                                  \
    T(a_tenants_names_are_counted_with_those_for_others_and_no_other_tenants)                      \
    T(those_of_a_node_are_what_a_walk_through_all_of_them_finds)
KEDGE_CHECK_MAIN("metaserver names", TESTS)
