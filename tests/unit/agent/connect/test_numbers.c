/* SPDX-License-Identifier: Apache-2.0 */
/* A device gives the number of a queue pair that is gone to the next one, whatever that is for. */
#include "../../check_main.h"
#include "world.h"

enum { LIFE_MS = 200 };

/* Node 0 has an initiator that is ready, and has to make another one for who asks second. How long
 * that takes. */
static uint64_t make_second_initiator(struct world *w)
{
    ask(w, 0, 1, 2);
    ck_assert_int_eq(await(w, 0, 2), 0);
    const uint64_t since_ns = w->now_ns;
    ask(w, 0, 2, 3);
    ck_assert_int_eq(await(w, 0, 3), 0);
    return w->now_ns - since_ns;
}

static void open_with_two_initiators(struct world *w)
{
    *w = (struct world){
        .packet_life_ns = LIFE_MS * 1000000ull, .resets_are_final = true, .numbers_return = true};
    w->node[0].config.initiators = 2;
    w->node[0].config.ahead = 1;
    world_open(w, 3);
    world_run(w, 2 * LIFE_MS);
}

START_TEST(one_that_is_made_when_a_responder_is_gone_rests_too)
{
    struct world w;
    open_with_two_initiators(&w);
    ask(&w, 1, 0, 1);
    ck_assert_int_eq(await(&w, 1, 1), 0);
    ck_assert_int_eq(read_through(&w, 1, 0, 1), IBV_WC_SUCCESS);
    connector_drop(w.node[1].c, w.node[1].event[1].qp, w.now_ns);
    world_run(&w, 3); /* node 0 hears of it */
    ck_assert_uint_ge(make_second_initiator(&w), (LIFE_MS - 10) * 1000000ull);
    ck_assert_int_eq(read_through(&w, 0, 2, 3), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

static void hear_nothing(void *user, const struct fab_qp *qp, int status)
{
    (void)user, (void)qp, (void)status;
}

/* Another pool's. */
START_TEST(so_does_one_when_another_has_had_the_device_destroy_one)
{
    struct world w;
    open_with_two_initiators(&w);
    ck_assert_uint_le(make_second_initiator(&w), 10 * 1000000ull);
    world_close(&w);
    open_with_two_initiators(&w);
    w.node[0].gone_ns = w.now_ns;
    ck_assert_uint_ge(make_second_initiator(&w), (LIFE_MS - 10) * 1000000ull);
    world_close(&w);
}
END_TEST

/* It may take long, and nothing else happen meanwhile. */
START_TEST(what_the_device_was_asked_to_destroy_has_gone_when_it_says_so)
{
    struct world w;
    open_with_two_initiators(&w);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    struct node *n = &w.node[0];
    connector_destroy(n->c, n->event[1].qp, w.now_ns, hear_nothing, NULL);
    w.now_ns += 2 * LIFE_MS * 1000000ull;
    connector_note_time(n->c, w.now_ns);
    ck_assert_uint_lt(n->gone_ns, w.now_ns);
    (void)fab_run(n->fab);
    ck_assert_uint_eq(n->gone_ns, w.now_ns);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_is_made_when_a_responder_is_gone_rests_too)                                         \
    T(so_does_one_when_another_has_had_the_device_destroy_one)                                     \
    T(what_the_device_was_asked_to_destroy_has_gone_when_it_says_so)

KEDGE_CHECK_MAIN("agent.connect.numbers", TESTS)
