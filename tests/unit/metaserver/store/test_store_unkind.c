/* SPDX-License-Identifier: Apache-2.0 */
/* A store in etcd behind an unkind proxy: nothing that was acknowledged is lost, nothing is done
 * twice, and who watches has in the end what is there. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/random.h"
#include "etcd_replay.h"
#include "etcd_unkind.h"

enum { TRANSACTIONS = 100, NODES = 6 };

static struct base_errbuf err;

static bool has_etcd(void)
{
    return etcd_is_there("an etcd behind an unkind proxy");
}

static struct meta_store_outcome set_resource(struct meta_store *store, const char *name)
{
    return set_after(store, UINT64_MAX, name);
}

static struct meta_store *open_quick(const char *url, const char *prefix, const char *member,
                                     uint64_t timeout_ns)
{
    struct meta_store_etcd_config config = etcd_config(url, prefix, member);
    struct meta_store *store = NULL;
    config.timeout_ns = timeout_ns;
    ck_assert_int_eq(meta_store_etcd(&config, &store, &err), 0);
    return store;
}

/* How often it is in the trail that this resource was set. */
struct counted {
    const char *name;
    unsigned count;
};

static int count_change(void *user, const struct meta_store_change *c)
{
    struct counted *x = user;
    x->count += strcmp(c->name, x->name) == 0;
    return 0;
}

static int pass_resource(void *user, const struct meta_store_resource *r)
{
    (void)user, (void)r;
    return 0;
}

static unsigned count_changes(struct meta_store *store, const char *name)
{
    struct counted x = {.name = name};
    const struct meta_store_visitor visitor = {
        .resource = pass_resource, .change = count_change, .user = &x};
    ck_assert_msg(meta_store_load_resources(store, &visitor, &err) == 0, "%s", err.text);
    return x.count;
}

/* ---- answers that are lost */

START_TEST(an_answer_that_is_lost_is_found_by_the_fence)
{
    static const unsigned faults[] = {UNKIND_LOSE, UNKIND_DENY, UNKIND_REFUSE, UNKIND_LATE};
    if (!has_etcd())
        return;
    struct unkind u;
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, 7);
    struct meta_store *a = open_member(u.url, "/lost/", "a"), *direct;
    direct = open_member(etcd_url(), "/lost/", "b");
    unsigned made = 0;
    u.percent = 40;
    for (unsigned i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        u.faults = faults[i % 4];
        const struct meta_store_outcome out = set_resource(a, name);
        u.faults = 0;
        ck_assert_msg(out.status == 0, "%s", out.err.text);
        ck_assert_uint_gt(out.at, 0);
        ck_assert_uint_eq(out.revision, ++made);
        ck_assert_uint_eq(count_changes(direct, name), 1);
    }
    ck_assert_uint_gt(u.faulted, 0);
    meta_store_close(a);
    meta_store_close(direct);
    unkind_end(&u);
}
END_TEST

START_TEST(what_may_have_been_done_is_settled_before_what_comes_next)
{
    if (!has_etcd())
        return;
    struct unkind u;
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, 1);
    struct meta_store *a = open_quick(u.url, "/settled/", "a", 2 * BASE_NS_PER_S);
    struct meta_store *direct = open_member(etcd_url(), "/settled/", "b");
    ck_assert_int_eq(set_resource(a, "first").status, 0);
    u.faults = UNKIND_VANISH;
    struct meta_store_outcome out = set_resource(a, "done");
    ck_assert_int_eq(out.status, -ETIMEDOUT);
    ck_assert_str_ne(out.err.text, "");
    ck_assert_int_eq(set_resource(a, "not").status, -EBUSY);
    u.faults = 0;
    u.gone = false;
    out = set_resource(a, "next");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.revision, 3);
    /* This one is kept, and comes to etcd when the next one was done. */
    u.faults = UNKIND_HOLD;
    ck_assert_int_eq(set_resource(a, "kept").status, -ETIMEDOUT);
    u.faults = 0;
    u.gone = false;
    out = set_resource(a, "last");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.revision, 4);
    u.lets_go = true;
    while (!u.has_let_go)
        usleep(1000);
    ck_assert_uint_eq(count_changes(direct, "done"), 1);
    ck_assert_uint_eq(count_changes(direct, "not"), 0);
    ck_assert_uint_eq(count_changes(direct, "kept"), 0);
    ck_assert_uint_eq(count_changes(direct, "last"), 1);
    meta_store_close(a);
    meta_store_close(direct);
    unkind_end(&u);
}
END_TEST

