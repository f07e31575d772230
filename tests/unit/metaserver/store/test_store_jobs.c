/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: what each store makes of one, and stores that tell of it later. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "metaserver/store_late.h"
#include "metaserver/store_worker.h"
#include "store_fixture.h"

/* ---- each store */

/* Whatever a transaction fails for, nothing of it is there. */
static void does_a_transaction_as_a_whole_or_not_at_all(struct meta_store *s)
{
    const struct meta_store_life gone[] = {{"a", 1}, {"c", 2}}, over = {"b", 1};
    struct meta_store_node next = node("d", 4, 1, 4);
    const struct meta_store_change c = {
        .revision = 1, .time_ms = 10, .who = "me", .kind = "tenant", .name = "t", .after = "{1}"};
    struct meta_store_put registration = {.node = &next};
    struct meta_store_txn txn = {.compare = true,
                                 .last = 1,
                                 .remove = gone,
                                 .remove_count = 2,
                                 .expire = &over,
                                 .expire_count = 1,
                                 .puts = &registration,
                                 .put_count = 1,
                                 .change = &c};
    struct meta_store_outcome out;
    put(s, node("a", 1, 1, 1));
    put(s, node("b", 1, 1, 2));
    put(s, node("c", 3, 1, 3)); /* a later life than the one that is to go */
    put(s, node("d", 5, 0, 0));
    static const char before[] =
        "a:1:fedcba98:fd.01/7 b:1:fedcba98:fd.02/7 c:3:fedcba98:fd.03/7 d:5:fedcba98 ";
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), -EREMCHG);
    ck_assert_str_ne(out.err.text, "");
    txn.last = 0;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), -ESTALE);
    ck_assert_str_ne(out.err.text, "");
    ck_assert_uint_eq(out.removed, 0);
    expect(s, before);
    expect_settings(s, "");
    next.incarnation = 6;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_uint_eq(out.removed, 1);
    ck_assert_uint_eq(out.revision, 1);
    expect(s, "b:1:fedcba98:expired c:3:fedcba98:fd.03/7 d:6:fedcba98:fd.04/7 ");
    expect_settings(s, "tenant/t:1:{1} 1@10:me:tenant/t:->{1} ");
}

/* What is proposed is the least that it may be. */
static void gives_changes_revisions_above_all_that_it_has(struct meta_store *s)
{
    struct meta_store_change c = {
        .revision = 7, .time_ms = 10, .who = "me", .kind = "tenant", .name = "t", .after = "{1}"};
    const struct meta_store_txn txn = {.change = &c}, none = {.compare = false};
    struct meta_store_outcome out;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_uint_eq(out.revision, 7);
    c.revision = 3;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_uint_eq(out.revision, 8);
    expect_settings(s, "tenant/t:8:{1} 7@10:me:tenant/t:->{1} 8@10:me:tenant/t:->{1} ");
    ck_assert_int_eq(meta_store_commit(s, &none, &out), 0);
    ck_assert_uint_eq(out.revision, 0);
}

/* By itself a comparison writes nothing. */
static void says_whether_a_change_is_the_last_one(struct meta_store *s)
{
    struct meta_store_outcome out;
    struct meta_store_txn txn = {.compare = true};
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_int_eq(change(s, 1, "tenant", "t", NULL, "{1}", 0), 0);
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), -EREMCHG);
    txn.last = 1;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_uint_eq(out.revision, 0);
    txn.last = 2;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), -EREMCHG);
    expect_settings(s, "tenant/t:1:{1} 1@10:me:tenant/t:->{1} ");
}

