/* SPDX-License-Identifier: Apache-2.0 */
/* A lane sleeps at once where a worker that it has answered runs on its processor; and one that
 * says so falsely costs others little. */
#include "../../check_main.h"
#include "world.h"

enum { ONE = 1, OTHER = 2, CPU = 3, ELSEWHERE = 5, AWHILE = 100 };
enum { SECOND_NS = 1000000000, GAP_NS = 30000 /* between requests of who is polled */ };
enum { LIARS = 32 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner[2], k, other, liar[LIARS];
static uint32_t key[2];

static struct lane *lane(void)
{
    return w->node[0].lane;
}

static void says(struct world_worker *who, int cpu)
{
    atomic_store(&who->w->cpu, (uint32_t)cpu + 1);
}

/* One READ, as its worker rings for it; then the pass that finds nothing. */
static void read_one(struct world_worker *who, uint32_t vkey)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, who, d, AWHILE).status, IBV_WC_SUCCESS);
    do
        w->now_ns += 100;
    while (lane_step(lane(), w->now_ns) > 0);
}

static bool sleeps_at_once(void)
{
    if (!lane_hands_over(lane()))
        return false;
    ck_assert_uint_gt(lane_prepare_sleep(lane(), w->now_ns), 0);
    return true;
}

/* One worker on the lane's processor, one of another tenant elsewhere. */
static void begin(void)
{
    key[0] = world_pair(w, &owner[0], &k, ONE, ALL);
    world_attach(w, &owner[1], 1, 1, OTHER);
    key[1] = world_register(w, &owner[1], 0, 4096, ALL);
    world_attach(w, &other, 0, 1, OTHER);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    read_one(&k, key[0]);
    read_one(&other, key[1]);
    ck_assert(!sleeps_at_once());
    lane_set_cpu(lane(), CPU);
    world_sleep(w, SECOND_NS);
}

static void end(void)
{
    world_detach(w, &other);
    world_detach(w, &owner[1]);
    world_unpair(w, &owner[0], &k);
}

START_TEST(a_lane_sleeps_at_once_after_it_has_answered_a_worker_on_its_processor)
{
    begin();
    says(&k, CPU);
    for (int i = 0; i < AWHILE; i++) {
        read_one(&k, key[0]);
        ck_assert(sleeps_at_once());
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1); /* so that it rings */
        ck_assert(!sleeps_at_once());                      /* once for each answer */
    }
    ck_assert_uint_eq(world_stats(w, 0).handovers, AWHILE);
    ck_assert_uint_eq(world_stats(w, 0).handovers_wrong, 0);
    end();
}
END_TEST

/* An older library leaves the word as it was, 0; and -1 is what the thread knows where the system
 * does not tell. */
START_TEST(who_runs_elsewhere_or_has_not_said_where_is_polled_for)
{
    begin();
    read_one(&k, key[0]);
    ck_assert(!sleeps_at_once());
    says(&k, ELSEWHERE);
    read_one(&k, key[0]);
    ck_assert(!sleeps_at_once());
    lane_set_cpu(lane(), -1);
    atomic_store(&k.w->cpu, 0);
    read_one(&k, key[0]);
    ck_assert(!sleeps_at_once());
    end();
}
END_TEST

START_TEST(workers_are_shown_where_the_lane_runs_as_it_moves)
{
    begin();
    read_one(&k, key[0]);
    ck_assert_uint_eq(atomic_load(&k.r->lane_cpu), CPU + 1);
    lane_set_cpu(lane(), ELSEWHERE);
    read_one(&k, key[0]);
    ck_assert_uint_eq(atomic_load(&k.r->lane_cpu), ELSEWHERE + 1);
    ck_assert_uint_eq(atomic_load(&other.r->lane_cpu), 0); /* it has had no answer since */
    end();
}
END_TEST

/* As often as it can: answered all the time, it says that it is here, and is not: while the lane
 * sleeps for it another one rings, which was polled until then. */
START_TEST(a_false_hint_costs_who_is_polled_one_request_in_two_hundred)
{
    uint32_t requests = 0, met = 0;
    begin();
    for (int i = 0; i < LIARS; i++) {
        world_attach(w, &liar[i], 0, 2 + (uint32_t)i, ONE);
        ck_assert_int_eq(world_connect(w, &liar[i], 0, 1), 0);
        says(&liar[i], CPU);
    }
    says(&other, ELSEWHERE);
    for (const uint64_t end_ns = w->now_ns + SECOND_NS; w->now_ns < end_ns; requests++) {
        read_one(&other, key[1]);
        read_one(&liar[requests % LIARS], key[0]);
        met += sleeps_at_once();
        w->now_ns += GAP_NS;
    }
    ck_assert_uint_gt(met, 1);
    ck_assert_msg(met * 200 <= requests, "%u of %u requests met a sleep", met, requests);
    ck_assert_uint_ge(world_stats(w, 0).handovers_wrong + 1, met);
    for (int i = 0; i < LIARS; i++)
        world_detach(w, &liar[i]);
    end();
}
END_TEST

/* And one alone, the longer the oftener it was so. */
START_TEST(a_session_whose_hints_are_false_is_heeded_ever_less)
{
    uint32_t met[2] = {0, 0};
    begin();
    says(&k, CPU);
    says(&other, ELSEWHERE);
    for (int part = 0; part < 2; part++)
        for (const uint64_t end_ns = w->now_ns + SECOND_NS; w->now_ns < end_ns;) {
            read_one(&other, key[1]);
            read_one(&k, key[0]);
            met[part] += sleeps_at_once();
            w->now_ns += GAP_NS;
        }
    ck_assert_uint_ge(met[0], 3);
    ck_assert_uint_le(met[0], 8);
    ck_assert_uint_le(met[1], 2);
    end();
}
END_TEST

/* Both share the lane's processor: neither has it polled for him. */
START_TEST(two_workers_on_the_lanes_processor_are_no_harm_to_each_other)
{
    begin();
    says(&k, CPU);
    says(&other, CPU);
    for (int i = 0; i < AWHILE; i++) {
        read_one(&k, key[0]);
        ck_assert(sleeps_at_once());
        read_one(&other, key[1]);
        ck_assert(sleeps_at_once());
    }
    ck_assert_uint_eq(world_stats(w, 0).handovers_wrong, 0);
    end();
}
END_TEST

/* Who has been silent was asleep already. */
START_TEST(who_was_asleep_before_is_not_harmed)
{
    begin();
    says(&k, CPU);
    says(&other, ELSEWHERE);
    for (int i = 0; i < AWHILE; i++) {
        read_one(&k, key[0]);
        ck_assert(sleeps_at_once());
        w->now_ns += GAP_NS;
        read_one(&k, key[0]);
        ck_assert(sleeps_at_once());
        read_one(&other, key[1]);
        (void)sleeps_at_once();
        world_sleep(w, SECOND_NS / 1000);
    }
    ck_assert_uint_eq(world_stats(w, 0).handovers_wrong, 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lane_sleeps_at_once_after_it_has_answered_a_worker_on_its_processor)                       \
    T(who_runs_elsewhere_or_has_not_said_where_is_polled_for)                                      \
    T(workers_are_shown_where_the_lane_runs_as_it_moves)                                           \
    T(a_false_hint_costs_who_is_polled_one_request_in_two_hundred)                                 \
    T(a_session_whose_hints_are_false_is_heeded_ever_less)                                         \
    T(two_workers_on_the_lanes_processor_are_no_harm_to_each_other)                                \
    T(who_was_asleep_before_is_not_harmed)

KEDGE_CHECK_MAIN("agent.lane.handover", TESTS)
