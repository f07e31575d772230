/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "metaserver/directory.h"

#define LEASE  1000ull
#define FORGET 10000ull

struct fixture {
    struct meta_directory *directory;
    void *memory;
    uint64_t now;
};

static void setup(struct fixture *f, uint32_t max_nodes, uint32_t max_endpoints)
{
    struct meta_directory_limits limits = {max_nodes, max_endpoints, LEASE, FORGET};
    f->memory = aligned_alloc(64, schema_table_bytes(schema_table_log2_slots(max_endpoints)));
    memset(f->memory, 0, schema_table_bytes(schema_table_log2_slots(max_endpoints)));
    f->directory = meta_directory_new(&limits, f->memory, 0x5eed, 77);
    f->now = 5000;
    ck_assert_ptr_nonnull(f->directory);
}

static void teardown(struct fixture *f)
{
    meta_directory_free(f->directory);
    free(f->memory);
}

/* A node whose process is told apart by `process`, with `count` endpoints numbered from first. */
static struct meta_registration registration(const char *id, uint32_t incarnation, uint64_t process,
                                             uint32_t first, uint32_t count)
{
    struct meta_registration r = {.incarnation = incarnation, .endpoint_count = count};
    snprintf(r.id, sizeof r.id, "%s", id);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i;
        r.endpoint[i] =
            (struct schema_endpoint_record){.pool = 1,
                                            .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
                                            .incarnation = incarnation,
                                            .dctn_mtu = 5u << 24 | 0x100,
                                            .dc_key = process};
        r.endpoint[i].gid[0] = 0xfd;
        memcpy(r.endpoint[i].gid + 12, &number, sizeof number);
    }
    return r;
}

static int do_register(struct fixture *f, struct meta_registration r, struct meta_verdict *verdict)
{
    int status = meta_directory_check(f->directory, &r, verdict);
    if (status != 0)
        return status;
    if (verdict->evict.id[0] != '\0')
        meta_directory_forget(f->directory, &verdict->evict);
    meta_directory_apply(f->directory, &r, f->now);
    return 0;
}

/* What an agent finds that READs the table. */
static int lookup(const struct fixture *f, uint32_t number, struct schema_endpoint_record *out)
{
    const struct schema_table_desc *d = meta_directory_table(f->directory);
    uint8_t gid[16] = {0xfd};
    memcpy(gid + 12, &number, sizeof number);
    size_t home = schema_endpoint_home(d, gid, 1);
    return schema_endpoint_find(d, (const uint8_t *)f->memory + home * SCHEMA_RECORD_BYTES, gid, 1,
                                out);
}

/* The store has all that lapsed. */
static uint32_t expire_all(struct fixture *f, uint64_t now)
{
    struct meta_store_life lives[16];
    const uint32_t count = meta_directory_lapsed(f->directory, lives, 16);
    for (uint32_t i = 0; i < count; i++)
        meta_directory_expire(f->directory, &lives[i], now);
    return count;
}

START_TEST(a_registered_node_is_found_in_the_table_until_its_lease_ends)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    struct meta_store_life ids[4];
    setup(&f, 8, 8);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 2), &v), 0);
    ck_assert(v.created && v.write);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    ck_assert_uint_eq(out.incarnation, 10);
    ck_assert_int_eq(lookup(&f, 2, &out), 0);
    ck_assert_uint_eq(meta_directory_next_lapse(f.directory), f.now + LEASE);
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now + LEASE - 1, NULL, NULL), 0);
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now + LEASE, NULL, NULL), 1);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_int_eq(lookup(&f, 2, &out), -ENOENT);
    ck_assert_uint_eq(meta_directory_next_lapse(f.directory), UINT64_MAX);
    ck_assert_uint_eq(meta_directory_lapsed(f.directory, ids, 4), 1);
    ck_assert_str_eq(ids[0].id, "a");
    ck_assert_uint_eq(expire_all(&f, f.now + LEASE), 1);
    ck_assert_uint_eq(meta_directory_lapsed(f.directory, ids, 4), 0);
    ck_assert_uint_eq(meta_directory_count(f.directory).expired, 1);
    ck_assert_uint_eq(meta_directory_count(f.directory).endpoints, 0);
    teardown(&f);
}
END_TEST

