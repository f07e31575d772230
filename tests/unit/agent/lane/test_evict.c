/* SPDX-License-Identifier: Apache-2.0 */
/* Which of thousands of connections goes. */
#include <stdlib.h>

#include "../../check_main.h"
#include "resolve/evict.h"
#include "resolve/flow.h"
#include "transmit/physical_qp.h"

enum { ROOM = 4096, ROUND = ROOM / EVICT_LOOKS };

static struct physical_qp phys[ROOM];
static struct flow flow[ROOM];
static struct evictor e;
static struct evict_hand hand;

/* All of them are used, each a little later than the one before; something is out on each. */
static void begin(uint32_t room)
{
    hand = (struct evict_hand){0};
    e = (struct evictor){.hand = &hand};
    for (uint32_t i = 0; i < room; i++) {
        flow[i] = (struct flow){.used_ns = 1000 + i, .outstanding = 1};
        phys[i] = (struct physical_qp){.flow = &flow[i]};
    }
}

START_TEST(of_a_few_the_idle_one_that_was_used_longest_ago_goes)
{
    enum { FEW = 8 };
    begin(FEW);
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[0]); /* all are busy */
    flow[3].outstanding = flow[6].outstanding = 0;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[3]);
    flow[3].used_ns = 5000;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[6]);
    ck_assert(!e.again);
}
END_TEST

START_TEST(one_whose_own_have_not_heard_of_it_stays)
{
    enum { FEW = 2 };
    begin(FEW);
    flow[0].news = 1;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[1]);
    ck_assert(e.again);
    flow[1].news = 1;
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    ck_assert(e.again);
}
END_TEST

START_TEST(where_there_is_none_nobody_looks_again_for_that)
{
    begin(0);
    phys[0] = phys[1] = (struct physical_qp){.flow = NULL};
    ck_assert_ptr_null(lane_evict_pick(&e, phys, 2));
    ck_assert(!e.again);
}
END_TEST

START_TEST(where_those_who_are_apart_have_their_part_one_of_theirs_goes)
{
    enum { FEW = 8 };
    begin(FEW);
    e.of_quarantine = 1;
    flow[0].outstanding = flow[4].outstanding = 0;
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    flow[5].quarantined = 1;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[5]);
    flow[6].quarantined = 1;
    flow[6].outstanding = 0;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[6]);
    flow[6].linked_ns = 100; /* it has only come */
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[5]);
    e.linked_ns = 100;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[6]);
    flow[5].tenant_slot = 2;
    e.tenant = 3;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[5]);
}
END_TEST

START_TEST(who_has_few_loses_none_to_who_has_more)
{
    enum { FEW = 6 };
    struct culprit culprits[3] = {{.made = 3}, {.made = 2}, {.made = 1}};
    begin(FEW);
    for (uint32_t i = 0; i < FEW; i++) {
        flow[i].outstanding = 0;
        flow[i].made_for = i < 1 ? 3 : i < 3 ? 2 : 1; /* the first one is idle for longest */
    }
    e.culprits = culprits;
    e.tenant = 1;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[3]);
    e.tenant = 2;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[1]);
    e.tenant = 3;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[0]);
    flow[0].used_ns = 2000;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[1]);
}
END_TEST

START_TEST(while_one_is_awaited_that_is_busy_only_idle_ones_go)
{
    enum { FEW = 4 };
    begin(FEW);
    e.only_idle = 1;
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    flow[2].outstanding = 0;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[2]);
}
END_TEST

/* A place that it may not look at is one whose flow would be chosen before all others. */
START_TEST(of_thousands_a_few_are_looked_at)
{
    begin(ROOM);
    for (uint32_t i = 0; i < ROOM; i++)
        flow[i].outstanding = 0;
    flow[EVICT_LOOKS].used_ns = 1;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, ROOM), &flow[0]);
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, ROOM),
                     &flow[EVICT_LOOKS]); /* and then the next few */
}
END_TEST

START_TEST(an_idle_one_is_found_before_a_busy_one_goes)
{
    begin(ROOM);
    flow[ROOM - 1].outstanding = 0;
    for (int i = 0; i < ROUND - 1; i++) {
        ck_assert_ptr_null(lane_evict_pick(&e, phys, ROOM));
        ck_assert(e.again);
    }
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, ROOM), &flow[ROOM - 1]);
    flow[ROOM - 1].outstanding = 1;
    for (int i = 0; i < ROUND - 1; i++)
        ck_assert_ptr_null(lane_evict_pick(&e, phys, ROOM));
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, ROOM), &flow[0]);
}
END_TEST

