/* SPDX-License-Identifier: Apache-2.0 */
/* A store in etcd that several metaservers share, and what its watch gives. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "etcd_replay.h"
#include "names_fixture.h"

static struct base_errbuf err;

static bool has_etcd(void)
{
    return etcd_is_there("what metaservers share in etcd");
}

static struct meta_store_outcome expire_one(struct meta_store *store, const char *id,
                                            uint32_t incarnation)
{
    struct meta_store_life life = {.incarnation = incarnation};
    const struct meta_store_txn txn = {.expire = &life, .expire_count = 1};
    struct meta_store_outcome out;
    snprintf(life.id, sizeof life.id, "%s", id);
    ck_assert_msg(meta_store_commit(store, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.expire_count, 1);
    return out;
}

/* ---- what is told */

START_TEST(a_watch_gives_what_is_there_and_then_each_transaction)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/w/", "a");
    struct meta_store *b = open_member(etcd_url(), "/w", "b");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/w/", "a");
    const struct meta_store_life gone = {"m", 7};
    struct replay r = {.at = 0};
    struct meta_store_outcome out;
    put(a, node("n", 1, 2, 1));
    replay_snapshot(&r, watch, 1);
    ck_assert_uint_eq(r.snapshots, 1);
    ck_assert_uint_eq(r.member_count, 1);
    ck_assert_str_eq(r.members[0].name, "a");
    ck_assert_str_eq(r.members[0].about, "{\"rest\":\"x\"}");
    expect(r.state, "n:1:fedcba98:fd.01/7:fd.02/7 ");
    put(b, node("m", 7, 1, 5));
    out = set_after(a, 0, "t");
    ck_assert_int_eq(out.status, 0);
    ck_assert_uint_eq(out.revision, 1);
    replay_until(&r, watch, out.at);
    expect(r.state, "m:7:fedcba98:fd.05/7 n:1:fedcba98:fd.01/7:fd.02/7 ");
    expect_settings(r.state, "tenant/t:1:{1} 1@0:me:tenant/t:->{1} ");
    meta_store_commit(b, &(struct meta_store_txn){.remove = &gone, .remove_count = 1}, &out);
    ck_assert_uint_eq(out.removed, 1);
    replay_until(&r, watch, out.at);
    expect(r.state, "n:1:fedcba98:fd.01/7:fd.02/7 ");
    const struct meta_store_name x = named("t", "kv/1 \xc3\xa4", "n", 1, "g");
    ck_assert_int_eq(publish(b, x), 0);
    ck_assert_int_eq(publish(a, named("t", "y", "n", 1, "g")), 0);
    meta_store_commit(a, &(struct meta_store_txn){.withdraw = &x, .withdraw_count = 1}, &out);
    ck_assert_int_eq(out.status, 0);
    replay_until(&r, watch, out.at);
    expect_names(r.state, "t/y=n:1:g ");
    /* What changes nothing is no transaction. */
    put(b, node("n", 1, 2, 1));
    ck_assert_int_eq(publish(b, named("t", "y", "n", 1, "g")), 0);
    ck_assert_int_eq(withdraw(b, &x, 1), 0);
    replay_nothing(&r, watch, 2 * BASE_NS_PER_S);
    ck_assert_uint_eq(r.snapshots, 1);
    ck_assert_uint_eq(r.news, 6);
    expect_same(r.state, a);
    meta_store_watch_stop(watch);
    ck_assert_int_eq(replay_next(&r, watch, 30 * BASE_NS_PER_S), -ECANCELED);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
    meta_store_close(b);
}
END_TEST

static void *stop_soon(void *watch)
{
    usleep(200000);
    meta_store_watch_stop(watch);
    return NULL;
}

START_TEST(a_watch_that_waits_is_stopped_by_another_thread)
{
    if (!has_etcd())
        return;
    struct meta_store_watch *watch = open_watch(etcd_url(), "/stop/", "a");
    struct replay r = {.at = 0};
    pthread_t thread;
    replay_snapshot(&r, watch, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_soon, watch), 0);
    ck_assert_int_eq(replay_next(&r, watch, 600 * BASE_NS_PER_S), -ECANCELED);
    pthread_join(thread, NULL);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
}
END_TEST

