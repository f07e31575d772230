/* SPDX-License-Identifier: Apache-2.0 */
/* A lane sleeps at once where a worker that it has answered runs on its processor; and one that
 * says so falsely costs nothing who is polled. */
#include "../../check_main.h"
#include "fabric/provider.h"
#include "world.h"

enum { ONE = 1, OTHER = 2, CPU = 3, ELSEWHERE = 5, AWHILE = 100 };
enum { SECOND_NS = 1000000000, GAP_NS = 30000 /* between requests of who is polled */ };
enum { LIARS = 32, LOOKS = 16 /* at others, before one of them is handed the processor */ };
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

/* It says that it is here, and is not, is answered all the time, and is the first to ring after
 * each sleep that it gets: who is polled is polled on. */
START_TEST(who_is_polled_elsewhere_never_meets_a_sleep_for_a_false_hint)
{
    uint32_t requests = 0, met = 0;
    begin();
    for (int i = 0; i < LIARS; i++) {
        world_attach(w, &liar[i], 0, 2 + (uint32_t)i, ONE);
        ck_assert_int_eq(world_connect(w, &liar[i], 0, 1), 0);
        says(&liar[i], CPU);
    }
    says(&other, ELSEWHERE);
    for (const uint64_t end_ns = w->now_ns + SECOND_NS / 10; w->now_ns < end_ns; requests++) {
        read_one(&other, key[1]);
        read_one(&liar[requests % LIARS], key[0]);
        if (sleeps_at_once()) {
            met++;
            read_one(&liar[requests % LIARS], key[0]);
        }
        w->now_ns += GAP_NS;
    }
    ck_assert_msg(met == 0, "%u of %u requests met a sleep", met, requests);
    for (int i = 0; i < LIARS; i++)
        world_detach(w, &liar[i]);
    end();
}
END_TEST

/* What a crowd of workers there gets is not looked for without a bound. */
START_TEST(of_many_that_are_polled_none_is_handed_the_processor)
{
    begin();
    for (int i = 0; i < LIARS; i++) {
        world_attach(w, &liar[i], 0, 2 + (uint32_t)i, ONE);
        ck_assert_int_eq(world_connect(w, &liar[i], 0, 1), 0);
        says(&liar[i], CPU);
        world_sleep(w, SECOND_NS);
    }
    for (int i = 0; i < LIARS; i++) {
        read_one(&liar[i], key[0]);
        const bool few = i <= LOOKS;
        ck_assert_int_eq(lane_hands_over(lane()), few);
    }
    for (int i = 0; i < LIARS; i++)
        world_detach(w, &liar[i]);
    end();
}
END_TEST

/* Its place is another one's, who has said nothing. */
START_TEST(who_follows_in_the_place_of_a_session_is_handed_nothing_for_it)
{
    begin();
    says(&k, CPU);
    read_one(&k, key[0]);
    world_detach(w, &k);
    world_attach(w, &k, 0, 0, ONE);
    ck_assert(!sleeps_at_once());
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
    end();
}
END_TEST

/* ---- events of the device */

static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    uint32_t arms;
    bool holds; /* completions */
} device;

static int count_arm(struct fab_cq *cq, bool solicited)
{
    device.arms++;
    return device.real->arm(cq, solicited);
}

static int poll_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    return device.holds ? 0 : device.real->poll(cq, n, wc);
}

static void watch_arms(void)
{
    struct fab *f = w->node[0].fab;
    device.real = f->ops;
    device.ops = *f->ops;
    device.ops.arm = count_arm;
    device.ops.poll = poll_held;
    f->ops = &device.ops;
}

/* What is armed tells of a request that is posted after the lane was woken, and polled for. */
START_TEST(a_lane_asks_for_an_event_when_something_is_out_and_for_none_else)
{
    begin();
    says(&k, CPU);
    watch_arms();
    read_one(&k, key[0]);
    ck_assert(sleeps_at_once());
    ck_assert_uint_eq(device.arms, 0);
    const struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 1, 0, 8, key[0], 0);
    device.holds = true;
    world_post(&k, &read);
    (void)lane_doorbell(lane(), k.id);
    world_run(w, 4);
    ck_assert_uint_gt(lane_prepare_sleep(lane(), w->now_ns), 0);
    ck_assert_uint_eq(device.arms, 1);
    device.holds = false;
    ck_assert_uint_eq(world_done(w, &k, AWHILE).status, IBV_WC_SUCCESS);
    world_sleep(w, SECOND_NS);
    device.arms = 0;
    ck_assert_uint_gt(lane_prepare_sleep(lane(), w->now_ns), 0);
    ck_assert_uint_eq(device.arms, 0);
    w->node[0].fab->ops = device.real;
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lane_sleeps_at_once_after_it_has_answered_a_worker_on_its_processor)                       \
    T(who_runs_elsewhere_or_has_not_said_where_is_polled_for)                                      \
    T(workers_are_shown_where_the_lane_runs_as_it_moves)                                           \
    T(who_is_polled_elsewhere_never_meets_a_sleep_for_a_false_hint)                                \
    T(of_many_that_are_polled_none_is_handed_the_processor)                                        \
    T(who_follows_in_the_place_of_a_session_is_handed_nothing_for_it)                              \
    T(two_workers_on_the_lanes_processor_are_no_harm_to_each_other)                                \
    T(who_was_asleep_before_is_not_harmed)                                                         \
    T(a_lane_asks_for_an_event_when_something_is_out_and_for_none_else)

KEDGE_CHECK_MAIN("agent.lane.handover", TESTS)
