/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that come and go, and lanes whose load is what they bring: each gets the lane that was
 * chosen for it. */
#include <string.h>

#include "../../check_main.h"
#include "control/lane_choice.h"

enum { LANES = 4, TENANTS = 3, WORKERS = 400 };

static struct lane_load load[LANES];
static uint32_t of[LANES][TENANTS];

static void setup(void)
{
    memset(load, 0, sizeof load);
    memset(of, 0, sizeof of);
}

static uint32_t come(uint32_t lanes, uint32_t tenant)
{
    for (uint32_t i = 0; i < lanes; i++)
        load[i].of_tenant = of[i][tenant];
    const uint32_t lane = agent_lane_choose(load, lanes);
    ck_assert_uint_lt(lane, lanes);
    load[lane].sessions++;
    of[lane][tenant]++;
    return lane;
}

static void leave(uint32_t lane, uint32_t tenant)
{
    load[lane].sessions--;
    of[lane][tenant]--;
}

static uint32_t most_apart(uint32_t lanes)
{
    uint32_t most = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < lanes; i++) {
        most = load[i].sessions > most ? load[i].sessions : most;
        least = load[i].sessions < least ? load[i].sessions : least;
    }
    return most - least;
}

START_TEST(one_lane_has_all)
{
    setup();
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(come(1, 0), 0);
}
END_TEST

START_TEST(a_tenants_first_workers_share_a_lane)
{
    setup();
    const uint32_t home = come(2, 0);
    for (int i = 1; i < LANE_TOGETHER; i++)
        ck_assert_uint_eq(come(2, 0), home);
    ck_assert_uint_eq(come(2, 0), 1 - home);
    setup();
    ck_assert_uint_ne(come(2, 0), come(2, 1)); /* another tenant's has the other one */
}
END_TEST

START_TEST(a_tenant_with_many_workers_has_them_on_all_lanes_alike)
{
    for (uint32_t lanes = 2; lanes <= LANES; lanes++) {
        setup();
        for (int i = 0; i < WORKERS; i++) {
            come(lanes, 0);
            ck_assert_uint_le(most_apart(lanes), LANE_TOGETHER);
        }
    }
}
END_TEST

START_TEST(who_comes_and_goes_leaves_no_lane_behind)
{
    unsigned random = 7;
    setup();
    for (int i = 0; i < 100 * WORKERS; i++) {
        random = random * 1103515245u + 12345u;
        const uint32_t lane = random >> 16 & 3, tenant = (random >> 20) % TENANTS;
        if (load[0].sessions + load[1].sessions + load[2].sessions + load[3].sessions < 40)
            come(LANES, tenant);
        else if (of[lane][tenant] > 0)
            leave(lane, tenant);
    }
    /* What left at random may have left lanes uneven: who comes evens them out. */
    for (int i = 0; i < 2 * WORKERS; i++)
        come(LANES, i % TENANTS);
    ck_assert_uint_le(most_apart(LANES), LANE_TOGETHER);
}
END_TEST

START_TEST(nobody_is_put_on_a_lane_that_has_much_more_to_do_than_another)
{
    setup();
    const uint32_t home = come(2, 0);
    load[home].rate = LANE_LITTLE; /* no reason yet */
    ck_assert_uint_eq(come(2, 0), home);
    load[home].rate = 1000000;
    for (int i = 0; i < 20; i++) /* however many there are on the other one: it does little */
        ck_assert_uint_eq(come(2, i % TENANTS), 1 - home);
    load[1 - home].rate = 600000; /* and now it does its part: sessions decide again */
    ck_assert_uint_eq(come(2, 0), home);
}
END_TEST

static struct lane_balance balance;

static bool look(uint64_t first, uint64_t second)
{
    const struct lane_load now[2] = {{.rate = first}, {.rate = second}};
    return agent_lanes_are_uneven(&balance, now, 2);
}

START_TEST(lanes_are_uneven_when_they_have_been_for_some_looks_on_end)
{
    balance = (struct lane_balance){.looks = 0};
    for (int i = 1; i < LANE_UNEVEN_LOOKS; i++)
        ck_assert(!look(1000000, 0));
    ck_assert(!look(1000000, 900000));
    for (int i = 1; i < LANE_UNEVEN_LOOKS; i++)
        ck_assert(!look(1000000, 0));
    ck_assert(!look(0, 1000000)); /* the other way round it is another reason */
    for (int i = 2; i < LANE_UNEVEN_LOOKS; i++)
        ck_assert(!look(0, 1000000));
    ck_assert(look(0, 1000000));
    ck_assert_uint_eq(balance.from, 1);
    ck_assert_uint_eq(balance.to, 0);
    balance.looks = 0;
    for (int i = 0; i < 100; i++)
        ck_assert(!look(LANE_LITTLE, 0)); /* nobody waits there */
}
END_TEST