START_TEST(renewing_prolongs_the_lease_of_that_node_alone)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    uint32_t known;
    setup(&f, 8, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 1), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("b", 10, 2, 2, 1), &v), 0);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 10, f.now + 900, &known), 0);
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now + LEASE, NULL, NULL), 1);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    ck_assert_int_eq(lookup(&f, 2, &out), -ENOENT);
    ck_assert_int_eq(meta_directory_renew(f.directory, "b", 10, f.now, &known), -EUNATCH);
    ck_assert_int_eq(meta_directory_renew(f.directory, "c", 10, f.now, &known), -ENOENT);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 11, f.now, &known), -EUNATCH);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 9, f.now, &known), -ESTALE);
    ck_assert_uint_eq(known, 10);
    teardown(&f);
}
END_TEST

START_TEST(an_older_incarnation_and_the_same_one_of_another_process_are_refused)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 8, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 2), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("a", 9, 1, 1, 2), &v), -ESTALE);
    ck_assert_uint_eq(v.known_incarnation, 10);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 2), &v), -ESTALE);
    ck_assert_uint_eq(v.known_incarnation, 10);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    ck_assert_uint_eq(out.dc_key, 1);
    ck_assert_int_eq(do_register(&f, registration("a", 11, 2, 1, 2), &v), 0);
    ck_assert(!v.created && v.write);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    ck_assert_uint_eq(out.dc_key, 2);
    ck_assert_uint_eq(out.incarnation, 11);
    teardown(&f);
}
END_TEST

START_TEST(a_process_may_repeat_itself_and_change_its_endpoints)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 8, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 2), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 2), &v), 0);
    ck_assert(!v.created && !v.write); /* nothing new: the disk is spared */
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 2, 3), &v), 0);
    ck_assert(v.write);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_int_eq(lookup(&f, 2, &out), 0);
    ck_assert_int_eq(lookup(&f, 4, &out), 0);
    ck_assert_uint_eq(meta_directory_count(f.directory).published, 3);
    ck_assert_uint_eq(meta_directory_count(f.directory).endpoints, 3);
    teardown(&f);
}
END_TEST

/* Endpoints with the numbers first .. first + count - 1, of which one has another process' key. */
static struct meta_registration changed(uint32_t first, uint32_t count, uint32_t which)
{
    struct meta_registration r = registration("a", 10, 1, first, count);
    r.endpoint[which - first].dc_key = 2;
    return r;
}

START_TEST(of_the_same_incarnation_one_endpoint_is_what_it_was)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 8, 16);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 3), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 3), &v), -ESTALE);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 5), &v), -ESTALE);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 4, 3), &v), -ESTALE); /* none of it */
    ck_assert_int_eq(lookup(&f, 4, &out), -ENOENT);
    for (uint32_t which = 1; which <= 3; which++) { /* one is made anew */
        ck_assert_int_eq(do_register(&f, changed(1, 3, which), &v), 0);
        ck_assert(v.write && !v.created);
        ck_assert_int_eq(lookup(&f, which, &out), 0);
        ck_assert_uint_eq(out.dc_key, 2);
    }
    ck_assert_int_eq(do_register(&f, changed(2, 3, 4), &v), 0); /* which is new */
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT);
    ck_assert_int_eq(lookup(&f, 4, &out), 0);
    ck_assert_uint_eq(out.dc_key, 2);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 4, 2), &v), -ESTALE); /* 4 is other */
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 3), &v), 0);
    teardown(&f);
}
END_TEST

START_TEST(pools_of_one_gid_come_and_go)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_registration r = registration("a", 10, 1, 1, 1);
    const struct schema_table_desc *d;
    struct schema_endpoint_record out;
    setup(&f, 8, 8);
    d = meta_directory_table(f.directory);
    ck_assert_int_eq(do_register(&f, r, &v), 0);
    r.endpoint[1] = r.endpoint[0];
    r.endpoint[1].pool = 513;
    r.endpoint[1].dc_key = 77;
    r.endpoint_count = 2;
    ck_assert_int_eq(do_register(&f, r, &v), 0);
    ck_assert(v.write && !v.created);
    const uint8_t *home = (const uint8_t *)f.memory +
                          schema_endpoint_home(d, r.endpoint[0].gid, 513) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_endpoint_find(d, home, r.endpoint[0].gid, 513, &out), 0);
    ck_assert_uint_eq(out.dc_key, 77);
    r.endpoint_count = 1;
    ck_assert_int_eq(do_register(&f, r, &v), 0);
    ck_assert(v.write);
    ck_assert_int_eq(schema_endpoint_find(d, home, r.endpoint[0].gid, 513, &out), -ENOENT);
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    teardown(&f);
}
END_TEST

