/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: control operations per second, exact counts, by a clock that the test sets; and regions,
 * of which each tenant has a reserve. */
#include <pthread.h>
#include <stdatomic.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 1, OTHER = 2, RATE = 12 };
static const uint64_t SECOND = 1000000000, START = 777000000777;
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

/* ---- the budget */

/* How many are granted at one moment. */
static uint64_t drain(struct lane_quota *q, uint64_t now_ns)
{
    uint64_t granted = 0;
    while (lane_quota_ask(q, now_ns))
        granted++;
    return granted;
}

START_TEST(a_seconds_worth_is_there_at_once_and_then_its_rate_exactly)
{
    static const uint32_t rates[] = {1, 2, 3, 7, 10, 999, 1000, 65536, 999999};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct lane_quota q = {.control_ops_per_s = rates[i]};
        const uint64_t price = (SECOND + rates[i] - 1) / rates[i];
        uint64_t granted = drain(&q, START), steps = 0;
        ck_assert_uint_eq(granted, rates[i]);
        /* Asked again and again for three seconds, at odd moments. */
        for (uint64_t now = START; now <= START + 3 * SECOND; now += 123457 + steps++ % 1000) {
            granted += drain(&q, now);
            ck_assert_uint_eq(granted, rates[i] + (now - START) / price);
        }
        ck_assert_uint_eq(q.control_ops, granted);
        ck_assert_uint_eq(q.refused[LANE_QUOTA_CONTROL_OPS], steps + 1);
    }
}
END_TEST

START_TEST(what_is_not_asked_for_is_not_saved_up_beyond_a_second)
{
    struct lane_quota q = {.control_ops_per_s = 5};
    ck_assert_uint_eq(drain(&q, START), 5);
    ck_assert_uint_eq(drain(&q, START + 100 * SECOND), 5);
    ck_assert_uint_eq(drain(&q, START + 100 * SECOND + SECOND / 5), 1);
}
END_TEST

START_TEST(a_rate_that_changes_holds_from_then_on)
{
    struct lane_quota q = {.control_ops_per_s = 0};
    for (int i = 0; i < 10000; i++) /* no bound */
        ck_assert(lane_quota_ask(&q, START));
    atomic_store(&q.control_ops_per_s, 1000);
    ck_assert_uint_eq(drain(&q, START), 1000);
    atomic_store(&q.control_ops_per_s, 2);
    ck_assert(!lane_quota_ask(&q, START + SECOND / 2 - 1));
    ck_assert(lane_quota_ask(&q, START + SECOND / 2));
    ck_assert(!lane_quota_ask(&q, START + SECOND / 2));
    atomic_store(&q.control_ops_per_s, 0);
    ck_assert(lane_quota_ask(&q, START + SECOND / 2));
    ck_assert_uint_eq(q.control_ops, 11002);
}
END_TEST

/* As an agent may set them and a metaserver may say them: no number overflows. */
START_TEST(the_largest_rate_is_a_rate)
{
    struct lane_quota q = {.control_ops_per_s = UINT32_MAX};
    for (int i = 0; i < 10000; i++)
        ck_assert(lane_quota_ask(&q, START));
    ck_assert_uint_eq(q.refused[LANE_QUOTA_CONTROL_OPS], 0);
}
END_TEST

static struct lane_quota shared = {.control_ops_per_s = 30000};
static _Atomic uint64_t granted_to_all;

static void *ask_for_long(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++)
        atomic_fetch_add(&granted_to_all, lane_quota_ask(&shared, START));
    return NULL;
}

START_TEST(threads_share_one_budget_and_none_of_it_is_lost_or_given_twice)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, ask_for_long, NULL), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_uint_eq(granted_to_all, 30000);
    ck_assert_uint_eq(shared.control_ops, 30000);
    ck_assert_uint_eq(shared.refused[LANE_QUOTA_CONTROL_OPS], 4 * 20000 - 30000);
}
END_TEST

/* ---- what a worker asks of a lane */

static struct world world;
static struct world *w = &world;
static struct lane_quota *quota;
static struct world_worker k;

static void open_world(void)
{
    world_open(w);
    quota = &w->node[0].quota[TENANT];
    world_attach(w, &k, 0, 0, TENANT);
}

static void close_world(void)
{
    quota->control_ops_per_s = 0;
    world_detach(w, &k);
    world_close(w);
}

/* So many are left of this second, which the world's passes do not use up. */
static void leave(uint32_t ops)
{
    atomic_store(&quota->control_ops_per_s, RATE);
    world_sleep(w, 3 * SECOND);
    for (uint32_t i = ops; i < RATE; i++)
        ck_assert(lane_quota_ask(quota, w->now_ns));
}

static struct schema_sq_desc connect_to(uint32_t node)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT,
                               .connect = {.pool = w->node[0].config.pool}};
    for (int i = 0; i < 16; i++)
        d.connect.gid[i] = w->node[node].fab->caps.gid[i];
    return d;
}

static struct schema_sq_desc region(void)
{
    return (struct schema_sq_desc){.op = SCHEMA_OP_REG_MR,
                                   .reg_mr = {.length = 64, .vaddr = 0x10000, .access = ALL}};
}

