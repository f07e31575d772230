/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a queue pair, its own or the peer's, has it as soon as one has rested, and in its
 * turn. */
#include <check.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "internal.h"
#include "schema/handshake.h"
#include "world.h"

enum { LIFE_MS = 200, SOON_MS = 8 };

/* Nodes, of which the first has so many queue pairs ahead for others, and all have rested. */
static void open_world(struct world *w, uint32_t nodes, uint32_t ahead)
{
    w->packet_life_ns = LIFE_MS * BASE_NS_PER_MS;
    w->node[0].config.ahead = ahead;
    world_open(w, nodes);
    world_run(w, 2 * LIFE_MS);
}

/* Milliseconds until a node has its connection. */
static uint64_t wait_for(struct world *w, uint32_t node, uint32_t tag)
{
    const uint64_t since_ns = w->now_ns;
    ck_assert_int_eq(await(w, node, tag), 0);
    return (w->now_ns - since_ns) / BASE_NS_PER_MS;
}

/* It has the first node's only queue pair, and leaves it after a READ. */
static void use_the_only_one(struct world *w, uint32_t node, uint32_t tag)
{
    ask(w, node, 0, tag);
    ck_assert_int_eq(await(w, node, tag), 0);
    ck_assert_int_eq(read_through(w, node, 0, tag), IBV_WC_SUCCESS);
    connector_drop(w->node[node].c, w->node[node].event[tag].qp, w->now_ns);
    world_run(w, 3);
}