START_TEST(endpoints_may_change_while_the_metaserver_hears_nothing_of_it)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_store_node stored;
    struct meta_registration r = registration("a", 10, 1, 1, 2);
    for (int how = 0; how < 3; how++) { /* restarted; and expired; lapsed */
        setup(&f, 8, 8);
        meta_directory_durable(&r, &stored);
        stored.expired = how == 1;
        stored.endpoint_count = how == 1 ? 0 : 2;
        if (how < 2) {
            ck_assert_int_eq(meta_directory_restore(f.directory, &stored, f.now), 0);
        } else {
            ck_assert_int_eq(do_register(&f, r, &v), 0);
            f.now += LEASE;
            meta_directory_lapse(f.directory, f.now, NULL, NULL);
        }
        ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 3), &v), -ESTALE);
        ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 3, 2), &v), -ESTALE);
        ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 2, 3), &v), 0);
        ck_assert(v.write && !v.created);
        teardown(&f);
    }
}
END_TEST

START_TEST(what_an_older_store_knows_is_enough_for_the_same_endpoints)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_store_node stored;
    struct meta_registration r = registration("a", 10, 1, 1, 2);
    setup(&f, 8, 8);
    meta_directory_durable(&r, &stored);
    stored.fingerprint.count = 0;
    ck_assert_int_eq(meta_directory_restore(f.directory, &stored, f.now), 0);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 3), &v), -ESTALE);
    ck_assert_int_eq(do_register(&f, r, &v), 0);
    ck_assert(v.write); /* so that it knows more from now on */
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 3), &v), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_node_that_lapsed_comes_back_with_the_same_incarnation)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 8, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 1), &v), 0);
    f.now += LEASE;
    meta_directory_lapse(f.directory, f.now, NULL, NULL);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 1), &v), -ESTALE);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 1, 1), &v), 0);
    ck_assert(v.write); /* the store may say that it expired */
    ck_assert_int_eq(lookup(&f, 1, &out), 0);
    teardown(&f);
}
END_TEST

START_TEST(an_endpoint_belongs_to_one_node)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 8, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 1, 5, 1), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("b", 10, 2, 4, 2), &v), -EEXIST);
    ck_assert_uint_eq(v.endpoint, 1);
    ck_assert_str_eq(v.owner, "a");
    ck_assert_int_eq(lookup(&f, 4, &out), -ENOENT);
    ck_assert_int_eq(meta_directory_remove(f.directory, "a"), 0);
    ck_assert_int_eq(lookup(&f, 5, &out), -ENOENT);
    ck_assert_int_eq(meta_directory_remove(f.directory, "a"), -ENOENT);
    ck_assert_int_eq(do_register(&f, registration("b", 10, 2, 4, 2), &v), 0);
    ck_assert_int_eq(lookup(&f, 5, &out), 0);
    ck_assert_uint_eq(out.dc_key, 2);
    teardown(&f);
}
END_TEST