/* By a library, a proxy, or a network: what is said of the second says nothing of the first. */
START_TEST(what_may_have_been_sent_twice_is_not_said_to_be_not_done)
{
    static const unsigned faults[] = {UNKIND_END, UNKIND_TWICE};
    if (!has_etcd())
        return;
    (void)etcd_url();
    struct meta_store *direct = open_member(etcd_url(), "/twice/", "b");
    for (unsigned i = 0; i < 2; i++) {
        char names[3][16];
        struct unkind u;
        for (unsigned k = 0; k < 3; k++)
            snprintf(names[k], sizeof names[k], "%u-%u", i, k);
        unkind_begin(&u, etcd_process.port, 1);
        u.keeps = true;
        struct meta_store *a = open_quick(u.url, "/twice/", "a", 2 * BASE_NS_PER_S);
        ck_assert_int_eq(set_resource(a, names[0]).status, 0);
        u.faults = faults[i];
        struct meta_store_outcome out = set_resource(a, names[1]);
        ck_assert_uint_eq(u.faulted, 1);
        ck_assert_msg(out.status == -ETIMEDOUT, "%d %s", out.status, out.err.text);
        ck_assert_uint_eq(count_changes(direct, names[1]), 1);
        u.faults = 0;
        u.busy = false;
        out = set_resource(a, names[2]);
        ck_assert_msg(out.status == 0, "%s", out.err.text);
        ck_assert_uint_eq(out.revision, 3 * i + 3);
        meta_store_close(a);
        unkind_end(&u);
    }
    meta_store_close(direct);
}
END_TEST

/* ---- what changes between a decision and its transaction */

struct expiring {
    struct meta_store *store;
    struct meta_store_outcome out;
};

static void *expire_n(void *arg)
{
    struct expiring *x = arg;
    const struct meta_store_life life = {"n", 1};
    const struct meta_store_txn txn = {.expire = &life, .expire_count = 1};
    meta_store_commit(x->store, &txn, &x->out);
    return NULL;
}

START_TEST(a_metaserver_that_joins_meanwhile_has_a_say_when_a_node_expires)
{
    if (!has_etcd())
        return;
    struct unkind u;
    struct replay first = {.at = 0}, second = {.at = 0};
    pthread_t thread;
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, 1);
    struct expiring x = {.store = open_member(u.url, "/joins/", "a")};
    struct meta_store_watch *a = open_watch(etcd_url(), "/joins/", "a"), *b;
    put(x.store, node("n", 1, 1, 1));
    replay_snapshot(&first, a, 1);
    u.faults = UNKIND_WAIT;
    ck_assert_int_eq(pthread_create(&thread, NULL, expire_n, &x), 0);
    while (!u.waits)
        usleep(1000);
    b = open_watch(etcd_url(), "/joins/", "b");
    replay_snapshot(&second, b, 1);
    ck_assert_uint_eq(second.member_count, 2);
    u.lets_go = true;
    pthread_join(thread, NULL);
    ck_assert_msg(x.out.status == 0, "%s", x.out.err.text);
    ck_assert_uint_eq(x.out.heard_elsewhere[0], 1);
    expect(x.store, "n:1:fedcba98:fd.01/7 ");
    meta_store_watch_close(a);
    meta_store_watch_close(b);
    meta_store_close(first.state);
    meta_store_close(second.state);
    meta_store_close(x.store);
    unkind_end(&u);
}
END_TEST

/* One that takes connections and never says anything, as behind a wall that drops: its socket. Its
 * URL is added. */
static int listen_silently(char *urls, size_t room)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    const size_t used = strlen(urls);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    snprintf(urls + used, room - used, "http://127.0.0.1:%d,", ntohs(at.sin_port));
    return fd;
}

START_TEST(an_endpoint_that_is_silent_costs_its_time_once)
{
    if (!has_etcd())
        return;
    char urls[128] = "";
    const int fd = listen_silently(urls, sizeof urls);
    snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%s", etcd_url());
    struct meta_store *a = open_member(urls, "/silent/", "a");
    for (uint32_t i = 1; i < 20; i++)
        put(a, node("n", i, 1, 1));
    int taken = 0;
    while (accept(fd, NULL, NULL) >= 0)
        taken++;
    ck_assert_int_ge(taken, 1);
    ck_assert_int_le(taken, 4); /* more than once where this machine is that slow */
    meta_store_close(a);
    close(fd);
}
END_TEST