START_TEST(the_session_goes_that_leaves_the_smallest_gap)
{
    balance = (struct lane_balance){.gap = 1000000};
    ck_assert(!agent_lanes_would_be_even(&balance, 1000000, 0)); /* alone: it would go to and fro */
    ck_assert(!agent_lanes_would_be_even(&balance, 100000, 0));  /* too little to be worth it */
    ck_assert(!agent_lanes_would_be_even(&balance, 0, 0));
    ck_assert(agent_lanes_would_be_even(&balance, 250000, 0));
    ck_assert(agent_lanes_would_be_even(&balance, 480000, 250000));
    ck_assert(!agent_lanes_would_be_even(&balance, 250000, 480000));
}
END_TEST

/* Whatever sessions do, as long as they go on so: lanes come to an end, and then nothing moves. */
START_TEST(sessions_come_to_rest)
{
    enum { SESSIONS = 24, LOOKS = 2000 };
    for (uint32_t seed = 1; seed < 200; seed++) {
        uint64_t rate[SESSIONS], draw = seed;
        uint32_t at[SESSIONS], last = 0, moves = 0;
        balance = (struct lane_balance){.looks = 0};
        for (uint32_t i = 0; i < SESSIONS; i++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            rate[i] = (draw >> 40) % (1u << (8 + seed % 14));
            at[i] = (uint32_t)(draw >> 33) % (1 + seed % LANES);
        }
        for (uint32_t n = 0; n < LOOKS; n++) {
            struct lane_load now[LANES] = {{.rate = 0}};
            uint32_t best = SESSIONS;
            for (uint32_t i = 0; i < SESSIONS; i++)
                now[at[i]].rate += rate[i];
            if (!agent_lanes_are_uneven(&balance, now, LANES))
                continue;
            for (uint32_t i = 0; i < SESSIONS; i++)
                if (at[i] == balance.from &&
                    agent_lanes_would_be_even(&balance, rate[i], best < SESSIONS ? rate[best] : 0))
                    best = i;
            if (best == SESSIONS)
                continue;
            at[best] = balance.to;
            balance.looks = 0;
            moves++;
            last = n;
        }
        ck_assert_uint_le(moves, 2 * SESSIONS);
        ck_assert_uint_lt(last, LOOKS / 2);
    }
}
END_TEST

START_TEST(who_comes_home_at_once_rests_twice_as_long_each_time)
{
    const uint64_t ms = 1000000;
    struct lane_rest r = {0};
    for (uint64_t n = 0, want = LANE_REST_MS; n < 20; n++) {
        agent_lane_rest_begin(&r, 5 * ms, n * ms);
        ck_assert_uint_eq(r.until_ns, (n + want) * ms);
        want = n < LANE_REST_DOUBLINGS ? want * 2 : want;
    }
    agent_lane_rest_begin(&r, 2 * LANE_REST_MS * ms, ms); /* a stay that was worth it */
    ck_assert_uint_eq(r.until_ns, (1 + LANE_REST_MS) * ms);
    agent_lane_rest_begin(&r, 5 * ms, ms);
    ck_assert_uint_eq(r.until_ns, (1 + LANE_REST_MS) * ms);
    agent_lane_rest_begin(&r, 5 * ms, ms);
    ck_assert_uint_eq(r.until_ns, (1 + 2 * LANE_REST_MS) * ms);
}
END_TEST

START_TEST(who_cannot_go_rests_twice_as_long_each_time_until_he_went)
{
    const uint64_t ms = 1000000;
    struct lane_rest r = {0};
    for (uint64_t n = 0, want = LANE_REST_MS; n < 20; n++) {
        agent_lane_rest_refused(&r, n * ms);
        ck_assert_uint_eq(r.until_ns, (n + want) * ms);
        want = n < LANE_REST_DOUBLINGS ? want * 2 : want;
    }
    agent_lane_rest_begin(&r, 2 * LANE_REST_MS * ms, ms);
    agent_lane_rest_refused(&r, ms);
    ck_assert_uint_eq(r.until_ns, (1 + LANE_REST_MS) * ms);
}
END_TEST