/* A list as the etcd that never lost an event would have it is what tells. */
START_TEST(what_a_watch_was_not_told_is_found_by_listing)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/list/", "a");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/list/", "a");
    struct replay r = {.at = 0};
    replay_snapshot(&r, watch, 1);
    meta_etcd_watch_check_every(watch, BASE_NS_PER_MS);
    put(a, node("n", 1, 1, 1));
    for (int i = 0; i < 30 && r.news == 0; i++)
        replay_next(&r, watch, BASE_NS_PER_S);
    for (int i = 0; i < 3; i++) /* it lists again and again, and finds nothing */
        replay_nothing(&r, watch, 200 * BASE_NS_PER_MS);
    ck_assert_uint_eq(r.snapshots, 1);
    /* As if the node had been put while the stream did not say so. */
    ((struct meta_etcd_watch *)watch)->digest ^= 1;
    replay_snapshot(&r, watch, 2);
    expect_same(r.state, a);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
}
END_TEST

START_TEST(a_store_that_is_replaced_is_told_as_a_whole)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/new/", "a"), *memory = meta_store_memory(NULL);
    struct meta_store_watch *watch = open_watch(etcd_url(), "/new/", "b");
    struct meta_backup_restorer by = {.who = "me", .wall_ms = 5};
    struct meta_backup_counts counts;
    struct replay r = {.at = 0};
    put(a, node("old", 1, 2, 1));
    replay_snapshot(&r, watch, 1);
    for (int i = 0; i < 300; i++) { /* more than a transaction of etcd holds */
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        struct meta_store_node n = node(id, 1, 15, 0);
        for (uint32_t k = 0; k < n.endpoint_count; k++)
            n.endpoint[k].pool = (uint16_t)i;
        put(memory, n);
    }
    ck_assert_int_eq(change(memory, 9, "tenant", "t", NULL, "{9}", 0), 0);
    char *text = dump_store(memory);
    ck_assert_msg(meta_backup_restore(a, text, strlen(text), &by, &counts, &err) == 0, "%s",
                  err.text);
    replay_snapshot(&r, watch, 2);
    expect_same(r.state, a);
    /* And goes on from there. */
    struct meta_store_outcome out = set_after(a, by.revision, "u");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.revision, by.revision + 1);
    replay_until(&r, watch, out.at);
    expect_same(r.state, a);
    free(text);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(memory);
    meta_store_close(a);
}
END_TEST

/* ---- several writers */

struct racer {
    struct meta_store *store;
    const char *id;
    uint64_t last; /* UINT64_MAX: registers; else changes a resource after this */
    pthread_barrier_t *begin;
    int status;
};

static void *race_once(void *arg)
{
    struct racer *r = arg;
    const struct meta_store_node n = node(r->id, 1, 1, 1);
    struct base_errbuf none;
    pthread_barrier_wait(r->begin);
    r->status = r->last == UINT64_MAX ? meta_store_put(r->store, &n, &none)
                                      : set_after(r->store, r->last, r->id).status;
    return NULL;
}