/* Most of etcd is out of reach, and the time that there is goes by with those: it is over before
 * the last of them has been asked for as long as one is that is asked to change something (1.5 s),
 * and of a third of that, which is enough for what changes nothing, 6 s are left for the one that
 * answers, however slow this machine is. */
START_TEST(the_one_that_answers_is_asked_before_the_time_is_over)
{
    enum { SILENT = 6 };
    if (!has_etcd())
        return;
    char urls[256] = "";
    int fds[SILENT];
    for (int i = 0; i < SILENT; i++)
        fds[i] = listen_silently(urls, sizeof urls);
    snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%s", etcd_url());
    const struct meta_store_etcd_config config = {
        .endpoints = urls, .prefix = "/late/", .member = "a", .timeout_ns = 9 * BASE_NS_PER_S};
    struct meta_store *a = open_member(etcd_url(), "/late/", "b"), *b = NULL;
    struct meta_store_outcome out = {.status = 0};
    put(a, node("n", 1, 1, 1));
    ck_assert_int_eq(meta_store_etcd(&config, &b, &err), 0);
    meta_store_commit(b, &(struct meta_store_txn){.compare = false}, &out);
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    meta_store_close(a);
    meta_store_close(b);
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
}
END_TEST

/* It gives nothing of what it has to give, and does not end. */
START_TEST(a_watch_that_keeps_silent_is_opened_anew)
{
    if (!has_etcd())
        return;
    struct unkind u;
    struct replay r = {.at = 0};
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, 3);
    struct meta_store *direct = open_member(etcd_url(), "/quiet/", "b");
    struct meta_store_watch *watch = open_watch(u.url, "/quiet/", "a");
    replay_snapshot(&r, watch, 1);
    replay_nothing(&r, watch, BASE_NS_PER_S / 2);
    u.percent = 100;
    u.faults = UNKIND_SILENT;
    const struct meta_store_outcome out = set_resource(direct, "t");
    while (u.faulted == 0)
        replay_next(&r, watch, BASE_NS_PER_S / 10);
    u.faults = 0;
    ck_assert_uint_lt(r.at, out.at);
    replay_until(&r, watch, out.at);
    ck_assert_uint_eq(r.snapshots, 1);
    expect_same(r.state, direct);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(direct);
    unkind_end(&u);
}
END_TEST

/* Whatever etcd says of it, and though its key is there: as if a leader that has forgotten the
 * lease had answered. A field that is 0 is left out. */
START_TEST(a_lease_without_time_is_given_up)
{
    static const char *const answers[] = {
        "{\"result\":{\"header\":{\"revision\":\"9\"},\"ID\":\"7\"}}",
        "{\"result\":{\"header\":{\"revision\":\"9\"},\"ID\":\"7\",\"TTL\":\"0\"}}",
        "{\"result\":{\"header\":{\"revision\":\"9\"},\"ID\":\"7\",\"TTL\":\"-1\"}}",
        "{\"result\":{\"header\":{\"revision\":\"9\"},\"ID\":\"7\",\"TTL\":-1}}",
    };
    if (!has_etcd())
        return;
    struct unkind u;
    struct replay r = {.at = 0};
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, 4);
    struct meta_store_watch *watch = open_watch(u.url, "/lapse/", "a");
    struct meta_etcd_watch *w = (struct meta_etcd_watch *)watch;
    replay_snapshot(&r, watch, 1);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const uint64_t lease = w->lease;
        const unsigned faulted = u.faulted;
        ck_assert_uint_ne(lease, 0);
        u.lapse = answers[i];
        w->alive_ns = 0; /* it is to be renewed */
        for (int k = 0; k < 600 && u.faulted == faulted; k++)
            replay_next(&r, watch, BASE_NS_PER_S / 10);
        u.lapse = NULL;
        for (int k = 0; k < 600 && !(w->joined && w->lease != lease); k++)
            replay_next(&r, watch, BASE_NS_PER_S / 10);
        ck_assert_msg(w->joined && w->lease != lease, "another lease after %s", answers[i]);
    }
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    unkind_end(&u);
}
END_TEST