START_TEST(parts_come_to_the_whole_and_each_has_some)
{
    const struct agent_limits all = {.bytes = 1000003, .ops = 10};
    for (uint32_t parts = 1; parts <= 8; parts++) {
        struct agent_limits sum = {0};
        for (uint32_t i = 0; i < parts; i++) {
            const struct agent_limits part = agent_limits_part(all, parts, i);
            ck_assert_uint_ge(part.ops, all.ops / parts);
            sum.bytes += part.bytes;
            sum.ops += part.ops;
        }
        ck_assert_uint_eq(sum.bytes, all.bytes);
        ck_assert_uint_eq(sum.ops, all.ops);
    }
    const struct agent_limits few = agent_limits_part((struct agent_limits){.ops = 2}, 8, 7);
    ck_assert_uint_eq(few.ops, 1); /* 0 would be no limit */
    ck_assert_uint_eq(few.bytes, 0);
}
END_TEST

/* However many sessions one has: each further tenant finds a place, as long as there are fewer of
 * them than halves of halves. */
START_TEST(no_tenant_takes_all_places_of_lodgers)
{
    uint32_t left = 64, before = 64;
    for (uint32_t tenant = 0; tenant < 6; tenant++) {
        uint32_t own = 0;
        while (agent_lane_may_lodge(own, left)) {
            own++;
            left--;
        }
        ck_assert_uint_ge(own, 1);
        ck_assert_uint_le(own, before / 2 + 1);
        before = left;
    }
    ck_assert(!agent_lane_may_lodge(0, 0));
    ck_assert(agent_lane_may_lodge(0, 1)); /* who has none */
    ck_assert(!agent_lane_may_lodge(2, 1));
}
END_TEST

/* Workers of each lane go to as many nodes as those of one lane alone would, by turns. So many
 * connections are made, where the one goes that was used longest ago. */
static uint32_t made_for(uint32_t nodes, uint32_t may)
{
    uint32_t used[256] = {0}, held = 0, made = 0;
    for (uint32_t now = 1; now <= 10 * nodes; now++) {
        const uint32_t node = now % nodes;
        if (used[node] == 0) {
            uint32_t oldest = node;
            for (uint32_t i = 0; i < nodes && held == may; i++)
                if (used[i] != 0 && (oldest == node || used[i] < used[oldest]))
                    oldest = i;
            held += oldest == node;
            used[oldest] = 0;
            made++;
        }
        used[node] = now;
    }
    return made;
}

START_TEST(a_lane_of_several_reaches_as_many_nodes_as_one_alone)
{
    static const uint32_t bounds[] = {1, 5, 63, 64, 65, 500, 512, 513, 4000, 8192};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        for (uint32_t lanes = 1; lanes <= LANES; lanes++) {
            const uint32_t all = bounds[i], rc = agent_lane_connections(all, lanes, true),
                           beside = agent_lane_connections(all, lanes, false),
                           alone = all < LANE_CONNECTIONS_LEAST ? all : LANE_CONNECTIONS_LEAST;
            ck_assert_uint_ge(rc, alone);
            ck_assert_uint_le(rc, all);
            ck_assert(lanes * rc < all + lanes || rc == alone);
            ck_assert(lanes * beside >= all && lanes * beside < all + lanes);
            if (alone <= 200)
                ck_assert_uint_eq(made_for(alone, rc), alone); /* each once */
        }
    ck_assert_uint_eq(agent_lane_connections(64, 8, true), 64);
    ck_assert_uint_eq(agent_lane_connections(64, 8, false), 8);
    ck_assert_uint_eq(agent_lane_connections(1024, 8, true), 128);
    ck_assert_uint_eq(made_for(60, 8), 600); /* each time: what an eighth came to */
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_lane_has_all)                                                                            \
    T(a_tenants_first_workers_share_a_lane)                                                        \
    T(a_tenant_with_many_workers_has_them_on_all_lanes_alike)                                      \
    T(who_comes_and_goes_leaves_no_lane_behind)                                                    \
    T(nobody_is_put_on_a_lane_that_has_much_more_to_do_than_another)                               \
    T(lanes_are_uneven_when_they_have_been_for_some_looks_on_end)                                  \
    T(the_session_goes_that_leaves_the_smallest_gap)                                               \
    T(sessions_come_to_rest)                                                                       \
    T(who_comes_home_at_once_rests_twice_as_long_each_time)                                        \
    T(who_cannot_go_rests_twice_as_long_each_time_until_he_went)                                   \
    T(parts_come_to_the_whole_and_each_has_some)                                                   \
    T(a_lane_of_several_reaches_as_many_nodes_as_one_alone)                                        \
    T(no_tenant_takes_all_places_of_lodgers)
KEDGE_CHECK_MAIN("agent.control.lane_choice", TESTS)