/* As a storm of agents brings them: most new, one of a life that is over, one that is there. */
static void put_several(struct meta_store *s, bool is_unknown)
{
    static struct meta_store_node nodes[META_STORE_PUTS_MAX];
    static struct meta_store_put puts[META_STORE_PUTS_MAX];
    struct meta_store_outcome out = {.status = 0};
    struct base_errbuf err;
    char id[16];
    put(s, node("m07", 9, 1, 7));
    put(s, node("m11", 1, 1, 11));
    for (int i = 0; i < META_STORE_PUTS_MAX; i++) {
        snprintf(id, sizeof id, "m%02d", i);
        nodes[i] = node(id, 1 + (i == 21), 1, i);
    }
    uint32_t done = 0;
    while (done < META_STORE_PUTS_MAX) {
        for (uint32_t i = done; i < META_STORE_PUTS_MAX; i++)
            puts[i] =
                (struct meta_store_put){.node = &nodes[i], .is_unknown = is_unknown, .status = 77};
        const struct meta_store_txn txn = {.puts = puts + done,
                                           .put_count = META_STORE_PUTS_MAX - done};
        ck_assert_msg(meta_store_commit(s, &txn, &out) == 0, "%s", out.err.text);
        ck_assert_uint_ge(out.put_count, txn.put_count < 32 ? txn.put_count : 32);
        ck_assert_uint_le(out.put_count, txn.put_count);
        done += out.put_count;
    }
    for (int i = 0; i < META_STORE_PUTS_MAX; i++) {
        ck_assert_int_eq(puts[i].status, i == 7 ? -ESTALE : 0);
        ck_assert_int_eq(puts[i].err.text[0] != '\0', i == 7);
    }
    ck_assert_ptr_nonnull(strstr(puts[7].err.text, "newer incarnation of m07"));
    ck_assert_int_eq(meta_store_remove(s, "m07", &err), 0);
    for (int i = 0; i < META_STORE_PUTS_MAX; i++) {
        snprintf(id, sizeof id, "m%02d", i);
        if (i != 7 && i != 21 && i != 63)
            ck_assert_int_eq(meta_store_remove(s, id, &err), 0);
    }
    expect(s, "m21:2:fedcba98:fd.15/7 m63:1:fedcba98:fd.3f/7 ");
}

static void does_several_registrations_each_by_itself(struct meta_store *s)
{
    put_several(s, false);
}

/* Some of them are: that is no reason to do anything else. */
static void does_registrations_that_are_thought_to_be_unknown(struct meta_store *s)
{
    put_several(s, true);
}