/* ---- two writers and who watches them */

struct writer {
    struct meta_store *store;
    const char *member;
    _Atomic uint32_t *incarnations; /* of each node */
    struct base_prng random;
    pthread_t thread;
    struct meta_store_outcome changes[TRANSACTIONS];
    bool changed[TRANSACTIONS];
    unsigned done, refused, unknown;
    _Atomic bool over;
};

static void name_change(const struct writer *w, int i, char name[32])
{
    snprintf(name, 32, "%s-%d", w->member, i);
}

static struct meta_store_node draw_node(struct writer *w, uint32_t which)
{
    char id[16];
    snprintf(id, sizeof id, "n%u", which);
    return node(id, atomic_fetch_add(&w->incarnations[which], 1) + 1,
                1 + (int)base_prng_below(&w->random, 3), (int)base_prng_below(&w->random, 10));
}

/* A transaction that nobody could foresee. */
static struct meta_store_outcome write_one(struct writer *w, int i)
{
    const uint32_t which = (uint32_t)base_prng_below(&w->random, NODES);
    struct meta_store_life life = {.incarnation = UINT32_MAX};
    struct meta_store_node nodes[NODES];
    struct meta_store_put puts[NODES];
    struct meta_store_change c = {.revision = 1, .who = "me", .kind = "tenant", .after = "{1}"};
    struct meta_store_txn txn = {.compare = false};
    struct meta_store_outcome out;
    char name[32];
    snprintf(life.id, sizeof life.id, "n%u", which);
    switch (base_prng_below(&w->random, 8)) {
    case 0:
        txn.remove = &life;
        txn.remove_count = 1;
        break;
    case 1:
    case 2:
        txn.expire = &life;
        txn.expire_count = 1;
        break;
    case 3:
    case 4:
        name_change(w, i, name);
        c.name = name;
        txn.change = &c;
        break;
    default:
        txn.puts = puts;
        txn.put_count = 1 + (uint32_t)base_prng_below(&w->random, NODES);
        for (uint32_t k = 0; k < txn.put_count; k++) {
            nodes[k] = draw_node(w, (which + k) % NODES);
            puts[k] = (struct meta_store_put){.node = &nodes[k],
                                              .is_unknown = base_prng_below(&w->random, 2) == 0};
        }
        break;
    }
    meta_store_commit(w->store, &txn, &out);
    w->changed[i] = txn.change != NULL;
    return out;
}

static void *write_many(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < TRANSACTIONS; i++) {
        w->changes[i] = write_one(w, i);
        switch (w->changes[i].status) {
        case 0:
            w->done++;
            break;
        case -EEXIST:
        case -ESTALE:
        case -EBUSY:
            w->refused++;
            break;
        case -ETIMEDOUT:
            w->unknown++;
            break;
        default:
            ck_abort_msg("%d: %s", w->changes[i].status, w->changes[i].err.text);
        }
    }
    w->over = true;
    return NULL;
}

/* Forgets what was up to now, unless that was done: *at is where. */
static void compact_store(uint64_t *at)
{
    char body[64];
    json_t *answer = ask_etcd("/v3/kv/range", "{\"key\":\"YQ==\"}");
    const uint64_t now = meta_etcd_number(json_object_get(answer, "header"), "revision");
    json_decref(answer);
    if (now == *at)
        return;
    *at = now;
    snprintf(body, sizeof body, "{\"revision\":\"%llu\"}", (unsigned long long)now);
    json_decref(ask_etcd("/v3/kv/compaction", body));
}

struct watcher {
    struct meta_store_watch *watch;
    struct replay replay;
    pthread_t thread;
};

static void *watch_all(void *arg)
{
    struct watcher *w = arg;
    while (replay_next(&w->replay, w->watch, 200 * BASE_NS_PER_MS) != -ECANCELED)
        ;
    return NULL;
}

static void check_changes(struct meta_store *store, const struct writer *w)
{
    for (int i = 0; i < TRANSACTIONS; i++) {
        char name[32];
        if (!w->changed[i])
            continue;
        name_change(w, i, name);
        const unsigned count = count_changes(store, name);
        if (w->changes[i].status == -ETIMEDOUT)
            ck_assert_uint_le(count, 1);
        else
            ck_assert_uint_eq(count, w->changes[i].status == 0);
    }
}

