/* SPDX-License-Identifier: Apache-2.0 */
/* How long a session stays in another lane than its own. */
#include "../../check_main.h"
#include "base/clock.h"
#include "control/lane_choice.h"
#include "lane_state.h"
#include "pool_lanes.h"
#include "session_bed.h"
#include "session_memory.h"
#include "session_moves.h"

enum { A = 1, STEP_MS = 100, STEPS_IDLE = LANE_IDLE_MS / STEP_MS };

static struct pool other;
static uint32_t called; /* how often the other lane was told that it goes */

static void hear(const struct lane_command *command)
{
    called += command->kind == LANE_COMMAND_LODGER_RETURN;
}

static struct agent_session *begin(uint32_t *number)
{
    session_bed_begin(4, 1);
    called = 0;
    world.lane_told = hear;
    other = (struct pool){.agent = &agent,
                          .config = &agent.config,
                          .world = &world.world,
                          .lane = (struct lane *)&other,
                          .first = &pool,
                          .lane_number = 1};
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_int_eq(agent_session_take(&pool, A, BED_UID, 1, &connections[0], number), 0);
    struct agent_session *s = &pool.sessions[*number];
    s->rings.memory = lane_memory_new(4, 16, 4, 4);
    ck_assert_ptr_nonnull(s->rings.memory);
    agent_session_move(s, &other);
    return s;
}

static void enter(uint32_t number)
{
    ck_assert(agent_session_moves_event(
        &pool, &(struct lane_event){.kind = LANE_EVENT_SESSION_LEFT, .session = number}));
    session_bed_end_task(0);
    ck_assert_ptr_eq(agent_session_is_at(&pool.sessions[number]), &other);
}

static void look(uint32_t steps)
{
    while (steps-- > 0) {
        test_world_advance(&world, STEP_MS * BASE_NS_PER_MS);
        agent_session_moves_look(&other, world_now_ns(&world.world));
    }
}

static void end(struct agent_session *s)
{
    if (s->move != NULL) /* which all are there that have not gone home */
        ck_assert(agent_session_moves_event(&other,
                                            &(struct lane_event){.kind = LANE_EVENT_LODGER_LEFT}));
    ck_assert_ptr_null(s->move);
    lane_memory_free(s->rings.memory);
    s->rings.memory = NULL;
    session_bed_end();
}

START_TEST(one_that_posts_stays_and_one_that_is_silent_goes_home_once)
{
    uint32_t number;
    struct agent_session *s = begin(&number);
    enter(number);
    for (uint64_t posted = 1; posted <= 5; posted++) {
        atomic_store(&s->rings.memory->shown.operations, posted);
        look(STEPS_IDLE); /* less than so long after it was seen to have posted */
        ck_assert_uint_eq(called, 0);
    }
    look(1);
    ck_assert_uint_eq(called, 0); /* it was seen at the first look */
    look(1);
    ck_assert_uint_eq(called, 1);
    look(2 * STEPS_IDLE); /* it may wait there for what it has out */
    ck_assert_uint_eq(called, 1);
    ck_assert(
        agent_session_moves_event(&other, &(struct lane_event){.kind = LANE_EVENT_LODGER_LEFT}));
    ck_assert_ptr_null(s->move);
    ck_assert_ptr_eq(agent_session_is_at(s), &pool);
    ck_assert_uint_eq(other.moves.moved, 1);
    ck_assert_uint_eq(other.moves.lodgers, 0);
    end(s);
}
END_TEST

START_TEST(one_that_has_posted_nothing_since_it_came_goes_home_too)
{
    uint32_t number;
    struct agent_session *s = begin(&number);
    atomic_store(&s->rings.memory->shown.operations, 7); /* at home */
    enter(number);
    look(STEPS_IDLE);
    ck_assert_uint_eq(called, 0);
    look(2);
    ck_assert_uint_eq(called, 1);
    end(s);
}
END_TEST

START_TEST(one_that_is_still_on_its_way_is_not_idle)
{
    uint32_t number;
    struct agent_session *s = begin(&number);
    look(3 * STEPS_IDLE);
    ck_assert_uint_eq(called, 0);
    enter(number);
    look(STEPS_IDLE);
    ck_assert_uint_eq(called, 0); /* which counts from when it came */
    end(s);
}
END_TEST

/* ---- lanes that are looked at */

static struct lane lanes[2];

static void have_lanes(void)
{
    static struct agent_session none[4];
    memset(lanes, 0, sizeof lanes);
    other.sessions = none;
    agent.config.lanes = 2;
    agent.config.metaservers = 1;
    agent.pools[1] = &other;
    other.place = 1;
    pool.lane = &lanes[0];
    other.lane = &lanes[1];
    pool.registration[0].state = other.registration[0].state = REGISTRATION_DONE;
}

/* The first lane posts 100,000 a second, of which the session has half. */
static void be_uneven(struct agent_session *s, uint32_t looks)
{
    while (looks-- > 0) {
        test_world_advance(&world, STEP_MS * BASE_NS_PER_MS);
        atomic_fetch_add(&lanes[0].counters.posted, 10000);
        atomic_fetch_add(&s->rings.memory->shown.operations, 5000);
        agent_lanes_tick(&agent);
    }
}

/* By the other one: it is at home again. */
static void come_home(void)
{
    ck_assert(
        agent_session_moves_event(&other, &(struct lane_event){.kind = LANE_EVENT_LODGER_LEFT}));
}

START_TEST(a_session_of_a_lane_that_has_more_to_do_goes_to_another)
{
    uint32_t number;
    struct agent_session *s = begin(&number);
    have_lanes();
    enter(number);
    come_home();
    test_world_advance(&world, 3600 * BASE_NS_PER_S); /* it has rested */
    be_uneven(s, 1);
    ck_assert_ptr_null(s->move);
    be_uneven(s, 2 * LANE_UNEVEN_LOOKS);
    ck_assert_ptr_nonnull(s->move);
    ck_assert_ptr_eq(agent_session_is_at(s), &other);
    enter(number);
    end(s);
}
END_TEST

/* Nor does it go to one that could look nobody up. */
START_TEST(a_lane_that_no_metaserver_has_gets_no_session_and_sends_home_what_it_has)
{
    uint32_t number;
    struct agent_session *s = begin(&number);
    have_lanes();
    enter(number);
    be_uneven(s, 2 * LANE_UNEVEN_LOOKS);
    ck_assert_uint_eq(called, 0);
    pool.device.rc = other.device.rc = true;
    other.registration[0].state = REGISTRATION_LOST;
    test_world_advance(&world, STEP_MS * BASE_NS_PER_MS);
    agent_lanes_tick(&agent);
    ck_assert_uint_eq(called, 1);
    come_home();
    test_world_advance(&world, 3600 * BASE_NS_PER_S);
    be_uneven(s, 4 * LANE_UNEVEN_LOOKS);
    ck_assert_ptr_null(s->move);
    other.registration[0].state = REGISTRATION_DONE;
    be_uneven(s, 2 * LANE_UNEVEN_LOOKS);
    ck_assert_ptr_nonnull(s->move);
    enter(number);
    end(s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_posts_stays_and_one_that_is_silent_goes_home_once)                                  \
    T(one_that_has_posted_nothing_since_it_came_goes_home_too)                                     \
    T(one_that_is_still_on_its_way_is_not_idle)                                                    \
    T(a_session_of_a_lane_that_has_more_to_do_goes_to_another)                                     \
    T(a_lane_that_no_metaserver_has_gets_no_session_and_sends_home_what_it_has)
KEDGE_CHECK_MAIN("agent.control.session_moves", TESTS)