/* All of them are nodes that nobody has stored, one of which wants what another node has. */
static void takes_no_endpoint_for_a_node_that_is_unknown(struct meta_store *s)
{
    const bool is_shared =
        strcmp(s->ops->name, "memory") != 0 && strcmp(s->ops->name, "sqlite") != 0;
    struct meta_store_node fresh[] = {node("e", 1, 1, 30), node("f", 1, 1, 31)};
    struct meta_store_put puts[] = {{.node = &fresh[0], .is_unknown = true},
                                    {.node = &fresh[1], .is_unknown = true}};
    const struct meta_store_txn txn = {.puts = puts, .put_count = 2};
    struct meta_store_outcome out;
    put(s, node("g", 1, 1, 31));
    ck_assert_msg(meta_store_commit(s, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.put_count, 2);
    ck_assert_int_eq(puts[0].status, 0);
    ck_assert_int_eq(puts[1].status, is_shared ? -EEXIST : 0);
}

/* As when their pools go: each drops all endpoints but one, which etcd counts as well. */
static void does_registrations_that_drop_endpoints(struct meta_store *s)
{
    enum { NODES = 42, HAD = 4 };
    static struct meta_store_node nodes[NODES];
    static struct meta_store_put puts[NODES];
    struct meta_store_outcome out;
    char id[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(id, sizeof id, "n%02d", i);
        put(s, node(id, 1, HAD, HAD * i));
        nodes[i] = node(id, 2, 1, HAD * i);
    }
    for (uint32_t done = 0; done < NODES; done += out.put_count) {
        for (uint32_t i = done; i < NODES; i++)
            puts[i] = (struct meta_store_put){.node = &nodes[i], .status = 77};
        const struct meta_store_txn txn = {.puts = puts + done, .put_count = NODES - done};
        ck_assert_msg(meta_store_commit(s, &txn, &out) == 0, "%s", out.err.text);
        ck_assert_uint_ge(out.put_count, 1);
    }
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(puts[i].status, 0);
    for (int i = 0; i < NODES; i++) { /* what was dropped is nobody's */
        snprintf(id, sizeof id, "m%02d", i);
        put(s, node(id, 1, HAD - 1, HAD * i + 1));
    }
}

/* More endpoints, of which others had some, than one transaction of etcd has room for. */
static void does_as_many_registrations_as_it_has_room_for(struct meta_store *s)
{
    enum { NODES = 12 };
    static struct meta_store_node nodes[NODES];
    static struct meta_store_put puts[NODES];
    struct meta_store_outcome out;
    struct base_errbuf err;
    char id[16];
    for (int i = 0; i < NODES * META_STORE_NODE_ENDPOINTS; i++) {
        snprintf(id, sizeof id, "old%03d", i);
        const struct meta_store_life life = {.incarnation = 1};
        put(s, node(id, 1, 1, i));
        struct meta_store_life gone = life;
        snprintf(gone.id, sizeof gone.id, "%s", id);
        ck_assert_int_eq(meta_store_expire(s, &gone, 1, &err), 0);
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(id, sizeof id, "new%02d", i);
        nodes[i] = node(id, 1, META_STORE_NODE_ENDPOINTS, i * META_STORE_NODE_ENDPOINTS);
    }
    for (uint32_t done = 0; done < NODES; done += out.put_count) {
        for (uint32_t i = done; i < NODES; i++)
            puts[i] = (struct meta_store_put){.node = &nodes[i]};
        const struct meta_store_txn txn = {.puts = puts + done, .put_count = NODES - done};
        ck_assert_msg(meta_store_commit(s, &txn, &out) == 0, "%s", out.err.text);
        if (txn.put_count > 1)
            ck_assert_uint_ge(out.put_count, 1);
        out.put_count = txn.put_count > 1 ? out.put_count : 1;
        for (uint32_t i = done; i < done + out.put_count; i++)
            ck_assert_msg(puts[i].status == 0, "%s", puts[i].err.text);
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(id, sizeof id, "new%02d", i);
        ck_assert_int_eq(meta_store_remove(s, id, &err), 0);
    }
}

/* Two of one transaction that want the same endpoint: the later one has it, or, of those who share
 * a store, the former one; never both. */
static void gives_an_endpoint_to_one_of_several(struct meta_store *s)
{
    struct meta_store_node a = node("a", 1, 2, 1), b = node("b", 1, 1, 2), c = node("c", 1, 1, 3);
    struct meta_store_put puts[] = {{.node = &a}, {.node = &b}, {.node = &c}};
    const struct meta_store_txn txn = {.puts = puts, .put_count = 3};
    struct meta_store_outcome out;
    ck_assert_int_eq(meta_store_commit(s, &txn, &out), 0);
    ck_assert_uint_eq(out.put_count, 3);
    if (is_shared(s)) {
        ck_assert_int_eq(puts[1].status, -EEXIST);
        expect(s, "a:1:fedcba98:fd.01/7:fd.02/7 c:1:fedcba98:fd.03/7 ");
    } else {
        expect(s, "a:1:fedcba98:fd.01/7 b:1:fedcba98:fd.02/7 c:1:fedcba98:fd.03/7 ");
    }
}

START_TEST(every_store_does_what_a_transaction_says)
{
    static void (*const rules[])(struct meta_store *) = {
        does_a_transaction_as_a_whole_or_not_at_all,
        gives_changes_revisions_above_all_that_it_has,
        says_whether_a_change_is_the_last_one,
        does_a_transaction_as_a_whole_or_not_at_all,
        gives_changes_revisions_above_all_that_it_has,
        does_several_registrations_each_by_itself,
        does_registrations_that_are_thought_to_be_unknown,
        takes_no_endpoint_for_a_node_that_is_unknown,
        does_as_many_registrations_as_it_has_room_for,
        does_registrations_that_drop_endpoints,
        gives_an_endpoint_to_one_of_several,
    };
    for (enum kind kind = MEMORY; kind < KINDS && has_kind(kind); kind++)
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            struct fixture f;
            setup(&f, kind);
            rules[i](f.store);
            teardown(&f);
        }
}
END_TEST

/* The double of a shared store, as etcd: what is refused has cast no vote, and who has written to
 * one that was put back since is refused until it has heard what is there. */
