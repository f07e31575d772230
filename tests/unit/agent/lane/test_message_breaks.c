/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and READs of several VQPs while queue pairs of both nodes break: of each VQP all that
 * was sent comes once, and in order, and ends well, and in order. */
#include <string.h>

#include "../../check_main.h"
#include "internal.h"
#include "message_pair.h"
#include "world_held.h"
#include "world_trio.h"

enum { VQPS = 3, EACH = 60, SEEDS = 60, BYTES = 16, RECEIVE = 64, BUFFERS = 16 };

static uint64_t random_state;
static uint32_t breaks; /* of connections */

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

/* Its next request: mostly a SEND, whose bytes say which it is. */
static void post_next(uint16_t vqp, uint32_t number, uint32_t key, uint32_t *sent)
{
    const uint64_t at = (uint64_t)(vqp * EACH + number) * BYTES;
    struct schema_sq_desc d;
    if (random_below(4) == 0) {
        d = world_rw(SCHEMA_OP_READ, number, 32768, 64, key, 8192);
    } else {
        const uint32_t says[2] = {vqp, (*sent)++};
        memcpy(memory_of(&sender, at), says, sizeof says);
        d = world_message(SCHEMA_OP_SEND, number, at, sizeof says);
    }
    d.vqp = vqp;
    post(&sender, d);
}

static uint64_t buffer_at(uint32_t number)
{
    return 16384 + (uint64_t)(number % BUFFERS) * RECEIVE;
}

/* Ours: at the other end requests are out, one of which ends with that then. */
static void break_connection(struct world_node *n)
{
    if (n->last_link == NULL || fab_qp_state(n->last_link) != IBV_QPS_RTS)
        return;
    world_break(&w, (uint32_t)(n - w.node), n->last_link);
    breaks++;
}

static void break_something(void)
{
    struct world_node *n = &w.node[random_below(2)];
    if (random_below(3) == 0)
        world_break_ud(&w, (uint32_t)(n - w.node));
    else if (n->connector != NULL && (w.rc || random_below(2) == 0))
        break_connection(n);
    else
        world_break(&w, (uint32_t)(n - w.node), n->res.dci[random_below(n->res.dcis)]);
}

/* As a metaserver does that is told of it. */
static void publish_numbers(void)
{
    static uint32_t known[WORLD_NODES];
    for (uint32_t i = 0; i < 2; i++) {
        if (world_ud(i)->qpn != known[i])
            world_publish_ud(&w, i);
        known[i] = world_ud(i)->qpn;
    }
}

static void run_with(uint64_t seed, bool streams)
{
    uint32_t posted[VQPS] = {0}, ended[VQPS] = {0}, sent[VQPS] = {0}, heard[VQPS] = {0};
    uint32_t received = 0, buffers = 0, over = 0, tries = 0;
    random_state = seed;
    world_ud_broken = 0;
    world_streams = streams;
    world_fault = (struct fault_plan){.seed = seed};
    begin();
    const uint32_t key = world_register(&w, &receiver, 8192, 4096, SCHEMA_RECORD_READ);
    for (uint16_t v = 1; v < VQPS; v++) {
        ck_assert_int_eq(world_connect(&w, &sender, v, 1), 0);
        world_send_to(&sender, v, SCHEMA_SEND_TO_PORT, PORT);
    }
    while (over < VQPS * EACH) {
        ck_assert_uint_lt(++tries, 100000);
        const uint16_t v = (uint16_t)random_below(VQPS);
        if (posted[v] < EACH && posted[v] - ended[v] < 8)
            post_next(v, posted[v]++, key, &sent[v]);
        while (buffers - received < BUFFERS && random_below(2) == 0) {
            post_receive(buffers, buffer_at(buffers), RECEIVE);
            buffers++;
        }
        if (random_below(20) == 0)
            break_something();
        world_delay(&w, random_below(4) == 0 ? random_below(30) : 0);
        world_run(&w, random_below(40));
        publish_numbers();
        struct schema_cqe e;
        struct schema_cqe_sender from;
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_msg(e.status == IBV_WC_SUCCESS,
                          "seed %lu: %u of %u ended with %u for %u, try %u, %lu ns", seed,
                          (uint32_t)e.wr_id, e.vqp, e.status, e.vendor_err, tries, w.now_ns);
            ck_assert_uint_eq(e.wr_id, ended[e.vqp]++);
            over++;
        }
        while (world_hear(&w, &receiver, &e, &from, 0)) {
            uint32_t says[2];
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, received);
            memcpy(says, memory_of(&receiver, buffer_at(received++)), sizeof says);
            ck_assert_uint_lt(says[0], VQPS);
            ck_assert_uint_eq(says[1], heard[says[0]]++);
        }
    }
    for (int v = 0; v < VQPS; v++)
        ck_assert_uint_eq(heard[v], sent[v]);
    end();
    world_fault.seed = 0;
    world_streams = false;
}

