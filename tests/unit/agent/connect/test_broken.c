/* SPDX-License-Identifier: Apache-2.0 */
/* A responder's queue pair that goes to ERR by itself: its initiator hears of it. */
#include <check.h>

#include "../../check_main.h"
#include "internal.h"
#include "world.h"

enum { LONG = 2000 /* ms */, TAG = 1 };

/* One connection, from node 0 to node 1. */
static void open_pair(struct world *w)
{
    world_open(w, 2);
    ask(w, 0, 1, TAG);
    ck_assert_int_eq(await(w, 0, TAG), 0);
}

static struct fab_qp *initiator_of(const struct world *w)
{
    return w->node[0].event[TAG].qp;
}

static struct incoming *incoming_of(const struct world *w)
{
    struct connector *c = w->node[1].c;
    for (uint32_t i = 0; i < c->config.responders; i++)
        if (c->in[i].state != IN_FREE)
            return &c->in[i];
    return NULL;
}

static void break_responder(const struct world *w)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = incoming_of(w)->slot->qp,
                                     .attr = {.qp_state = IBV_QPS_ERR},
                                     .mask = IBV_QP_STATE}};
    ck_assert_int_eq(fab_call(w->node[1].fab, &ctl), 0);
}

/* NULL: within LONG nothing came. */
static struct fab_qp *await_news(struct world *w)
{
    struct fab_qp *qp = NULL;
    for (int i = 0; i < LONG && (qp = connector_broken(w->node[0].c)) == NULL; i++)
        world_run(w, 1);
    return qp;
}

START_TEST(its_initiator_hears_of_it_once_and_the_queue_pair_is_used_again)
{
    struct world w = {0};
    w.node[1].config.responders = 1;
    open_pair(&w);
    break_responder(&w);
    ck_assert_ptr_eq(await_news(&w), initiator_of(&w));
    world_run(&w, 20); /* it is said again */
    ck_assert_uint_gt(stats_of(&w, 0).dropped, 0);
    ck_assert_ptr_null(connector_broken(w.node[0].c));
    ck_assert_uint_eq(stats_of(&w, 1).broken, 1);
    connector_drop(w.node[0].c, initiator_of(&w), w.now_ns);
    ask(&w, 0, 1, 2);
    ck_assert_int_eq(await(&w, 0, 2), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 2), IBV_WC_SUCCESS);
    world_run(&w, LONG);
    ck_assert_ptr_null(connector_broken(w.node[0].c)); /* of the former alone */
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed, 0);
    world_close(&w);
}
END_TEST

START_TEST(it_is_said_again_when_messages_are_lost)
{
    struct world w = {.loss_ppm = 400000};
    open_pair(&w);
    break_responder(&w);
    ck_assert_ptr_eq(await_news(&w), initiator_of(&w));
    world_close(&w);
}
END_TEST

START_TEST(nothing_is_said_when_its_initiator_says_good_bye_by_itself)
{
    struct world w = {0};
    open_pair(&w);
    w.node[1].mr->rkey ^= 0x5a5a00;
    ck_assert_int_eq(read_through(&w, 0, 1, TAG), IBV_WC_REM_ACCESS_ERR);
    w.node[1].mr->rkey ^= 0x5a5a00;
    connector_drop(w.node[0].c, initiator_of(&w), w.now_ns);
    ck_assert_ptr_null(await_news(&w));
    ck_assert_uint_eq(stats_of(&w, 1).broken, 0);
    world_close(&w);
}
END_TEST

START_TEST(one_whose_initiator_is_gone_is_given_up_after_some_tries)
{
    struct world w = {0};
    open_pair(&w);
    node_kill(&w, 0);
    break_responder(&w);
    world_run(&w, LONG / 2);
    ck_assert_ptr_null(incoming_of(&w));
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed, 1);
    world_close(&w);
}
END_TEST

/* Only who knows the connection's number can say it, and only as the life that was asked. */
START_TEST(what_is_said_of_another_connection_or_by_another_life_changes_nothing)
{
    struct world w = {0};
    open_pair(&w);
    struct incoming *n = incoming_of(&w);
    struct connector *c = w.node[1].c;
    const struct schema_handshake request = n->request;
    struct schema_handshake h = connector_answer(&request, SCHEMA_HANDSHAKE_BROKEN);
    const uint64_t dropped = stats_of(&w, 0).dropped;
    h.nonce++;
    connector_reply(c, &request, h);
    world_run(&w, 5);
    h.nonce--;
    c->config.incarnation++;
    connector_reply(c, &request, h);
    world_run(&w, 5);
    c->config.incarnation--;
    ck_assert_uint_eq(stats_of(&w, 0).dropped, dropped + 2);
    ck_assert_ptr_null(connector_broken(w.node[0].c));
    ck_assert_int_eq(read_through(&w, 0, 1, TAG), IBV_WC_SUCCESS);
    connector_reply(c, &request, h);
    ck_assert_ptr_eq(await_news(&w), initiator_of(&w));
    world_close(&w);
}
END_TEST

/* Its request may come again as late as it likes. */
START_TEST(a_request_for_one_that_broke_is_refused)
{
    struct world w = {0};
    open_pair(&w);
    struct incoming *n = incoming_of(&w);
    const struct schema_handshake request = n->request;
    break_responder(&w);
    ck_assert_ptr_eq(await_news(&w), initiator_of(&w));
    const uint64_t refused = stats_of(&w, 1).refused;
    connector_incoming_request(w.node[1].c, &request);
    ck_assert_uint_eq(stats_of(&w, 1).refused, refused + 1);
    ck_assert_uint_eq(n->state, IN_BROKEN);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(its_initiator_hears_of_it_once_and_the_queue_pair_is_used_again)                             \
    T(it_is_said_again_when_messages_are_lost)                                                     \
    T(nothing_is_said_when_its_initiator_says_good_bye_by_itself)                                  \
    T(one_whose_initiator_is_gone_is_given_up_after_some_tries)                                    \
    T(what_is_said_of_another_connection_or_by_another_life_changes_nothing)                       \
    T(a_request_for_one_that_broke_is_refused)
KEDGE_CHECK_MAIN("agent.connect.broken", TESTS)
