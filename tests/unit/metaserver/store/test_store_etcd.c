/* SPDX-License-Identifier: Apache-2.0 */
/* A store in etcd that several metaservers share, and what its watch gives. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "etcd_replay.h"

static bool has_etcd(void)
{
    return etcd_is_there("what metaservers share in etcd");
}

/* Sets a resource of this name. */
static struct meta_store_outcome set_resource(struct meta_store *store, const char *name,
                                              const char *body)
{
    const struct meta_store_change c = {
        .revision = 1, .who = "me", .kind = "tenant", .name = name, .after = body};
    struct meta_store_outcome out;
    meta_store_commit(store, &(struct meta_store_txn){.change = &c}, &out);
    return out;
}

static void expect_same(struct meta_store *a, struct meta_store *b)
{
    char *one = dump_store(a), *other = dump_store(b);
    ck_assert_str_eq(one, other);
    free(one);
    free(other);
}

START_TEST(a_watch_gives_what_is_there_and_then_each_transaction)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/w/", "a"),
                      *b = open_member(etcd_url(), "/w", "b");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/w/", "a");
    const struct meta_store_life gone = {"m", 7};
    struct replay r = {.at = 0};
    struct meta_store_outcome out;
    put(a, node("n", 1, 2, 1));
    ck_assert_int_eq(replay_next(&r, watch, 30 * BASE_NS_PER_S), 1);
    ck_assert_uint_eq(r.snapshots, 1);
    ck_assert_uint_eq(r.member_count, 1);
    ck_assert_str_eq(r.members[0].name, "a");
    ck_assert_str_eq(r.members[0].about, "{\"rest\":\"x\"}");
    expect(r.state, "n:1:fedcba98:fd.01/7:fd.02/7 ");
    put(b, node("m", 7, 1, 5));
    out = set_resource(a, "t", "{1}");
    ck_assert_int_eq(out.status, 0);
    ck_assert_uint_eq(out.revision, 1);
    replay_until(&r, watch, out.at);
    expect(r.state, "m:7:fedcba98:fd.05/7 n:1:fedcba98:fd.01/7:fd.02/7 ");
    expect_settings(r.state, "tenant/t:1:{1} 1@0:me:tenant/t:->{1} ");
    meta_store_commit(b, &(struct meta_store_txn){.remove = &gone, .remove_count = 1}, &out);
    ck_assert_uint_eq(out.removed, 1);
    replay_until(&r, watch, out.at);
    expect(r.state, "n:1:fedcba98:fd.01/7:fd.02/7 ");
    /* What changes nothing is no transaction. */
    put(b, node("n", 1, 2, 1));
    ck_assert_int_eq(replay_next(&r, watch, 2 * BASE_NS_PER_S), 0);
    ck_assert_uint_eq(r.snapshots, 1);
    ck_assert_uint_eq(r.news, 3);
    expect_same(r.state, a);
    meta_store_watch_stop(watch);
    ck_assert_int_eq(replay_next(&r, watch, 30 * BASE_NS_PER_S), -ECANCELED);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
    meta_store_close(b);
}
END_TEST

#define TESTS(T) T(a_watch_gives_what_is_there_and_then_each_transaction)
KEDGE_CHECK_MAIN("metaserver store etcd", TESTS)
