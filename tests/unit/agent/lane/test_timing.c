/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane says of how long things took, though it reads no clock and stamps no request. */
#include "../../check_main.h"
#include "base/latency.h"
#include "world.h"

enum { TENANT = 7, LONG = 200000 /* passes: a time-out of the device is in real time */ };
static const uint64_t PERIOD_NS = 1000000; /* of the lane's housekeeping */

static struct world world;
static struct world *w = &world;

static const struct base_latency *latency(enum lane_latency which)
{
    return lane_latency(w->node[0].lane, which);
}

static uint64_t count(enum lane_latency which)
{
    return base_latency_count(latency(which));
}

static uint64_t sum_ns(enum lane_latency which)
{
    return atomic_load(&latency(which)->sum_ns);
}

/* For so long no record is READ again. */
static void keep_records(uint64_t ns)
{
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = ns;
}

START_TEST(an_operation_in_a_period_is_followed_and_no_more)
{
    enum { OPERATIONS = 50, PERIODS = 10 };
    struct world_worker owner, k;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    for (int period = 0; period < PERIODS; period++) {
        world_sleep(w, PERIOD_NS + 1);
        const uint64_t before = count(LANE_LATENCY_OPERATION), begun_ns = w->now_ns;
        for (int i = 0; i < OPERATIONS; i++)
            ck_assert_uint_eq(world_do(w, &k, d, 50).status, IBV_WC_SUCCESS);
        world_run(w, 2);
        ck_assert_uint_lt(w->now_ns - begun_ns, PERIOD_NS);
        ck_assert_uint_ge(count(LANE_LATENCY_OPERATION), before + 1);
        ck_assert_uint_le(count(LANE_LATENCY_OPERATION), before + 2); /* one was wanted before */
    }
    world_unpair(w, &owner, &k);
}
END_TEST

/* From the pass in which it is posted to the one that finds it complete: on `soft` the next one. */
START_TEST(an_operation_takes_until_the_pass_after_its_completion)
{
    struct world_worker owner, k;
    keep_records(100 * PERIOD_NS);
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, 50).status, IBV_WC_SUCCESS);
    world_sleep(w, PERIOD_NS + 1);
    world_run(w, 2);
    const uint64_t count_before = count(LANE_LATENCY_OPERATION);
    const uint64_t sum_before = sum_ns(LANE_LATENCY_OPERATION);
    ck_assert_uint_eq(world_do(w, &k, d, 50).status, IBV_WC_SUCCESS);
    w->now_ns += 7000; /* the lane's pass took so long */
    world_run(w, 1);
    ck_assert_uint_eq(count(LANE_LATENCY_OPERATION), count_before + 1);
    const uint64_t took_ns = sum_ns(LANE_LATENCY_OPERATION) - sum_before;
    ck_assert_uint_ge(took_ns, 7000);
    ck_assert_uint_lt(took_ns, 20000);
    world_unpair(w, &owner, &k);
    keep_records(0);
}
END_TEST

/* Its time would be the device's patience, and of what ends with it nobody knows when it began. */
START_TEST(an_operation_whose_queue_pair_breaks_is_not_counted)
{
    struct world_worker owner, k;
    keep_records(100 * PERIOD_NS);
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, 50).status, IBV_WC_SUCCESS);
    world_sleep(w, PERIOD_NS + 1);
    world_run(w, 2);
    const uint64_t before = count(LANE_LATENCY_OPERATION);
    world_silence_node(w, 1);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_RETRY_EXC_ERR);
    world_run(w, 10);
    ck_assert_uint_eq(count(LANE_LATENCY_OPERATION), before);
    world_unpair(w, &owner, &k);
    keep_records(0);
}
END_TEST

START_TEST(connects_and_other_control_operations_count_apart)
{
    struct world_worker owner, k;
    (void)world_pair(w, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    world_run(w, 2);
    const uint64_t connects = count(LANE_LATENCY_CONNECT), others = count(LANE_LATENCY_CONTROL);
    const uint64_t took_ns = sum_ns(LANE_LATENCY_CONNECT), begun_ns = w->now_ns;
    ck_assert_int_eq(world_connect(w, &k, 1, 2), 0); /* looked up: two passes at least */
    world_run(w, 2);
    ck_assert_uint_eq(count(LANE_LATENCY_CONNECT), connects + 1);
    ck_assert_uint_ge(sum_ns(LANE_LATENCY_CONNECT) - took_ns, 1000);
    ck_assert_uint_le(sum_ns(LANE_LATENCY_CONNECT) - took_ns, w->now_ns - begun_ns);
    ck_assert_uint_eq(count(LANE_LATENCY_CONTROL), others);
    ck_assert_uint_ne(world_register(w, &k, 0, 4096, SCHEMA_RECORD_READ), 0);
    world_run(w, 2);
    ck_assert_uint_eq(count(LANE_LATENCY_CONNECT), connects + 1);
    ck_assert_uint_eq(count(LANE_LATENCY_CONTROL), others + 1);
    world_unpair(w, &owner, &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_operation_in_a_period_is_followed_and_no_more)                                            \
    T(an_operation_takes_until_the_pass_after_its_completion)                                      \
    T(an_operation_whose_queue_pair_breaks_is_not_counted)                                         \
    T(connects_and_other_control_operations_count_apart)
KEDGE_CHECK_MAIN("agent lane latency", TESTS)