/* Answers that are refused name the quota, and are counted. */
static void refuses(struct schema_sq_desc d)
{
    struct schema_reply reply;
    const uint64_t refused = quota->refused[LANE_QUOTA_CONTROL_OPS], done = quota->control_ops;
    ck_assert_int_eq(world_ask(w, &k, d, &reply), -EDQUOT);
    ck_assert_uint_eq(reply.reason, SCHEMA_REASON_QUOTA_CONTROL_OPS);
    ck_assert_uint_eq(reply.value[0], quota->control_ops_per_s);
    ck_assert_uint_eq(quota->refused[LANE_QUOTA_CONTROL_OPS], refused + 1);
    ck_assert_uint_eq(quota->control_ops, done);
}

START_TEST(each_kind_of_request_counts_once_and_is_refused_over_the_budget)
{
    struct schema_reply reply;
    open_world();
    ck_assert_int_eq(world_ask(w, &k, connect_to(1), NULL), 0);
    ck_assert_int_eq(world_ask(w, &k, region(), &reply), 0);
    const uint32_t vkey = (uint32_t)reply.value[0];
    const struct schema_sq_desc asks[] = {
        connect_to(1),
        connect_to(2),
        region(),
        {.op = SCHEMA_OP_MR_STATUS, .dereg_mr = {.vkey = vkey}},
    };
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        const uint64_t done = quota->control_ops;
        leave(1);
        ck_assert_int_eq(world_ask(w, &k, asks[i], NULL), 0);
        ck_assert_uint_eq(quota->control_ops, done + RATE);
        refuses(asks[i]);
    }
    /* What is not there cannot be given back, and what is there already is not imported. */
    const struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = vkey}};
    ck_assert_int_eq(world_ask(w, &k, import, NULL), 0);
    leave(0);
    refuses(import);
    refuses((struct schema_sq_desc){.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = ~vkey}});
    close_world();
}
END_TEST

START_TEST(regions_are_given_back_and_imported_in_any_case_and_count)
{
    struct schema_reply reply;
    open_world();
    ck_assert_int_eq(world_ask(w, &k, region(), &reply), 0);
    leave(0);
    const uint64_t now = w->now_ns;
    for (uint32_t i = 0; i < 2; i++) {
        const struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = 70 + i}};
        ck_assert_int_eq(world_ask(w, &k, import, NULL), 0);
    }
    const struct schema_sq_desc withdraw = {.op = SCHEMA_OP_DEREG_MR,
                                            .dereg_mr = {.vkey = (uint32_t)reply.value[0]}};
    ck_assert_int_eq(world_ask(w, &k, withdraw, NULL), 0);
    ck_assert_uint_eq(quota->mrs, 0);
    /* Three operations are owed, and paid for first: the next one is the fourth to be there. */
    const uint64_t price = (SECOND + RATE - 1) / RATE;
    world_sleep(w, now + 4 * price - w->now_ns - 100000);
    refuses(connect_to(1));
    world_sleep(w, 200000);
    ck_assert_int_eq(world_ask(w, &k, connect_to(1), NULL), 0);
    close_world();
}
END_TEST

/* Who owes much is let in again after two seconds. */
START_TEST(what_is_owed_has_a_bound)
{
    open_world();
    ck_assert_uint_gt(w->node[0].config.max_grants, 2);
    atomic_store(&quota->control_ops_per_s, 1);
    ck_assert(lane_quota_ask(quota, w->now_ns));
    for (uint32_t i = 0; i < w->node[0].config.max_grants; i++) {
        const struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = 70 + i}};
        ck_assert_int_eq(world_ask(w, &k, import, NULL), 0);
    }
    ck_assert_uint_eq(quota->control_ops, 1 + w->node[0].config.max_grants);
    ck_assert_uint_le(quota->control_due_ns - w->now_ns, 2 * SECOND);
    world_sleep(w, 2 * SECOND);
    ck_assert_int_eq(world_ask(w, &k, connect_to(1), NULL), 0);
    close_world();
}
END_TEST

/* ---- queue pairs */

/* The completion of a READ of 8 bytes through VQP 0. */
static struct schema_cqe read_one(uint32_t vkey)
{
    return world_do(w, &k, world_rw(SCHEMA_OP_READ, 7, 0, 8, vkey, 0), 500);
}

