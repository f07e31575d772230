/* SPDX-License-Identifier: Apache-2.0 */
/* What the table says of endpoints whose agents have registered them with other metaservers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "metaserver/directory_heard.h"

#define LEASE  1000ull
#define FORGET 10000ull

enum { ENDPOINTS = 8 };

struct fixture {
    struct meta_directory *directory;
    void *memory;
    uint64_t now;
};

static void setup(struct fixture *f)
{
    const struct meta_directory_limits limits = {8, ENDPOINTS, LEASE, FORGET};
    const size_t bytes = schema_table_bytes(schema_table_log2_slots(ENDPOINTS));
    f->memory = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(f->memory);
    memset(f->memory, 0, bytes);
    f->directory = meta_directory_new(&limits, f->memory, 0x5eed, 77);
    f->now = 5000;
    ck_assert_ptr_nonnull(f->directory);
    meta_directory_share(f->directory);
}

static void teardown(struct fixture *f)
{
    meta_directory_free(f->directory);
    free(f->memory);
}

static void number_gid(uint32_t number, uint8_t gid[16])
{
    gid[0] = 0xfd;
    memcpy(gid + 12, &number, sizeof number);
}

/* Of node "a", with `count` endpoints from `first` on. */
static struct meta_registration registration(uint32_t incarnation, uint32_t first, uint32_t count)
{
    struct meta_registration r = {.id = "a", .incarnation = incarnation, .endpoint_count = count};
    for (uint32_t i = 0; i < count; i++) {
        r.endpoint[i] =
            (struct schema_endpoint_record){.pool = 1,
                                            .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
                                            .incarnation = incarnation,
                                            .dctn_mtu = 5u << 24 | 0x100,
                                            .dc_key = incarnation};
        number_gid(first + i, r.endpoint[i].gid);
    }
    return r;
}

static void do_register(struct fixture *f, const struct meta_registration *r)
{
    struct meta_verdict verdict;
    ck_assert_int_eq(meta_directory_check(f->directory, r, &verdict), 0);
    meta_directory_apply(f->directory, r, f->now);
}

/* What an agent finds that READs the table. */
static int lookup(const struct fixture *f, uint32_t number, struct schema_endpoint_record *out)
{
    const struct schema_table_desc *d = meta_directory_table(f->directory);
    uint8_t gid[16] = {0};
    number_gid(number, gid);
    const size_t home = schema_endpoint_home(d, gid, 1);
    return schema_endpoint_find(d, (const uint8_t *)f->memory + home * SCHEMA_RECORD_BYTES, gid, 1,
                                out);
}

/* What the store says of a node, as other metaservers hear it. */
static void hear(struct fixture *f, const struct meta_registration *r, bool expired)
{
    struct meta_directory_before before;
    struct meta_store_node stored;
    meta_directory_durable(r, &stored);
    stored.expired = expired;
    stored.endpoint_count = expired ? 0 : stored.endpoint_count;
    ck_assert_int_eq(meta_directory_hear(f->directory, &stored, f->now, &before), 0);
}

START_TEST(what_others_have_registered_is_awaited_until_it_registers_here_or_is_gone)
{
    struct fixture f;
    struct schema_endpoint_record out;
    const struct meta_registration one = registration(10, 1, 1), two = registration(10, 1, 2),
                                   later = registration(11, 2, 2);
    setup(&f);
    hear(&f, &one, false);
    ck_assert_int_eq(lookup(&f, 1, &out), -EUNATCH);
    do_register(&f, &one);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    hear(&f, &two, false); /* a pool of the same life, which is not told here yet */
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    ck_assert_int_eq(lookup(&f, 2, &out), -EUNATCH);
    hear(&f, &later, false);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_int_eq(lookup(&f, 2, &out), -EUNATCH);
    ck_assert_uint_eq(out.incarnation, 11);
    ck_assert_int_eq(lookup(&f, 3, &out), -EUNATCH);
    hear(&f, &later, true);
    ck_assert_int_eq(lookup(&f, 2, &out), -ENOENT);
    ck_assert_uint_eq(meta_directory_count(f.directory).awaited, 0);
    teardown(&f);
}
END_TEST

START_TEST(a_node_that_only_others_hear_of_is_awaited)
{
    struct fixture f;
    struct schema_endpoint_record out;
    const struct meta_registration r = registration(10, 1, 1);
    const struct meta_store_life life = {.id = "a", .incarnation = 10};
    setup(&f);
    do_register(&f, &r);
    f.now += LEASE;
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now, NULL, NULL), 1);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    meta_directory_heard_elsewhere(f.directory, &life, f.now);
    ck_assert_int_eq(lookup(&f, 1, &out), -EUNATCH);
    ck_assert_int_eq(meta_directory_remove(f.directory, "a"), 0);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_uint_eq(meta_directory_count(f.directory).awaited, 0);
    teardown(&f);
}
END_TEST

/* Whatever became of the call by which the store was told so: it may have carried it out, and then
 * expires the node when the others say the same. */
START_TEST(who_was_said_to_be_silent_is_not_kept_as_it_was_when_it_registers_again)
{
    struct meta_registration r = registration(1, 1, 1);
    struct meta_store_life lapsed;
    struct meta_verdict verdict;
    struct fixture f;
    uint32_t known;
    setup(&f);
    do_register(&f, &r);
    f.now += LEASE + 1;
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now, NULL, NULL), 1);
    ck_assert_uint_eq(meta_directory_lapsed(f.directory, &lapsed, 1), 1);
    meta_directory_vote(f.directory, &lapsed);
    hear(&f, &r, false);
    ck_assert_int_eq(meta_directory_check(f.directory, &r, &verdict), 0);
    ck_assert(verdict.write);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 1, f.now, &known), -EUNATCH);
    meta_directory_apply(f.directory, &r, f.now); /* the store has heard it */
    ck_assert_int_eq(meta_directory_check(f.directory, &r, &verdict), 0);
    ck_assert(!verdict.write);
    meta_directory_vote(f.directory, &lapsed); /* and when it has come back meanwhile */
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 1, f.now, &known), -EUNATCH);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_others_have_registered_is_awaited_until_it_registers_here_or_is_gone)                   \
    T(a_node_that_only_others_hear_of_is_awaited)                                                  \
    T(who_was_said_to_be_silent_is_not_kept_as_it_was_when_it_registers_again)

KEDGE_CHECK_MAIN("metaserver.directory.awaited", TESTS)