/* It asks again after 5, 10, 20, 40, 80 ms and then each 80 ms, and would hear 30 ms late. */
START_TEST(who_waits_for_the_peers_has_it_when_that_has_rested)
{
    struct world w = {0};
    w.node[0].config.responders = 1;
    open_world(&w, 2, 1);
    use_the_only_one(&w, 1, 1);
    ask(&w, 1, 0, 2);
    const uint64_t ms = wait_for(&w, 1, 2);
    ck_assert_uint_ge(ms, LIFE_MS - 10);
    ck_assert_uint_le(ms, LIFE_MS + SOON_MS);
    ck_assert_int_eq(read_through(&w, 1, 0, 2), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

/* Nothing else happens to the node: it is stepped when it said, and not before. */
static void step_when_due(struct world *w, uint32_t node, uint32_t ms)
{
    const uint64_t until_ns = w->now_ns + ms * BASE_NS_PER_MS;
    for (uint64_t due_ns = w->now_ns; due_ns <= until_ns; due_ns = node_step(w, node))
        w->now_ns = due_ns > w->now_ns ? due_ns : w->now_ns;
}

START_TEST(who_waits_for_one_of_its_own_asks_when_that_has_rested)
{
    struct world w = {0};
    w.node[1].config.initiators = w.node[1].config.ahead = 1;
    open_world(&w, 3, 4);
    use_the_only_one(&w, 1, 1);
    ask(&w, 1, 2, 2);
    const uint64_t before = stats_of(&w, 1).requests;
    step_when_due(&w, 1, LIFE_MS);
    ck_assert_uint_eq(stats_of(&w, 1).requests, before + 1);
    ck_assert_uint_le(wait_for(&w, 1, 2), SOON_MS);
    world_close(&w);
}
END_TEST

START_TEST(a_node_whose_queue_pair_has_rested_looks_who_waits)
{
    struct world w = {0};
    w.node[0].config.responders = 1;
    open_world(&w, 2, 1);
    use_the_only_one(&w, 1, 1);
    ask(&w, 1, 0, 2);
    world_run(&w, 3);
    ck_assert_uint_eq(w.node[0].c->waiters, 1);
    step_when_due(&w, 0, LIFE_MS);
    ck_assert_uint_eq(w.node[0].c->waiters, 0);
    world_close(&w);
}
END_TEST

/* ---- turns */

static void say(struct world *w, uint32_t from, enum schema_handshake_kind kind, uint64_t nonce)
{
    const struct connector_peer victim = peer_of(w, 0), other = peer_of(w, from);
    struct schema_handshake h = {.kind = (uint8_t)kind,
                                 .from_incarnation = 100,
                                 .to_incarnation = victim.incarnation,
                                 .nonce = nonce,
                                 .pool = 1,
                                 .mtu = IBV_MTU_1024,
                                 .rd_atomic = 1,
                                 .qpn = 77,
                                 .ud_qpn = other.ud_qpn,
                                 .ud_qkey = other.ud_qkey};
    memcpy(h.from_gid, other.gid, 16);
    memcpy(h.to_gid, victim.gid, 16);
    connector_message(w->node[0].c, &h);
}

/* The only queue pair that is ready is taken, and others cannot be ready before LIFE_MS. */
static void open_with_none_ready(struct world *w, uint32_t nodes)
{
    open_world(w, nodes, 1);
    w->node[0].gone_ns = w->now_ns;
    ask(w, 1, 0, 1);
    ck_assert_int_eq(await(w, 1, 1), 0);
}

/* Whoever asks while there is none has its place before who asks later, though that one asks at the
 * very moment when there is one. */
START_TEST(who_came_first_has_the_first)
{
    struct world w = {0};
    w.node[0].config.responders = 2;
    open_with_none_ready(&w, 4);
    ask(&w, 2, 0, 2);
    world_run(&w, LIFE_MS / 4); /* it would ask again 5 ms after there is one */
    ask(&w, 3, 0, 3);
    ck_assert_int_eq(await(&w, 2, 2), 0);
    world_run(&w, 20);
    ck_assert(!w.node[3].came[3]);
    world_close(&w);
}
END_TEST

/* It asks under a thousand names. */
START_TEST(one_peer_has_its_part_of_the_room_and_no_more)
{
    struct world w = {0};
    open_with_none_ready(&w, 4);
    for (uint64_t nonce = 1; nonce <= 1000; nonce++)
        say(&w, 3, SCHEMA_HANDSHAKE_REQUEST, nonce);
    ck_assert_uint_eq(w.node[0].c->waiters, CONNECT_WAITERS_EACH);
    ask(&w, 2, 0, 2);
    world_run(&w, 5);
    ck_assert_uint_eq(w.node[0].c->waiters, CONNECT_WAITERS_EACH + 1);
    ck_assert_uint_le(wait_for(&w, 2, 2), LIFE_MS + SOON_MS);
    ck_assert_uint_eq(w.node[0].c->waiters, 0);
    world_close(&w);
}
END_TEST

START_TEST(there_is_no_room_for_more_than_there_is_room_for)
{
    struct world w = {0};
    open_with_none_ready(&w, 4);
    struct connector *c = w.node[0].c;
    struct schema_handshake h = {.kind = SCHEMA_HANDSHAKE_REQUEST,
                                 .from_incarnation = 100,
                                 .to_incarnation = 100,
                                 .nonce = 1,
                                 .pool = 1};
    memcpy(h.to_gid, peer_of(&w, 0).gid, 16);
    for (uint32_t i = 0; i < 2 * CONNECT_WAITERS; i++) {
        h.from_gid[14] = (uint8_t)(i + 1);
        connector_message(c, &h);
        ck_assert_uint_eq(c->waiters, i < CONNECT_WAITERS ? i + 1 : CONNECT_WAITERS);
    }
    world_close(&w);
}
END_TEST

/* All places are of strangers, `each` under one address. */
static void fill_room(struct world *w, uint32_t each)
{
    struct connector *c = w->node[0].c;
    struct schema_handshake h = {.kind = SCHEMA_HANDSHAKE_REQUEST,
                                 .from_incarnation = 100,
                                 .to_incarnation = 100,
                                 .pool = 1};
    memcpy(h.to_gid, peer_of(w, 0).gid, 16);
    for (uint32_t i = 0; i < CONNECT_WAITERS; i++) {
        h.from_gid[14] = (uint8_t)(i / each + 1);
        h.nonce = i + 1;
        connector_message(c, &h);
    }
    ck_assert_uint_eq(c->waiters, CONNECT_WAITERS);
}

static bool is_remembered(const struct world *w, uint32_t node)
{
    const struct connector *c = w->node[0].c;
    for (uint32_t i = 0; i < c->waiters; i++)
        if (memcmp(c->waiter[i].request.from_gid, peer_of(w, node).gid, 16) == 0)
            return true;
    return false;
}

/* Strangers have all places, and each a few: who has none gets one of those, and no second. */
START_TEST(who_has_no_place_gets_one_that_is_anothers_second)
{
    struct world w = {0};
    open_with_none_ready(&w, 4);
    fill_room(&w, 2);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 100);
    ck_assert(is_remembered(&w, 2));
    say(&w, 3, SCHEMA_HANDSHAKE_REQUEST, 101);
    ck_assert(is_remembered(&w, 3));
    ck_assert_uint_eq(w.node[0].c->waiters, CONNECT_WAITERS);
    const struct waiter *last = &w.node[0].c->waiter[CONNECT_WAITERS - 1];
    ck_assert_uint_eq(last->request.nonce, 101);
    say(&w, 3, SCHEMA_HANDSHAKE_REQUEST, 102);
    ck_assert_uint_eq(last->request.nonce, 101);
    for (uint32_t i = 0; i < CONNECT_WAITERS - 2; i += 2) /* the first of each are all there */
        ck_assert_uint_eq(w.node[0].c->waiter[i].request.nonce, i + 1);
    ck_assert_uint_eq(w.node[0].c->waiter[CONNECT_WAITERS - 3].request.nonce, CONNECT_WAITERS - 1);
    world_close(&w);
}
END_TEST

/* Strangers have asked once, under as many names as there are places, and are not heard again. */
START_TEST(who_is_silent_keeps_no_place_from_who_asks)
{
    struct world w = {0};
    open_with_none_ready(&w, 4);
    fill_room(&w, 1);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 100);
    ck_assert(!is_remembered(&w, 2));
    world_run(&w, LIFE_MS - 30);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 100);
    ck_assert(is_remembered(&w, 2));
    ck_assert_uint_eq(w.node[0].c->waiters, CONNECT_WAITERS);
    world_close(&w);
}
END_TEST