START_TEST(a_restored_node_waits_and_comes_back_without_a_write)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    struct meta_node_view view;
    struct meta_store_node stored, clash;
    uint32_t known;
    struct meta_registration r = registration("a", 10, 1, 1, 2);
    setup(&f, 8, 8);
    meta_directory_durable(&r, &stored);
    ck_assert_int_eq(meta_directory_restore(f.directory, &stored, f.now), 0);
    ck_assert_int_eq(meta_directory_restore(f.directory, &stored, f.now), -EEXIST);
    clash = stored;
    clash.id[0] = 'b';
    ck_assert_int_eq(meta_directory_restore(f.directory, &clash, f.now), -EEXIST);
    ck_assert_int_eq(lookup(&f, 1, &out), -EUNATCH); /* who READs it is to look again */
    ck_assert_int_eq(lookup(&f, 2, &out), -EUNATCH);
    ck_assert_uint_eq(out.incarnation, 10);
    ck_assert_int_eq(lookup(&f, 3, &out), -ENOENT);
    ck_assert_uint_eq(meta_directory_count(f.directory).awaited, 2);
    ck_assert_int_eq(meta_directory_show(f.directory, "a", f.now + 1, &view), 0);
    ck_assert_int_eq(view.state, META_NODE_WAITING);
    ck_assert_uint_eq(view.expires_in_ns, LEASE - 1);
    ck_assert_uint_eq(view.endpoint_count, 2);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 10, f.now, &known), -EUNATCH);
    /* Its endpoints stay its own while it may come back. */
    ck_assert_int_eq(do_register(&f, registration("b", 1, 2, 1, 1), &v), -EEXIST);
    ck_assert_int_eq(do_register(&f, registration("a", 10, 2, 1, 2), &v), -ESTALE);
    ck_assert_int_eq(do_register(&f, r, &v), 0);
    ck_assert(!v.created && !v.write);
    ck_assert_int_eq(lookup(&f, 2, &out), 0);
    ck_assert_uint_eq(meta_directory_count(f.directory).awaited, 0);
    ck_assert_int_eq(meta_directory_renew(f.directory, "a", 10, f.now, &known), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_restored_node_that_does_not_come_lapses)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    struct meta_store_node stored;
    struct meta_registration r = registration("a", 10, 1, 1, 1);
    setup(&f, 8, 8);
    meta_directory_durable(&r, &stored);
    ck_assert_int_eq(meta_directory_restore(f.directory, &stored, f.now), 0);
    ck_assert_uint_eq(meta_directory_lapse(f.directory, f.now + LEASE, NULL, NULL), 1);
    ck_assert_int_eq(lookup(&f, 1, &out), -ENOENT); /* nobody waits for it any more */
    ck_assert_int_eq(do_register(&f, registration("b", 1, 2, 1, 1), &v), 0);
    teardown(&f);
}
END_TEST

