/* SPDX-License-Identifier: Apache-2.0 */
#include "../../check_main.h"
#include "schedule/fair_queue.h"

enum { MANY = 50 };

static struct fair_queue q;
static struct turn member[MANY];
static uint64_t random_word = 7;

static uint64_t draw(uint64_t below)
{
    random_word = random_word * 6364136223846793005ull + 1442695040888963407ull;
    return (random_word >> 33) % below;
}

/* The least served of those that wait, and of these the one that waits longest. */
static const struct turn *least(void)
{
    const struct turn *best = NULL;
    for (int i = 0; i < MANY; i++)
        if (member[i].waits &&
            (best == NULL || member[i].node.key < best->node.key ||
             (member[i].node.key == best->node.key && member[i].node.order < best->node.order)))
            best = &member[i];
    return best;
}

START_TEST(the_least_served_is_first_whoever_comes_and_goes)
{
    for (int step = 0; step < 100000; step++) {
        struct turn *t = &member[draw(MANY)];
        switch (draw(3)) {
        case 0:
            if (t->waits)
                lane_fair_queue_leave(&q, t);
            else
                lane_fair_queue_join(&q, t);
            break;
        case 1:
            if (fair_queue_first(&q) != NULL)
                lane_fair_queue_serve(&q, fair_queue_first(&q), 1 + draw(1000));
            break;
        default:
            if (fair_queue_first(&q) != NULL) {
                t = fair_queue_first(&q);
                lane_fair_queue_leave(&q, t);
                lane_fair_queue_serve(&q, t, 1 + draw(1000));
                if (draw(2) == 0)
                    lane_fair_queue_join(&q, t);
            }
        }
        ck_assert_ptr_eq(fair_queue_first(&q), least());
    }
}
END_TEST

START_TEST(those_that_cost_the_same_take_turns_in_the_order_of_coming)
{
    for (int i = 0; i < 4; i++)
        lane_fair_queue_join(&q, &member[i]);
    for (int i = 0; i < 40; i++) {
        ck_assert_ptr_eq(fair_queue_first(&q), &member[i % 4]);
        lane_fair_queue_serve(&q, fair_queue_first(&q), 10);
    }
}
END_TEST

START_TEST(who_was_away_begins_where_the_others_are)
{
    lane_fair_queue_join(&q, &member[0]);
    for (int i = 0; i < 1000; i++)
        lane_fair_queue_serve(&q, fair_queue_first(&q), 10);
    lane_fair_queue_join(&q, &member[1]);
    uint64_t served[2] = {0};
    for (int i = 0; i < 100; i++) {
        served[fair_queue_first(&q) - member]++;
        lane_fair_queue_serve(&q, fair_queue_first(&q), 10);
    }
    ck_assert_uint_eq(served[0], 50);
    ck_assert_uint_eq(served[1], 50);
}
END_TEST

START_TEST(who_leaves_unserved_comes_back_to_its_place)
{
    for (int i = 0; i < 3; i++)
        lane_fair_queue_join(&q, &member[i]);
    lane_fair_queue_leave(&q, &member[0]);
    lane_fair_queue_join(&q, &member[0]);
    ck_assert_ptr_eq(fair_queue_first(&q), &member[0]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_least_served_is_first_whoever_comes_and_goes)                                            \
    T(those_that_cost_the_same_take_turns_in_the_order_of_coming)                                  \
    T(who_was_away_begins_where_the_others_are)                                                    \
    T(who_leaves_unserved_comes_back_to_its_place)
KEDGE_CHECK_MAIN("agent.lane.fair_queue", TESTS)
