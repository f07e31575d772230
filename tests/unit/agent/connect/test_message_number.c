/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lanes of peers hear of messages: asked and answered without a connection. */
#include <check.h>
#include <string.h>

#include "../../check_main.h"
#include "internal.h"
#include "world.h"

enum { QPN = 4711, QKEY = 5 };

static void begin(struct world *w)
{
    *w = (struct world){.loss_ppm = 0};
    world_open(w, 2);
    connector_set_messages(w->node[1].c, QPN, QKEY);
}

static void ask_number(struct world *w, uint32_t incarnation)
{
    struct connector_peer peer = peer_of(w, 1);
    peer.incarnation = incarnation;
    connector_ask_messages(w->node[0].c, &peer);
    world_run(w, 5);
}

START_TEST(a_peer_says_where_it_hears_without_a_connection)
{
    struct world w;
    struct connector_told t;
    begin(&w);
    const struct connector_peer peer = peer_of(&w, 1);
    ask_number(&w, peer.incarnation);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 1);
    ck_assert_mem_eq(t.gid, peer.gid, 16);
    ck_assert_uint_eq(t.incarnation, peer.incarnation);
    ck_assert_uint_eq(t.qpn, QPN);
    ck_assert_uint_eq(t.qkey, QKEY);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 0);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0);
    /* When its queue pair was made anew it says the other number, or that it carries none. */
    connector_set_messages(w.node[1].c, QPN + 1, QKEY);
    ask_number(&w, peer.incarnation);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 1);
    ck_assert_uint_eq(t.qpn, QPN + 1);
    connector_set_messages(w.node[1].c, 0, 0);
    ask_number(&w, peer.incarnation);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 1);
    ck_assert_uint_eq(t.qpn, 0);
    world_close(&w);
}
END_TEST

START_TEST(another_life_of_a_peer_says_nothing)
{
    struct world w;
    struct connector_told t;
    begin(&w);
    const uint64_t dropped = stats_of(&w, 1).dropped;
    ask_number(&w, peer_of(&w, 1).incarnation + 1);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 0);
    ck_assert_uint_eq(stats_of(&w, 1).dropped, dropped + 1);
    world_close(&w);
}
END_TEST

/* What comes without a question, or to that of a former life, is not believed. */
START_TEST(an_answer_that_was_not_asked_for_is_dropped)
{
    struct world w;
    struct connector_told t;
    begin(&w);
    struct connector *c = w.node[0].c;
    struct schema_handshake h = {.kind = SCHEMA_HANDSHAKE_MESSAGES,
                                 .from_incarnation = 1,
                                 .to_incarnation = c->config.incarnation,
                                 .nonce = 99,
                                 .messages_qpn = 1};
    connector_messages_told(c, &h);
    ask_number(&w, peer_of(&w, 1).incarnation);
    connector_messages_told(c, &h);
    h.nonce = c->ask_nonce;
    h.to_incarnation--;
    connector_messages_told(c, &h);
    ck_assert_int_eq(connector_told(c, &t), 1);
    ck_assert_uint_eq(t.qpn, QPN);
    ck_assert_int_eq(connector_told(c, &t), 0);
    ck_assert_uint_eq(stats_of(&w, 0).dropped, 3);
    world_close(&w);
}
END_TEST

/* Nobody takes them. */
START_TEST(so_many_answers_wait_and_more_are_lost)
{
    struct world w;
    struct connector_told t;
    uint32_t told = 0;
    begin(&w);
    for (uint32_t i = 0; i < CONNECTOR_TOLD + 8; i++)
        ask_number(&w, peer_of(&w, 1).incarnation);
    while (connector_told(w.node[0].c, &t))
        told++;
    ck_assert_uint_eq(told, CONNECTOR_TOLD);
    ck_assert_uint_eq(stats_of(&w, 0).dropped, 8);
    ask_number(&w, peer_of(&w, 1).incarnation);
    ck_assert_int_eq(connector_told(w.node[0].c, &t), 1);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_peer_says_where_it_hears_without_a_connection)                                             \
    T(another_life_of_a_peer_says_nothing)                                                         \
    T(an_answer_that_was_not_asked_for_is_dropped)                                                 \
    T(so_many_answers_wait_and_more_are_lost)
KEDGE_CHECK_MAIN("agent.connect.message_number", TESTS)