START_TEST(full_tables_refuse_the_next_one_and_change_nothing)
{
    struct fixture f;
    struct meta_verdict v;
    struct schema_endpoint_record out;
    setup(&f, 4, 4);
    ck_assert_int_eq(do_register(&f, registration("a", 1, 1, 1, 3), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("b", 1, 1, 4, 2), &v), -ENOSPC);
    ck_assert_uint_eq(v.endpoint, 1);
    ck_assert_int_eq(lookup(&f, 4, &out), -ENOENT);
    ck_assert_uint_eq(meta_directory_count(f.directory).nodes, 1);
    ck_assert_int_eq(do_register(&f, registration("b", 1, 1, 4, 1), &v), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_full_span_refuses_and_counts_the_endpoints_of_one_request_together)
{
    struct fixture f;
    struct meta_verdict v;
    uint32_t numbers[20], count = 0, last = SCHEMA_TABLE_SPAN + 3;
    setup(&f, 64, 64);
    const struct schema_table_desc *d = meta_directory_table(f.directory);
    for (uint32_t n = 1; count < last + 1; n++) {
        struct meta_registration r = registration("x", 1, 1, n, 1);
        if (schema_endpoint_home(d, r.endpoint[0].gid, 1) == 33)
            numbers[count++] = n;
    }
    for (uint32_t i = 0; i < SCHEMA_TABLE_SPAN - 1; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%u", i);
        ck_assert_int_eq(do_register(&f, registration(id, 1, 1, numbers[i], 1), &v), 0);
    }
    /* One slot is left: two of one request do not fit, one does. */
    struct meta_registration two = registration("two", 1, 1, numbers[16], 1);
    two.endpoint[two.endpoint_count++] = registration("x", 1, 1, numbers[17], 1).endpoint[0];
    ck_assert_int_eq(do_register(&f, two, &v), -ENOSPC);
    ck_assert_uint_eq(v.endpoint, 1);
    two.endpoint_count = 1;
    ck_assert_int_eq(do_register(&f, two, &v), 0);
    ck_assert_int_eq(do_register(&f, registration("z", 1, 1, numbers[18], 1), &v), -ENOSPC);
    teardown(&f);
}
END_TEST

START_TEST(the_oldest_expired_node_makes_room_for_a_new_one)
{
    struct fixture f;
    struct meta_verdict v;
    setup(&f, 2, 8);
    ck_assert_int_eq(do_register(&f, registration("a", 1, 1, 1, 1), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("b", 1, 1, 2, 1), &v), 0);
    ck_assert_int_eq(do_register(&f, registration("c", 1, 1, 3, 1), &v), -ENOSPC);
    ck_assert_uint_eq(v.endpoint, UINT32_MAX);
    f.now += LEASE;
    meta_directory_lapse(f.directory, f.now, NULL, NULL);
    ck_assert_uint_eq(expire_all(&f, f.now), 2);
    ck_assert_int_eq(do_register(&f, registration("c", 1, 1, 3, 1), &v), 0);
    ck_assert_str_eq(v.evict.id, "a");
    ck_assert_uint_eq(meta_directory_count(f.directory).nodes, 2);
    teardown(&f);
}
END_TEST

/* The store says so when it has it, and by then its agent may have come back. */
START_TEST(what_is_said_of_a_life_that_is_over_does_not_touch_the_next_one)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_store_life life;
    struct meta_node_view view;
    setup(&f, 4, 4);
    ck_assert_int_eq(do_register(&f, registration("a", 1, 1, 1, 1), &v), 0);
    f.now += LEASE;
    meta_directory_lapse(f.directory, f.now, NULL, NULL);
    ck_assert_uint_eq(meta_directory_lapsed(f.directory, &life, 1), 1);
    ck_assert_int_eq(do_register(&f, registration("a", 1, 1, 1, 1), &v), 0); /* the same one */
    meta_directory_expire(f.directory, &life, f.now);
    meta_directory_forget(f.directory, &life);
    ck_assert_int_eq(meta_directory_show(f.directory, "a", f.now, &view), 0);
    ck_assert_int_eq(view.state, META_NODE_LIVE);
    ck_assert_int_eq(do_register(&f, registration("a", 2, 1, 1, 1), &v), 0);
    f.now += LEASE;
    meta_directory_lapse(f.directory, f.now, NULL, NULL);
    meta_directory_expire(f.directory, &life, f.now);
    ck_assert_int_eq(meta_directory_show(f.directory, "a", f.now, &view), 0);
    ck_assert_int_eq(view.state, META_NODE_LAPSED);
    ck_assert_uint_eq(expire_all(&f, f.now), 1);
    meta_directory_forget(f.directory, &life);
    ck_assert_int_eq(meta_directory_show(f.directory, "a", f.now, &view), 0);
    ck_assert_int_eq(view.state, META_NODE_EXPIRED);
    teardown(&f);
}
END_TEST

START_TEST(an_expired_node_is_forgotten_in_its_time)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_store_life ids[2];
    setup(&f, 4, 4);
    ck_assert_int_eq(do_register(&f, registration("a", 1, 1, 1, 1), &v), 0);
    f.now += LEASE;
    meta_directory_lapse(f.directory, f.now, NULL, NULL);
    ck_assert_uint_eq(expire_all(&f, f.now), 1);
    ck_assert_uint_eq(meta_directory_forgettable(f.directory, f.now + FORGET - 1, ids, 2), 0);
    ck_assert_uint_eq(meta_directory_forgettable(f.directory, f.now + FORGET, ids, 2), 1);
    ck_assert_str_eq(ids[0].id, "a");
    teardown(&f);
}
END_TEST