START_TEST(a_queue_pair_over_the_budget_is_connected_to_nobody_and_data_goes_on)
{
    struct world_worker owner;
    open_world();
    world_attach(w, &owner, 1, 0, TENANT);
    const uint32_t vkey = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_eq(read_one(vkey).status, IBV_WC_SUCCESS);
    leave(0);
    for (int i = 0; i < 100; i++) /* data operations are none of its */
        ck_assert_uint_eq(read_one(vkey).status, IBV_WC_SUCCESS);
    leave(1); /* for the look-up, and none for the connection */
    const uint64_t posted = world_stats(w, 0).posted,
                   refused = quota->refused[LANE_QUOTA_CONTROL_OPS];
    ck_assert_int_eq(world_connect(w, &k, 0, 2), 0);
    for (int i = 0; i < 3; i++) { /* above all not to node 1, as before */
        struct schema_cqe e = read_one(vkey);
        ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_QUOTA_CONTROL_OPS);
    }
    ck_assert_uint_eq(world_stats(w, 0).posted, posted);
    ck_assert_uint_eq(world_stats(w, 0).vqps, 0);
    ck_assert_uint_eq(quota->vqps, 0);
    ck_assert_uint_eq(quota->refused[LANE_QUOTA_CONTROL_OPS], refused + 1);
    leave(2);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_eq(read_one(vkey).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(quota->vqps, 1);
    world_detach(w, &owner);
    close_world();
}
END_TEST

START_TEST(a_tenant_over_its_budget_is_alone_with_it)
{
    struct world_worker other;
    open_world();
    world_attach(w, &other, 0, 1, OTHER);
    leave(0);
    for (int i = 0; i < 50; i++) {
        refuses(connect_to(1));
        ck_assert_int_eq(world_ask(w, &other, connect_to(1), NULL), 0);
    }
    ck_assert_uint_eq(w->node[0].quota[OTHER].refused[LANE_QUOTA_CONTROL_OPS], 0);
    ck_assert_uint_eq(w->node[0].quota[OTHER].control_ops, 50);
    world_detach(w, &other);
    close_world();
}
END_TEST

/* ---- shares of the table */

enum { CAPACITY = 8, RESERVED = 2 };

static void shares_open(struct world_worker *one, struct world_worker *other)
{
    world_capacity = CAPACITY;
    world_max_mrs = 2 * CAPACITY;
    world_open(w);
    for (int t = 0; t < WORLD_TENANTS; t++)
        w->node[0].quota[t].reserved_mrs = t == TENANT || t == OTHER ? RESERVED : 0;
    world_attach(w, one, 0, 0, TENANT);
    world_attach(w, other, 0, 1, OTHER);
}

static void shares_close(struct world_worker *one, struct world_worker *other)
{
    world_detach(w, one);
    world_detach(w, other);
    world_close(w);
    world_capacity = world_max_mrs = 0;
}

/* As many as it gets. */
static uint32_t register_all(struct world_worker *of)
{
    uint32_t got = 0;
    while (world_register(w, of, 64 * got, 64, ALL) != 0)
        got++;
    return got;
}

START_TEST(what_is_kept_for_others_is_counted_along_and_not_looked_up_for_each_region)
{
    struct world_worker one, other;
    shares_open(&one, &other);
    ck_assert_uint_eq(register_all(&one), CAPACITY - RESERVED);
    ck_assert_uint_eq(register_all(&other), RESERVED);
    ck_assert_uint_eq(world_register(w, &one, 0, 64, ALL), 0); /* all is taken */
    const struct lane_stats s = world_stats(w, 0);
    ck_assert_uint_eq(s.mrs, CAPACITY);
    ck_assert_uint_eq(s.shares_compared, WORLD_TENANTS); /* once: this took no millisecond */
    shares_close(&one, &other);
}
END_TEST

START_TEST(what_comes_back_is_there_for_who_lacks_his_reserve_first)
{
    struct world_worker one, other, third;
    shares_open(&one, &other);
    w->node[0].quota[OTHER].reserved_mrs = 0; /* it was not there when the first took all */
    ck_assert_uint_eq(register_all(&one), CAPACITY);
    w->node[0].quota[OTHER].reserved_mrs = RESERVED;
    world_sleep(w, SECOND / 500); /* it is known by then */
    ck_assert_uint_eq(register_all(&other), 0);
    world_attach(w, &third, 0, 2, TENANT);
    world_detach(w, &one);
    ck_assert_uint_eq(register_all(&third), CAPACITY - RESERVED);
    ck_assert_uint_eq(register_all(&other), RESERVED);
    world_detach(w, &third);
    world_detach(w, &other);
    world_close(w);
    world_capacity = world_max_mrs = 0;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_kept_for_others_is_counted_along_and_not_looked_up_for_each_region)                  \
    T(what_comes_back_is_there_for_who_lacks_his_reserve_first)                                    \
    T(a_seconds_worth_is_there_at_once_and_then_its_rate_exactly)                                  \
    T(what_is_not_asked_for_is_not_saved_up_beyond_a_second)                                       \
    T(a_rate_that_changes_holds_from_then_on)                                                      \
    T(the_largest_rate_is_a_rate)                                                                  \
    T(threads_share_one_budget_and_none_of_it_is_lost_or_given_twice)                              \
    T(each_kind_of_request_counts_once_and_is_refused_over_the_budget)                             \
    T(regions_are_given_back_and_imported_in_any_case_and_count)                                   \
    T(what_is_owed_has_a_bound)                                                                    \
    T(a_queue_pair_over_the_budget_is_connected_to_nobody_and_data_goes_on)                        \
    T(a_tenant_over_its_budget_is_alone_with_it)
KEDGE_CHECK_MAIN("agent.lane.quota", TESTS)