/* Both at once: the statuses, the less one first. */
static void race_both(struct meta_store *const stores[2], uint64_t last, int status[2])
{
    static const char *const ids[] = {"a", "b"};
    pthread_barrier_t begin;
    struct racer r[2];
    pthread_t threads[2];
    pthread_barrier_init(&begin, NULL, 2);
    for (int i = 0; i < 2; i++) {
        r[i] = (struct racer){stores[i], ids[i], last, &begin, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, race_once, &r[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
    status[0] = r[0].status < r[1].status ? r[0].status : r[1].status;
    status[1] = r[0].status < r[1].status ? r[1].status : r[0].status;
}

START_TEST(of_two_that_want_one_endpoint_or_one_revision_one_gets_it)
{
    if (!has_etcd())
        return;
    struct meta_store *const stores[] = {open_member(etcd_url(), "/race/", "a"),
                                         open_member(etcd_url(), "/race/", "b")};
    int status[2];
    for (uint64_t i = 0; i < 20; i++) {
        race_both(stores, UINT64_MAX, status);
        ck_assert_int_eq(status[0], -EEXIST);
        ck_assert_int_eq(status[1], 0);
        (void)meta_store_remove(stores[0], "a", &err);
        (void)meta_store_remove(stores[0], "b", &err);
        race_both(stores, i, status);
        ck_assert_int_eq(status[0], -EREMCHG);
        ck_assert_int_eq(status[1], 0);
    }
    meta_store_close(stores[0]);
    meta_store_close(stores[1]);
}
END_TEST

/* Two processes that believe to be the same life of a node. */
START_TEST(one_process_is_a_life_of_a_node)
{
    if (!has_etcd())
        return;
    struct meta_store *s = open_member(etcd_url(), "/life/", "a");
    struct meta_store_node other = node("p", 1, 1, 2);
    other.fingerprint.identity++;
    put(s, node("p", 1, 1, 1));
    ck_assert_int_eq(meta_store_put(s, &other, &err), -ESTALE);
    other.incarnation = 2;
    put(s, other);
    meta_store_close(s);
}
END_TEST

/* ---- members */

static void expect_members(struct replay *r, struct meta_store_watch *watch, uint32_t count)
{
    for (int i = 0; i < 60 && r->member_count != count; i++)
        replay_next(r, watch, BASE_NS_PER_S);
    ck_assert_uint_eq(r->member_count, count);
}

/* Their leases are renewed, if it is time. */
static void keep_members(struct replay r[3], struct meta_store_watch *const watches[3])
{
    for (int i = 0; i < 3; i++)
        replay_next(&r[i], watches[i], BASE_NS_PER_MS);
}

START_TEST(a_node_expires_when_each_living_metaserver_says_so)
{
    if (!has_etcd())
        return;
    static const char *const names[] = {"a", "b", "c"};
    struct meta_store *stores[3];
    struct meta_store_watch *watches[3];
    struct replay r[3] = {{.at = 0}};
    for (int i = 0; i < 3; i++) {
        stores[i] = open_member(etcd_url(), "/votes/", names[i]);
        watches[i] = open_watch(etcd_url(), "/votes/", names[i]);
        replay_snapshot(&r[i], watches[i], 1);
    }
    expect_members(&r[0], watches[0], 3);
    put(stores[0], node("n", 1, 1, 1));
    ck_assert_uint_eq(expire_one(stores[0], "n", 1).heard_elsewhere[0], 1);
    ck_assert_uint_eq(expire_one(stores[1], "n", 1).heard_elsewhere[0], 1);
    ck_assert_uint_eq(expire_one(stores[1], "n", 1).at, 0); /* that was said */
    put(stores[2], node("n", 1, 1, 1));                     /* it is heard of: the votes are void */
    ck_assert_uint_eq(expire_one(stores[2], "n", 1).heard_elsewhere[0], 1);
    ck_assert_uint_eq(expire_one(stores[1], "n", 1).heard_elsewhere[0], 1);
    expect(stores[0], "n:1:fedcba98:fd.01/7 ");
    ck_assert_uint_eq(expire_one(stores[0], "n", 1).heard_elsewhere[0], 0);
    expect(stores[0], "n:1:fedcba98:expired ");
    ck_assert_uint_eq(expire_one(stores[1], "n", 1).heard_elsewhere[0], 0);
    keep_members(r, watches);
    /* Who said it and began anew has said nothing; who is gone is not waited for. */
    put(stores[0], node("n", 2, 1, 1));
    ck_assert_uint_eq(expire_one(stores[2], "n", 2).heard_elsewhere[0], 1);
    meta_store_watch_close(watches[2]);
    watches[2] = open_watch(etcd_url(), "/votes/", "c");
    replay_snapshot(&r[2], watches[2], 2);
    keep_members(r, watches);
    ck_assert_uint_eq(expire_one(stores[1], "n", 2).heard_elsewhere[0], 1);
    ck_assert_uint_eq(expire_one(stores[0], "n", 2).heard_elsewhere[0], 1);
    meta_store_watch_close(watches[2]);
    expect_members(&r[0], watches[0], 2);
    ck_assert_uint_eq(expire_one(stores[0], "n", 2).heard_elsewhere[0], 0);
    expect(stores[0], "n:2:fedcba98:expired ");
    for (int i = 0; i < 3; i++) {
        meta_store_close(r[i].state);
        meta_store_close(stores[i]);
    }
    meta_store_watch_close(watches[0]);
    meta_store_watch_close(watches[1]);
}
END_TEST

/* It was killed, and its lease runs yet: it hears what is stored, and is a member when it can. */
START_TEST(a_metaserver_that_begins_again_hears_at_once)
{
    if (!has_etcd())
        return;
    struct meta_store_watch *killed = open_watch(etcd_url(), "/again/", "a");
    struct meta_store_watch *again = open_watch(etcd_url(), "/again/", "a");
    struct replay r = {.at = 0}, s = {.at = 0};
    replay_snapshot(&r, killed, 1);
    replay_snapshot(&s, again, 1);
    ck_assert(!((struct meta_etcd_watch *)again)->joined);
    meta_store_watch_close(killed);
    for (int i = 0; i < 60 && !((struct meta_etcd_watch *)again)->joined; i++)
        ck_assert_int_ge(replay_next(&s, again, BASE_NS_PER_S), 0);
    ck_assert(((struct meta_etcd_watch *)again)->joined);
    meta_store_close(r.state);
    meta_store_close(s.state);
    meta_store_watch_close(again);
}
END_TEST

START_TEST(a_name_is_of_one_living_metaserver)
{
    if (!has_etcd())
        return;
    struct meta_store_watch *first = open_watch(etcd_url(), "/name/", "a");
    struct meta_store_watch *second = open_watch(etcd_url(), "/name/", "a");
    struct replay r = {.at = 0}, s = {.at = 0};
    replay_snapshot(&r, first, 1);
    ((struct meta_etcd_watch *)second)->name_until_ns = 0; /* long after it has begun */
    for (int i = 0; i < 2; i++) {
        int status = 0;
        for (int k = 0; k < 120 && status != -EADDRINUSE; k++)
            status = replay_next(&s, second, BASE_NS_PER_S);
        ck_assert_int_eq(status, -EADDRINUSE);
        ck_assert_ptr_nonnull(strstr(s.error.text, "give this one another name"));
    }
    meta_store_watch_close(first);
    for (int i = 0; i < 60 && !((struct meta_etcd_watch *)second)->joined; i++)
        (void)replay_next(&s, second, BASE_NS_PER_S);
    ck_assert(((struct meta_etcd_watch *)second)->joined);
    /* A lease that is lost, as after a long stop, is had again. */
    char body[64];
    snprintf(body, sizeof body, "{\"ID\":\"%llu\"}",
             (unsigned long long)((struct meta_etcd_watch *)second)->lease);
    json_decref(ask_etcd("/v3/lease/revoke", body));
    first = open_watch(etcd_url(), "/name/", "b");
    replay_snapshot(&r, first, 1);
    for (int i = 0; i < 60 && r.member_count < 2; i++) {
        replay_next(&r, first, 100 * BASE_NS_PER_MS);
        replay_next(&s, second, 100 * BASE_NS_PER_MS);
    }
    ck_assert_uint_eq(r.member_count, 2);
    ck_assert_uint_eq(s.snapshots, 1);
    meta_store_watch_close(first);
    meta_store_watch_close(second);
    meta_store_close(r.state);
    meta_store_close(s.state);
}
END_TEST

/* What is written under a name says by that name whether it was done. */
START_TEST(who_has_the_name_of_a_living_metaserver_writes_nothing)
{
    if (!has_etcd())
        return;
    struct meta_store *stores[2];
    struct meta_store_watch *watches[2] = {NULL, NULL};
    struct meta_store_outcome out;
    struct replay r = {.at = 0}, s = {.at = 0};
    for (int i = 0; i < 2; i++) {
        struct meta_store_etcd_config config = etcd_config(etcd_url(), "/taken/", "a");
        config.life = i == 0 ? "first" : "second";
        ck_assert_int_eq(meta_store_etcd(&config, &stores[i], &err), 0);
        ck_assert_int_eq(meta_store_etcd_watch(&config, &watches[i], &err), 0);
    }
    replay_snapshot(&r, watches[0], 1);
    ck_assert_int_eq(set_after(stores[0], 0, "t").status, 0);
    out = set_after(stores[1], 1, "u");
    ck_assert_int_eq(out.status, -EBUSY);
    ck_assert_msg(strstr(out.err.text, "give this one another name") != NULL, "%s", out.err.text);
    meta_store_commit(stores[1], &(struct meta_store_txn){.compare = false}, &out);
    ck_assert_int_eq(out.status, -EBUSY);
    ck_assert_msg(strstr(out.err.text, "give this one another name") != NULL, "%s", out.err.text);
    ck_assert_int_eq(set_after(stores[0], 1, "v").status, 0);
    meta_store_watch_close(watches[0]);
    replay_snapshot(&s, watches[1], 1);
    ck_assert_int_eq(set_after(stores[1], 2, "w").status, 0);
    ck_assert_int_eq(set_after(stores[0], 3, "x").status, -EBUSY);
    meta_store_watch_close(watches[1]);
    for (int i = 0; i < 2; i++)
        meta_store_close(stores[i]);
    meta_store_close(r.state);
    meta_store_close(s.state);
}
END_TEST

/* As of a metaserver that was killed and begins again where it was, the first time in vain. */
START_TEST(a_former_life_gives_its_name_at_once)
{
    if (!has_etcd())
        return;
    struct meta_store *store;
    struct meta_store_watch *killed = NULL, *again = NULL;
    struct replay r = {.at = 0}, s = {.at = 0};
    struct meta_store_etcd_config config = etcd_config(etcd_url(), "/former/", "a");
    config.life = "first";
    ck_assert_int_eq(meta_store_etcd_watch(&config, &killed, &err), 0);
    replay_snapshot(&r, killed, 1);
    config.life = "second";
    config.former = "vain first";
    ck_assert_int_eq(meta_store_etcd(&config, &store, &err), 0);
    ck_assert_int_eq(meta_store_etcd_watch(&config, &again, &err), 0);
    ck_assert_int_eq(set_after(store, 0, "t").status, 0);
    replay_snapshot(&s, again, 1);
    ck_assert(((struct meta_etcd_watch *)again)->joined);
    ck_assert_int_eq(set_after(store, 1, "u").status, 0);
    meta_store_watch_close(killed); /* its lease is another one than keeps the name */
    ck_assert_int_ge(replay_next(&s, again, BASE_NS_PER_S), 0);
    ck_assert_uint_eq(s.member_count, 1);
    meta_store_close(store);
    meta_store_watch_close(again);
    meta_store_close(r.state);
    meta_store_close(s.state);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_watch_gives_what_is_there_and_then_each_transaction)                                       \
    T(a_watch_that_waits_is_stopped_by_another_thread)                                             \
    T(what_a_watch_was_not_told_is_found_by_listing)                                               \
    T(a_store_that_is_replaced_is_told_as_a_whole)                                                 \
    T(of_two_that_want_one_endpoint_or_one_revision_one_gets_it)                                   \
    T(one_process_is_a_life_of_a_node)                                                             \
    T(a_node_expires_when_each_living_metaserver_says_so)                                          \
    T(a_metaserver_that_begins_again_hears_at_once)                                                \
    T(a_former_life_gives_its_name_at_once)                                                        \
    T(a_name_is_of_one_living_metaserver)                                                          \
    T(who_has_the_name_of_a_living_metaserver_writes_nothing)
KEDGE_CHECK_MAIN("metaserver store etcd", TESTS)