START_TEST(who_has_left_or_is_silent_gets_none)
{
    struct world w = {0};
    open_with_none_ready(&w, 4);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 1);
    say(&w, 3, SCHEMA_HANDSHAKE_REQUEST, 2);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 3);
    say(&w, 3, SCHEMA_HANDSHAKE_BYE, 2);
    ck_assert_uint_eq(w.node[0].c->waiters, 2);
    world_run(&w, LIFE_MS - 10);
    say(&w, 2, SCHEMA_HANDSHAKE_REQUEST, 3); /* who asks 1 has not for longer than anybody rests */
    ck_assert_uint_eq(w.node[0].c->waiters, 2);
    ck_assert_uint_eq(stats_of(&w, 0).accepted, 1);
    world_run(&w, 20);
    ck_assert_uint_eq(w.node[0].c->waiters, 0);
    ck_assert_uint_eq(stats_of(&w, 0).accepted, 2);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_waits_for_the_peers_has_it_when_that_has_rested)                                         \
    T(who_waits_for_one_of_its_own_asks_when_that_has_rested)                                      \
    T(a_node_whose_queue_pair_has_rested_looks_who_waits)                                          \
    T(who_came_first_has_the_first)                                                                \
    T(one_peer_has_its_part_of_the_room_and_no_more)                                               \
    T(there_is_no_room_for_more_than_there_is_room_for)                                            \
    T(who_has_no_place_gets_one_that_is_anothers_second)                                           \
    T(who_is_silent_keeps_no_place_from_who_asks)                                                  \
    T(who_has_left_or_is_silent_gets_none)
KEDGE_CHECK_MAIN("agent.connect.waiting", TESTS)