START_TEST(nodes_are_listed_in_order)
{
    struct fixture f;
    struct meta_verdict v;
    struct meta_node_view view = {.id = ""};
    char seen[64] = {0};
    setup(&f, 8, 8);
    static const char *const ids[] = {"c", "a", "d", "b.x", "b"};
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_int_eq(do_register(&f, registration(ids[i], 1, 1, i, 1), &v), 0);
    while (meta_directory_after(f.directory, view.id, f.now, &view) == 0) {
        size_t used = strlen(seen);
        memcpy(seen + used, view.id, strlen(view.id) + 1);
        seen[strlen(seen)] = ' ';
        ck_assert_uint_eq(view.endpoint[0].mtu, 4096);
    }
    ck_assert_str_eq(seen, "a b b.x c d ");
    ck_assert_int_eq(meta_directory_after(f.directory, "bb", f.now, &view), 0);
    ck_assert_str_eq(view.id, "c");
    ck_assert_int_eq(meta_directory_show(f.directory, "nobody", f.now, &view), -ENOENT);
    teardown(&f);
}
END_TEST

/* A model of a few nodes beside the core; whatever happens, the table holds what the model says. */
START_TEST(random_steps_keep_the_table_equal_to_a_simple_model)
{
    enum { NODES = 12 };
    struct {
        uint32_t incarnation;
        uint64_t end; /* 0: not live */
    } model[NODES] = {{0, 0}};
    struct fixture f;
    struct base_prng prng;
    struct meta_verdict v;
    setup(&f, NODES, NODES);
    base_prng_seed(&prng, 11);
    for (int step = 0; step < 20000; step++) {
        uint32_t n = (uint32_t)base_prng_below(&prng, NODES), known;
        char id[8];
        snprintf(id, sizeof id, "n%u", n);
        f.now += base_prng_below(&prng, 120);
        meta_directory_lapse(f.directory, f.now, NULL, NULL);
        for (uint32_t i = 0; i < NODES; i++)
            if (model[i].end <= f.now)
                model[i].end = 0;
        switch (base_prng_below(&prng, 5)) {
        case 0:
            model[n].incarnation++;
            /* fall through */
        case 1:
            if (model[n].incarnation == 0)
                break;
            ck_assert_int_eq(do_register(&f, registration(id, model[n].incarnation, n, n, 1), &v),
                             0);
            model[n].end = f.now + LEASE;
            break;
        case 2:
            if (meta_directory_renew(f.directory, id, model[n].incarnation, f.now, &known) == 0) {
                ck_assert_uint_ne(model[n].end, 0);
                model[n].end = f.now + LEASE;
            } else {
                ck_assert_uint_eq(model[n].end, 0);
            }
            break;
        case 3:
            (void)expire_all(&f, f.now);
            break;
        default:
            if (base_prng_below(&prng, 8) == 0 && meta_directory_remove(f.directory, id) == 0)
                model[n].end = 0;
        }
        for (uint32_t i = 0; i < NODES; i++) {
            struct schema_endpoint_record out;
            ck_assert_int_eq(lookup(&f, i, &out), model[i].end != 0 ? 0 : -ENOENT);
        }
    }
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_registered_node_is_found_in_the_table_until_its_lease_ends)                                \
    T(renewing_prolongs_the_lease_of_that_node_alone)                                              \
    T(an_older_incarnation_and_the_same_one_of_another_process_are_refused)                        \
    T(a_process_may_repeat_itself_and_change_its_endpoints)                                        \
    T(of_the_same_incarnation_one_endpoint_is_what_it_was)                                         \
    T(pools_of_one_gid_come_and_go)                                                                \
    T(endpoints_may_change_while_the_metaserver_hears_nothing_of_it)                               \
    T(what_an_older_store_knows_is_enough_for_the_same_endpoints)                                  \
    T(a_node_that_lapsed_comes_back_with_the_same_incarnation)                                     \
    T(an_endpoint_belongs_to_one_node)                                                             \
    T(a_restored_node_waits_and_comes_back_without_a_write)                                        \
    T(a_restored_node_that_does_not_come_lapses)                                                   \
    T(full_tables_refuse_the_next_one_and_change_nothing)                                          \
    T(a_full_span_refuses_and_counts_the_endpoints_of_one_request_together)                        \
    T(the_oldest_expired_node_makes_room_for_a_new_one)                                            \
    T(what_is_said_of_a_life_that_is_over_does_not_touch_the_next_one)                             \
    T(an_expired_node_is_forgotten_in_its_time)                                                    \
    T(nodes_are_listed_in_order)                                                                   \
    T(random_steps_keep_the_table_equal_to_a_simple_model)
KEDGE_CHECK_MAIN("metaserver core", TESTS)