START_TEST(the_double_of_a_shared_store_is_as_unkind_as_etcd)
{
    struct meta_store_hub *hub = meta_store_hub_new();
    struct meta_store *a = meta_store_hub_open(hub, "a"), *b = meta_store_hub_open(hub, "b");
    struct meta_store *before = meta_store_memory(NULL);
    const struct meta_store_life n = {"n", 1};
    struct meta_store_txn txn = {.compare = true, .last = 99, .expire = &n, .expire_count = 1};
    struct meta_store_outcome out;
    struct meta_store_heard *heard;
    put(a, node("n", 1, 1, 1));
    ck_assert_int_eq(meta_store_commit(a, &txn, &out), -EREMCHG);
    txn.compare = false;
    ck_assert_int_eq(meta_store_commit(b, &txn, &out), 0);
    ck_assert_uint_eq(out.heard_elsewhere[0], 1);
    expect(a, "n:1:fedcba98:fd.01/7 ");
    ck_assert_int_eq(meta_store_commit(a, &txn, &out), 0);
    expect(a, "n:1:fedcba98:expired ");
    const uint64_t at = out.at;
    meta_store_hub_put_back(hub, before);
    ck_assert_int_eq(meta_store_commit(a, &txn, &out), -EIO);
    ck_assert_int_eq(meta_store_commit(b, &txn, &out), 0);
    heard = meta_store_hub_hear(a);
    ck_assert(heard->kind == META_STORE_HEARD_SNAPSHOT && heard->at < at);
    meta_store_heard_free(heard);
    ck_assert_int_eq(meta_store_commit(a, &txn, &out), 0);
    meta_store_close(before);
    meta_store_close(a);
    meta_store_close(b);
    meta_store_hub_free(hub);
}
END_TEST

/* ---- later */

enum { JOBS = 64 };

struct one {
    struct meta_store_job job;
    struct meta_store_node node;
    struct meta_store_put put;
    int number;
};

static struct one jobs[JOBS];
static int told[JOBS], told_count; /* numbers of jobs, as they were told of */
static pthread_t teller;

static void note_told(struct meta_store_job *job)
{
    ck_assert_int_lt(told_count, JOBS);
    told[told_count++] = ((struct one *)job)->number;
    teller = pthread_self();
}

/* Each puts a node of its own. */
static struct meta_store_job *make_job(int i)
{
    char id[8];
    snprintf(id, sizeof id, "n%d", i);
    jobs[i] = (struct one){.number = i, .node = node(id, 1, 0, 0)};
    jobs[i].put.node = &jobs[i].node;
    jobs[i].job.txn.puts = &jobs[i].put;
    jobs[i].job.txn.put_count = 1;
    jobs[i].job.done = note_told;
    return &jobs[i].job;
}

static int count_one(void *user, const struct meta_store_node *n)
{
    (void)n;
    ++*(int *)user;
    return 0;
}

static int count_nodes(struct meta_store *store)
{
    struct base_errbuf err;
    int count = 0;
    ck_assert_int_eq(meta_store_load(store, count_one, &count, &err), 0);
    return count;
}

/* The order in which a seed tells of the jobs, and how many it lets fail. */
static int run_late(uint64_t seed, uint32_t fail_percent, int order[JOBS])
{
    struct meta_store *store = meta_store_memory(NULL);
    struct meta_store_late l;
    int failed = 0;
    meta_store_late_init(&l, store, seed);
    l.fail_percent = fail_percent;
    told_count = 0;
    for (int i = 0; i < JOBS; i++)
        meta_store_late_submit(&l, make_job(i));
    ck_assert_int_eq(told_count, 0); /* never from inside */
    l.stands_still = true;
    for (int i = 0; i < 100; i++)
        meta_store_late_step(&l);
    ck_assert_int_eq(told_count + count_nodes(store), 0);
    l.stands_still = false;
    while (l.under_way > 0)
        meta_store_late_step(&l);
    for (int i = 0; i < JOBS; i++) {
        failed += jobs[i].job.outcome.status != 0;
        ck_assert_int_eq(jobs[i].job.outcome.err.text[0] != '\0', jobs[i].job.outcome.status != 0);
    }
    ck_assert_int_eq(count_nodes(store), JOBS - failed);
    memcpy(order, told, sizeof told);
    meta_store_close(store);
    return failed;
}

START_TEST(a_late_store_tells_in_an_order_that_its_seed_chooses_and_fails_when_it_says)
{
    int first[JOBS], again[JOBS], other[JOBS];
    bool in_order = true;
    ck_assert_int_eq(run_late(1, 0, first), 0);
    ck_assert_int_eq(run_late(1, 0, again), 0);
    ck_assert_int_eq(run_late(2, 0, other), 0);
    ck_assert_mem_eq(first, again, sizeof first);
    ck_assert(memcmp(first, other, sizeof first) != 0);
    for (int i = 0; i < JOBS; i++)
        in_order &= first[i] == i;
    ck_assert(!in_order);
    const int failed = run_late(3, 50, other);
    ck_assert(failed > 0 && failed < JOBS);
}
END_TEST