START_TEST(among_busy_ones_that_of_an_endpoint_which_owes_a_sign_of_life_goes_last)
{
    enum { FEW = 4 };
    begin(FEW);
    for (uint32_t i = 0; i < FEW; i++)
        flow[i].since_ns = 1000 * (i + 1);
    e.owing_ns = 2500; /* the first two are silent */
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[2]);
    flow[2].liveness = SUSPECT_PROVEN;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[3]);
    flow[3].since_ns = 100;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[0]); /* all of them owe one */
    ck_assert(!e.again);
    flow[1].outstanding = 0; /* what is not out is not owed */
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[1]);
}
END_TEST

START_TEST(of_thousands_one_that_answers_is_found_before_a_silent_one_goes)
{
    begin(ROOM);
    e.owing_ns = 1;
    flow[7].since_ns = 1;
    for (int i = 0; i < ROUND - 1; i++) {
        ck_assert_ptr_null(lane_evict_pick(&e, phys, ROOM));
        ck_assert(e.again);
    }
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, ROOM), &flow[7]);
    flow[7].since_ns = 0; /* none answers: then one goes after two rounds */
    for (int i = 0; i < 2 * ROUND - 1; i++)
        ck_assert_ptr_null(lane_evict_pick(&e, phys, ROOM));
    ck_assert_ptr_nonnull(lane_evict_pick(&e, phys, ROOM));
}
END_TEST

/* A part without one that is meant ends the round, which is as long as a number of parts. */
static void all_of_his_are_in_the_first_part(bool of_quarantine)
{
    enum { FEW = 2 * EVICT_LOOKS, HIS = 60, OTHERS = 50 };
    struct culprit culprits[2] = {{.made = HIS}, {.made = OTHERS}};
    begin(FEW);
    for (uint32_t i = 0; i < FEW; i++) {
        flow[i].made_for = i < HIS ? 1 : 2;
        flow[i].tenant_slot = i < HIS ? 0 : 1;
        flow[i].quarantined = of_quarantine;
        if (i >= HIS + OTHERS)
            phys[i].flow = NULL;
    }
    e.culprits = culprits;
    e.of_quarantine = of_quarantine;
    e.tenant = 1;
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    ck_assert(e.again);
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[0]);
    ck_assert(!e.again);
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    flow[0].outstanding = 0; /* by now, since when another one was used */
    flow[0].used_ns = 5000;
    ck_assert_ptr_eq(lane_evict_pick(&e, phys, FEW), &flow[0]);
    flow[0].outstanding = 1;
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
    phys[1].flow = &flow[HIS]; /* its place is another's, which is not meant */
    ck_assert_ptr_null(lane_evict_pick(&e, phys, FEW));
}

START_TEST(a_busy_one_goes_also_when_none_is_in_the_last_part_of_a_round)
{
    all_of_his_are_in_the_first_part(false);
    all_of_his_are_in_the_first_part(true);
}
END_TEST

/* With as many parts as tenants, each would look at the same ones for ever if they had one round.
 */
START_TEST(of_tenants_who_ask_in_turn_each_has_a_round_of_its_own)
{
    enum { FEW = 2 * EVICT_LOOKS };
    struct culprit culprits[2] = {{.made = EVICT_LOOKS}, {.made = EVICT_LOOKS}};
    struct evict_hand hands[2] = {{0}};
    begin(FEW);
    for (uint32_t i = 0; i < FEW;
         i++) /* those of the tenant that asks first are in the second part */
        flow[i].made_for = i < EVICT_LOOKS ? 2 : 1;
    e.culprits = culprits;
    for (uint32_t i = 0; i < 4; i++) {
        e.tenant = i % 2 + 1;
        e.hand = &hands[i % 2];
        const struct flow *f = lane_evict_pick(&e, phys, FEW);
        ck_assert_ptr_eq(f, i < 2 ? NULL : &flow[e.tenant == 1 ? EVICT_LOOKS : 0]);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_busy_one_goes_also_when_none_is_in_the_last_part_of_a_round)                               \
    T(of_tenants_who_ask_in_turn_each_has_a_round_of_its_own)                                      \
    T(of_a_few_the_idle_one_that_was_used_longest_ago_goes)                                        \
    T(one_whose_own_have_not_heard_of_it_stays)                                                    \
    T(where_there_is_none_nobody_looks_again_for_that)                                             \
    T(where_those_who_are_apart_have_their_part_one_of_theirs_goes)                                \
    T(who_has_few_loses_none_to_who_has_more)                                                      \
    T(while_one_is_awaited_that_is_busy_only_idle_ones_go)                                         \
    T(of_thousands_a_few_are_looked_at)                                                            \
    T(an_idle_one_is_found_before_a_busy_one_goes)                                                 \
    T(among_busy_ones_that_of_an_endpoint_which_owes_a_sign_of_life_goes_last)                     \
    T(of_thousands_one_that_answers_is_found_before_a_silent_one_goes)
KEDGE_CHECK_MAIN("agent.lane.evict", TESTS)