START_TEST(what_is_sent_ends_well_and_in_order_whatever_breaks)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_with(seed, seed % 2 == 0);
    ck_assert(!w.rc || breaks > SEEDS);
}
END_TEST

static struct fab_qp *responder_of(struct world_node *n)
{
    const struct connector *c = n->connector;
    for (uint32_t i = 0; c != NULL && i < c->config.responders; i++)
        if (c->in[i].state == IN_UP)
            return c->in[i].slot->qp;
    return NULL;
}

/* It shares its receives, so that none of its own comes back: the device's word is the only one. */
START_TEST(a_responder_that_breaks_between_two_messages_harms_none)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    for (uint32_t i = 0; i < 8; i++) {
        post_receive(100 + i, 0, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        struct fab_qp *qp = responder_of(&w.node[1]);
        ck_assert(qp != NULL || !w.rc);
        if (qp == NULL)
            continue;
        world_break(&w, 1, qp);
        connector_fatal(w.node[1].connector, qp, w.now_ns);
        world_run(&w, 200);
    }
    end();
}
END_TEST

/* All by which node 0 may send; nothing is out there, so that its lane does not know yet. */
static void break_senders(void)
{
    struct world_node *n = &w.node[0];
    for (uint32_t i = 0; i < n->res.dcis; i++)
        world_break(&w, 0, n->res.dci[i]);
    if (n->connector != NULL)
        break_connection(n);
}

/* Of the next world's lanes; 0: as it is without. */
static void set_bound(uint64_t ns)
{
    world_bound_ns = ns;
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 10 * ns;
}

/* Of two messages the first has come, and is refused for want of a buffer. The second was posted
 * meanwhile, on a queue pair that has broken: of that the lane hears after the refusal, and so many
 * passes. */
static void refuse_one_while_another_is_lost(unsigned passes)
{
    struct world_node *n = &w.node[0];
    set_bound(100000000);
    begin();
    set_bound(0);
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    const uint64_t refused = world_stats(&w, 0).messages_rnr;
    const uint64_t again = world_stats(&w, 0).reposted, posted = world_stats(&w, 0).posted;
    world_hold(n, n->res.cq);
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    world_run(&w, 100);
    break_senders();
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 8, 8));
    world_give_some(1); /* that it has gone, for which the next may wait */
    world_run(&w, 2);
    ck_assert_uint_eq(world_stats(&w, 0).posted, posted + 2);
    world_give_well();
    world_run(&w, passes);
    ck_assert_uint_gt(world_stats(&w, 0).messages_rnr, refused);
    ck_assert_uint_eq(world_stats(&w, 0).reposted, again); /* it is out yet */
    world_give();
    world_run(&w, 100);
    ck_assert_uint_gt(world_stats(&w, 0).reposted, again);
}

START_TEST(what_is_lost_goes_again_behind_what_was_refused)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    refuse_one_while_another_is_lost(10);
    for (uint64_t id = 3; id <= 4; id++) {
        post_receive(10 + id, 0, 64);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, 10 + id);
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, id);
    }
    world_held_end();
    end();
}
END_TEST

START_TEST(what_is_lost_ends_behind_what_is_refused_for_too_long)
{
    refuse_one_while_another_is_lost(25000); /* longer than it is patient */
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 3);
    ck_assert_uint_eq(e.status, IBV_WC_RNR_RETRY_EXC_ERR);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 4);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    world_held_end();
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_sent_ends_well_and_in_order_whatever_breaks)                                         \
    T(what_is_lost_goes_again_behind_what_was_refused)                                             \
    T(what_is_lost_ends_behind_what_is_refused_for_too_long)                                       \
    T(a_responder_that_breaks_between_two_messages_harms_none)
KEDGE_CHECK_MAIN("agent.lane.message_breaks", TESTS)