/* ---- on a thread of its own */

/* A store before memory's, whose every transaction waits until it is let go. */
struct gate {
    struct meta_store base;
    struct meta_store *store;
    _Atomic int open; /* how many more may pass */
    _Atomic int inside;
    pthread_t thread;
};

static int pass_gate(struct meta_store *store, const struct meta_store_txn *txn,
                     struct meta_store_outcome *out)
{
    struct gate *g = (struct gate *)store;
    g->thread = pthread_self();
    g->inside++;
    while (g->open == 0)
        usleep(100);
    g->open--;
    return meta_store_commit(g->store, txn, out);
}

static const struct meta_store_ops gate_ops = {.name = "gate", .commit = pass_gate};

static void wait_readable(const struct meta_store_worker *w)
{
    struct pollfd fd = {.fd = meta_store_worker_fd(w), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 30000), 1);
}

START_TEST(a_worker_keeps_nobody_waiting_and_tells_in_order_on_its_owners_thread)
{
    struct gate g = {.base.ops = &gate_ops, .store = meta_store_memory(NULL)};
    struct meta_store_worker *w;
    struct base_errbuf err;
    told_count = 0;
    ck_assert_int_eq(meta_store_worker_new(&g.base, &w, &err), 0);
    for (int i = 0; i < 8; i++)
        meta_store_worker_submit(w, make_job(i));
    while (g.inside == 0)
        usleep(100);
    ck_assert_uint_eq(meta_store_worker_run(w), 0);
    ck_assert_int_eq(meta_store_worker_settle(w, BASE_NS_PER_MS), -ETIMEDOUT);
    g.open = 1;
    wait_readable(w);
    ck_assert_uint_eq(meta_store_worker_run(w), 1);
    ck_assert_int_eq(told_count, 1);
    ck_assert_int_eq(jobs[0].job.outcome.status, 0);
    g.open = 7;
    ck_assert_int_eq(meta_store_worker_settle(w, 60 * BASE_NS_PER_S), 0);
    ck_assert_int_eq(told_count, 1); /* by run() alone */
    ck_assert_uint_eq(meta_store_worker_run(w), 7);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(told[i], i);
    ck_assert(pthread_equal(teller, pthread_self()));
    ck_assert(!pthread_equal(g.thread, pthread_self()));
    meta_store_worker_free(w);
    ck_assert_int_eq(count_nodes(g.store), 8);
    meta_store_close(g.store);
}
END_TEST

START_TEST(a_worker_on_sqlite_tells_what_it_refuses)
{
    struct fixture f;
    struct meta_store_worker *w;
    struct base_errbuf err;
    setup(&f, SQLITE);
    told_count = 0;
    put(f.store, node("n1", 9, 0, 0));
    ck_assert_int_eq(meta_store_worker_new(f.store, &w, &err), 0);
    for (int i = 0; i < 3; i++)
        meta_store_worker_submit(w, make_job(i));
    ck_assert_int_eq(meta_store_worker_settle(w, 60 * BASE_NS_PER_S), 0);
    ck_assert_uint_eq(meta_store_worker_run(w), 3);
    ck_assert_int_eq(jobs[0].job.outcome.status, 0);
    ck_assert_int_eq(jobs[1].job.outcome.status, -ESTALE);
    ck_assert_ptr_nonnull(strstr(jobs[1].job.outcome.err.text, "newer incarnation of n1"));
    ck_assert_int_eq(jobs[2].job.outcome.status, 0);
    meta_store_worker_free(w);
    expect(f.store, "n0:1:fedcba98 n1:9:fedcba98 n2:1:fedcba98 ");
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_double_of_a_shared_store_is_as_unkind_as_etcd)                                           \
    T(every_store_does_what_a_transaction_says)                                                    \
    T(a_late_store_tells_in_an_order_that_its_seed_chooses_and_fails_when_it_says)                 \
    T(a_worker_keeps_nobody_waiting_and_tells_in_order_on_its_owners_thread)                       \
    T(a_worker_on_sqlite_tells_what_it_refuses)
KEDGE_CHECK_MAIN("metaserver store jobs", TESTS)