/* Until the watcher has, with its own thread, what is stored; at most for a minute. */
static void expect_caught_up(struct watcher *w, struct meta_store *store)
{
    const uint64_t end = base_clock_ns() + 60 * BASE_NS_PER_S;
    char *is = dump_store(store), *had = NULL;
    while (base_clock_ns() < end) {
        replay_next(&w->replay, w->watch, 200 * BASE_NS_PER_MS);
        free(had);
        had = w->replay.state != NULL ? dump_store(w->replay.state) : NULL;
        if (had != NULL && strcmp(is, had) == 0)
            break;
    }
    ck_assert_msg(had != NULL && strcmp(is, had) == 0, "after %u snapshots and %u news: %s",
                  w->replay.snapshots, w->replay.news, w->replay.error.text);
    free(is);
    free(had);
}

/* Both write through the proxy, and who watches is behind it too. */
static void run_world(uint64_t seed, const char *prefix, unsigned faults, bool compacts)
{
    static const char *const members[] = {"a", "b"};
    struct unkind u;
    struct writer writers[2];
    struct watcher watcher = {.replay = {.at = 0}};
    _Atomic uint32_t incarnations[NODES] = {0};
    (void)etcd_url();
    unkind_begin(&u, etcd_process.port, seed);
    struct meta_store *direct = open_member(etcd_url(), prefix, "c");
    watcher.watch = open_watch(u.url, prefix, "a");
    meta_etcd_watch_check_every(watcher.watch, BASE_NS_PER_S);
    u.percent = 4;
    u.faults = faults;
    for (int i = 0; i < 2; i++) {
        writers[i] = (struct writer){.store = open_member(u.url, prefix, members[i]),
                                     .member = members[i],
                                     .incarnations = incarnations};
        base_prng_seed(&writers[i].random, seed * 2 + (uint64_t)i);
        ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
    }
    ck_assert_int_eq(pthread_create(&watcher.thread, NULL, watch_all, &watcher), 0);
    uint64_t compacted = 0;
    while (compacts && !(writers[0].over && writers[1].over)) {
        compact_store(&compacted);
        usleep(50000);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i].thread, NULL);
    meta_store_watch_stop(watcher.watch);
    pthread_join(watcher.thread, NULL);
    u.faults = 0;
    meta_etcd_resume(((struct meta_etcd_watch *)watcher.watch)->client);
    expect_caught_up(&watcher, direct);
    for (int i = 0; i < 2; i++) {
        check_changes(watcher.replay.state, &writers[i]);
        ck_assert_uint_gt(writers[i].done, 0);
        meta_store_close(writers[i].store);
    }
    ck_assert_uint_gt(u.faulted, 0);
    meta_store_watch_close(watcher.watch);
    meta_store_close(watcher.replay.state);
    meta_store_close(direct);
    unkind_end(&u);
}

START_TEST(who_watches_two_writers_has_in_the_end_what_is_there)
{
    if (!has_etcd())
        return;
    const unsigned requests = UNKIND_LOSE | UNKIND_DENY | UNKIND_REFUSE | UNKIND_LATE;
    run_world(1, "/u1/", requests, false);
    run_world(2, "/u2/", requests | UNKIND_CUT | UNKIND_REPEAT | UNKIND_ERROR, true);
    run_world(3, "/u3/", UNKIND_SILENT | UNKIND_DROP | UNKIND_REPEAT, false);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_answer_that_is_lost_is_found_by_the_fence)                                                \
    T(what_may_have_been_done_is_settled_before_what_comes_next)                                   \
    T(what_may_have_been_sent_twice_is_not_said_to_be_not_done)                                    \
    T(a_metaserver_that_joins_meanwhile_has_a_say_when_a_node_expires)                             \
    T(the_one_that_answers_is_asked_before_the_time_is_over)                                       \
    T(an_endpoint_that_is_silent_costs_its_time_once)                                              \
    T(a_lease_without_time_is_given_up)                                                            \
    T(a_watch_that_keeps_silent_is_opened_anew)                                                    \
    T(who_watches_two_writers_has_in_the_end_what_is_there)
KEDGE_CHECK_MAIN("metaserver store unkind", TESTS)
