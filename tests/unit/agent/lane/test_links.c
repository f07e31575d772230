/* SPDX-License-Identifier: Apache-2.0 */
/* What is the lane's own about RC connections: more endpoints than connections, and what follows
 * when one breaks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "internal.h"
#include "world.h"
#include "world_rc.h"

enum { TENANT = 7, LONG = 200000 /* passes: a time-out of the device is in real time */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t REST_NS = 50000000; /* so long waits who breaks many */

static struct world world;
static struct world *w = &world;
static struct world_worker owner[WORLD_NODES], k;
static uint32_t vkey[WORLD_NODES];

/* An owner on each node, and a worker on node 0 with one VQP to each. */
static void open_all(void)
{
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", "rc", 1), 0);
    world_open(w);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world_attach(w, &owner[i], i, 0, TENANT);
        vkey[i] = world_register(w, &owner[i], 0, 4096, ALL);
    }
    world_attach(w, &k, 0, 1, TENANT);
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        ck_assert_int_eq(world_connect(w, &k, (uint16_t)i, i), 0);
}

static void close_all(void)
{
    world_detach(w, &k);
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        world_detach(w, &owner[i]);
    world_close(w);
}

static void post(uint8_t op, uint64_t wr_id, uint16_t vqp, uint32_t node)
{
    struct schema_sq_desc d = world_rw(op, wr_id, 64 * wr_id, 8, vkey[node], 64 * wr_id);
    d.vqp = vqp;
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
}

static void expect(uint64_t wr_id, uint32_t status)
{
    struct schema_cqe e;
    ck_assert(world_poll(w, &k, &e, LONG));
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.status, status);
}

START_TEST(more_endpoints_than_connections_are_all_served)
{
    open_all(); /* three endpoints, two connections */
    for (uint64_t round = 0; round < 20; round++)
        for (uint32_t i = 0; i < WORLD_NODES; i++) {
            post(SCHEMA_OP_READ, i, (uint16_t)i, i);
            expect(i, IBV_WC_SUCCESS);
        }
    struct lane_stats s = world_stats(w, 0);
    ck_assert_uint_le(s.links, WORLD_LINKS);
    ck_assert_uint_ge(s.links_evicted, 20);
    ck_assert_uint_eq(s.qp_broken, 0);
    close_all();
}
END_TEST

/* Three endpoints, two connections: who uses two in turn has one of them, and changes that. */
START_TEST(who_uses_many_endpoints_takes_no_connection_from_who_uses_one)
{
    enum { OTHER = 8, ROUNDS = 20 };
    struct world_worker theirs[WORLD_NODES], greedy;
    uint32_t key[WORLD_NODES] = {0};
    struct connector_stats before, after;
    open_all();
    world_attach(w, &greedy, 0, 2, OTHER);
    for (uint32_t i = 0; i < WORLD_NODES; i += 2) {
        world_attach(w, &theirs[i], i, 3, OTHER);
        key[i] = world_register(w, &theirs[i], 0, 4096, ALL);
        ck_assert_int_eq(world_connect(w, &greedy, (uint16_t)i, i), 0);
    }
    post(SCHEMA_OP_READ, 1, 1, 1);
    expect(1, IBV_WC_SUCCESS);
    connector_stats(w->node[1].connector, &before);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WORLD_NODES; i += 2) {
            struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key[i], 0);
            d.vqp = (uint16_t)i;
            world_post(&greedy, &d);
            ck_assert_uint_eq(world_done(w, &greedy, LONG).status, IBV_WC_SUCCESS);
        }
        post(SCHEMA_OP_READ, 2, 1, 1);
        expect(2, IBV_WC_SUCCESS);
    }
    connector_stats(w->node[1].connector, &after);
    ck_assert_uint_eq(after.accepted, before.accepted);
    ck_assert_uint_ge(world_stats(w, 0).links_evicted, ROUNDS);
    for (uint32_t i = 0; i < WORLD_NODES; i += 2)
        world_detach(w, &theirs[i]);
    world_detach(w, &greedy);
    close_all();
}
END_TEST

START_TEST(a_connection_that_is_given_up_is_drained_first)
{
    open_all();
    struct schema_cqe e;
    uint32_t seen = 0;
    for (uint64_t wr_id = 0; wr_id < 24; wr_id++) /* all at once: none is ever idle for long */
        post(wr_id % 2 ? SCHEMA_OP_WRITE : SCHEMA_OP_READ, wr_id, wr_id % 3, wr_id % 3);
    while (seen < 24 && world_poll(w, &k, &e, LONG)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        seen++;
    }
    ck_assert_uint_eq(seen, 24);
    close_all();
}
END_TEST

START_TEST(behind_a_refused_request_others_go_again_on_another_connection)
{
    struct world_worker bad;
    open_all();
    world_attach(w, &bad, 1, 2, TENANT);
    uint32_t good_key = vkey[1], bad_key = world_register(w, &bad, 0, 4096, ALL);
    vkey[1] = bad_key;
    post(SCHEMA_OP_READ, 1, 1, 1); /* its record is known from now on */
    expect(1, IBV_WC_SUCCESS);
    vkey[1] = good_key;
    post(SCHEMA_OP_READ, 2, 1, 1);
    expect(2, IBV_WC_SUCCESS);
    world_take_away(w, &bad);
    ck_assert_int_eq(world_connect(w, &k, 3, 1), 0);
    vkey[1] = bad_key;
    post(SCHEMA_OP_WRITE, 3, 1, 1); /* refused by the peer */
    vkey[1] = good_key;
    post(SCHEMA_OP_WRITE, 4, 3, 1); /* another VQP's, behind it on the same connection */
    post(SCHEMA_OP_READ, 5, 3, 1);
    expect(3, IBV_WC_REM_ACCESS_ERR);
    expect(4, IBV_WC_SUCCESS);
    expect(5, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    ck_assert_uint_ge(world_stats(w, 0).reposted, 2);
    world_detach(w, &bad);
    close_all();
}
END_TEST

static void break_last_link(void)
{
    world_break(w, 0, w->node[0].last_link);
}

START_TEST(a_queue_pair_that_the_device_says_is_broken_is_replaced_unseen)
{
    open_all();
    post(SCHEMA_OP_READ, 1, 1, 1);
    expect(1, IBV_WC_SUCCESS);
    world_fatal(w, 0, w->node[0].last_link);
    post(SCHEMA_OP_WRITE, 2, 1, 1);
    expect(2, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0); /* it was said of its life before */
    break_last_link();
    world_fatal(w, 0, w->node[0].last_link);
    post(SCHEMA_OP_WRITE, 3, 1, 1);
    expect(3, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    close_all();
}
END_TEST

/* Nobody is to blame, and nobody knows how far it was. */
START_TEST(what_was_out_when_a_queue_pair_broke_by_itself_goes_again_if_it_was_a_read)
{
    open_all();
    post(SCHEMA_OP_READ, 1, 1, 1);
    expect(1, IBV_WC_SUCCESS);
    ck_assert_int_eq(world_connect(w, &k, 3, 1), 0);
    post(SCHEMA_OP_READ, 2, 1, 1);
    post(SCHEMA_OP_WRITE, 3, 3, 1);
    /* Taken by the lane and posted, then the device gives up before the next pass polls. */
    break_last_link();
    struct schema_cqe e[2];
    ck_assert(world_poll(w, &k, &e[0], LONG));
    ck_assert(world_poll(w, &k, &e[1], LONG));
    const struct schema_cqe *read = e[0].wr_id == 2 ? &e[0] : &e[1];
    const struct schema_cqe *write = e[0].wr_id == 2 ? &e[1] : &e[0];
    ck_assert_uint_eq(read->wr_id, 2);
    ck_assert_uint_eq(read->status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(write->status, IBV_WC_WR_FLUSH_ERR);
    close_all();
}
END_TEST

/* A sanitizer takes ten times as long, and sees no more in the next nine hundred. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { BREAKS = 100 };
#else
enum { BREAKS = 1000 };
#endif

START_TEST(a_thousand_breaks_leave_the_counts_as_they_were)
{
    struct world_worker bad;
    struct connector_stats before[2], after[2];
    open_all();
    for (int round = 0; round < BREAKS; round++) {
        world_attach(w, &bad, 1, 2, TENANT);
        uint32_t good_key = vkey[1];
        vkey[1] = world_register(w, &bad, 0, 4096, ALL);
        ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
        post(SCHEMA_OP_READ, 1, 1, 1);
        expect(1, IBV_WC_SUCCESS);
        world_take_away(w, &bad);
        post(SCHEMA_OP_READ, 2, 1, 1);
        expect(2, IBV_WC_REM_ACCESS_ERR);
        vkey[1] = good_key;
        world_detach(w, &bad);
        world_sleep(w, REST_NS);
        world_run(w, 200);
        for (int i = 0; i < 2; i++)
            connector_stats(w->node[i].connector, &after[i]);
        if (round == 10)
            memcpy(before, after, sizeof before);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(after[i].initiators, before[i].initiators);
        ck_assert_uint_eq(after[i].responders, before[i].responders);
        ck_assert_uint_eq(after[i].incoming, before[i].incoming);
        ck_assert_uint_eq(after[i].addresses, before[i].addresses);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, BREAKS);
    close_all();
}
END_TEST

START_TEST(a_peer_that_makes_no_connection_fails_what_is_posted_and_is_asked_again_later)
{
    open_all();
    connector_free(w->node[1].connector); /* its process is there, and does not answer */
    w->node[1].connector = NULL;
    post(SCHEMA_OP_READ, 1, 1, 1);
    post(SCHEMA_OP_READ, 2, 2, 2); /* another peer's goes on meanwhile */
    expect(2, IBV_WC_SUCCESS);
    expect(1, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(world_stats(w, 0).paths_failed, 1);
    world_restart_node(w, 1);
    world_sleep(w, 2 * w->node[0].config.node_lease_ns);
    for (int i = 0; i < 100; i++) { /* by then it is the new one that is asked */
        struct schema_cqe e;
        ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
        post(SCHEMA_OP_READ, 3, 1, 1);
        ck_assert(world_poll(w, &k, &e, LONG));
        if (e.vendor_err == SCHEMA_REASON_VKEY) /* the new one has no regions */
            break;
        ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
        world_sleep(w, 20000000);
    }
    ck_assert_uint_ge(world_stats(w, 0).wrong_keys, 1);
    close_all();
}
END_TEST

START_TEST(a_connection_to_an_earlier_life_of_a_peer_goes_when_the_next_is_connected_to)
{
    open_all();
    for (int life = 0; life < 3; life++) {
        struct schema_cqe e;
        ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
        post(SCHEMA_OP_READ, 1, 1, 1); /* a later life has no regions, and its table is looked at */
        ck_assert(world_poll(w, &k, &e, LONG));
        ck_assert_uint_eq(e.status, life == 0 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        ck_assert_uint_eq(world_stats(w, 0).links, 1);
        ck_assert_uint_eq(world_stats(w, 0).flows, 1);
        world_detach(w, &k); /* nobody is there who would hear that the peer goes */
        world_restart_node(w, 1);
        world_sleep(w, 2 * w->node[0].config.node_lease_ns);
        world_attach(w, &k, 0, 1, TENANT);
    }
    close_all();
}
END_TEST

/* ---- connections that fail */

enum { MS = 1000 /* passes */ };

static void open_patient(void)
{
    world_path_patience_ns = 300 * MS * 1000ull;
    open_all();
    w->away[1] = true; /* who asks for a path waits, until the test says that there is none */
}

static void fail_path(void)
{
    struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                             .path = {.flow = w->node[0].wanted_flow, .status = -ETIMEDOUT}};
    w->away[1] = false;
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

START_TEST(a_handshake_that_fails_is_not_the_end_of_who_has_waited_for_less)
{
    open_patient();
    post(SCHEMA_OP_READ, 1, 1, 1);
    world_run(w, 100 * MS);
    fail_path();
    expect(1, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).paths_failed, 1);
    world_path_patience_ns = 0;
    close_all();
}
END_TEST

START_TEST(who_has_waited_for_a_connection_as_long_as_one_would_have_tried_hears_of_it)
{
    open_patient();
    post(SCHEMA_OP_READ, 1, 1, 1);
    world_run(w, 310 * MS);
    fail_path();
    expect(1, IBV_WC_RETRY_EXC_ERR);
    world_path_patience_ns = 0;
    close_all();
}
END_TEST

/* ---- metaservers */

/* Node 0 is told of one that answers nobody for seconds; and behind it, if `other`, of the one that
 * there is. */
static void tell_silent(bool other)
{
    struct world_node *n = &w->node[0];
    struct lane_command c = {.kind = LANE_COMMAND_METASERVERS};
    c.metaservers.at[0] = (struct lane_metaserver){.table = w->table.desc};
    c.metaservers.at[0].table.rkey = w->meta_mr->rkey;
    c.metaservers.at[1] = c.metaservers.at[0];
    c.metaservers.at[0].qp = world_rc_silent(w, n);
    c.metaservers.at[1].qp = n->metaserver_qp;
    c.metaservers.count = other ? 2 : 1;
    n->no_metaserver = !other;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

static void open_one(void)
{
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", "rc", 1), 0);
    world_open(w);
    world_attach(w, &k, 0, 1, TENANT);
}

START_TEST(a_silent_metaserver_keeps_nobody_from_asking_the_next)
{
    open_one();
    tell_silent(true);
    const uint64_t since_ns = w->now_ns;
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_lt(w->now_ns - since_ns, w->node[0].config.lookup_timeout_ns / 2);
    ck_assert_int_eq(world_connect(w, &k, 1, 2), 0);
    ck_assert_uint_eq(world_stats(w, 0).lookups_failed, 0);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

/* All of them are silent for as long as a device repeats a READ: then that is known, for a while.
 */
START_TEST(without_one_that_answers_lookups_end_in_time_and_then_at_once)
{
    open_one();
    tell_silent(false);
    uint64_t since_ns = w->now_ns;
    ck_assert_int_eq(world_connect(w, &k, 0, 1), -EHOSTUNREACH);
    ck_assert_uint_ge(w->now_ns - since_ns, w->node[0].config.lookup_timeout_ns);
    since_ns = w->now_ns;
    ck_assert_int_eq(world_connect(w, &k, 0, 2), -EHOSTUNREACH);
    ck_assert_uint_lt(w->now_ns - since_ns, w->node[0].config.lookup_timeout_ns / 2);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

static void list_metaserver(struct fab_qp *qp)
{
    struct lane_command c = {.kind = LANE_COMMAND_METASERVERS};
    c.metaservers.count = qp != NULL;
    c.metaservers.at[0] = (struct lane_metaserver){.table = w->table.desc, .qp = qp};
    c.metaservers.at[0].table.rkey = w->meta_mr->rkey;
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    lane_step(w->node[0].lane, w->now_ns += 1000);
}

/* The control side says which metaservers there are before it hears that one's queue pair broke:
 * the lane has given that one back, and its next life is not the lane's yet. */
START_TEST(a_queue_pair_that_broke_is_given_back_once_whatever_was_listed_before_that_was_heard)
{
    struct lane_event e, broken;
    uint32_t times = 0;
    open_one();
    struct world_node *n = &w->node[0];
    struct fab_qp *qp = n->metaserver_qp;
    world_break(w, 0, qp);
    world_fatal(w, 0, qp);
    for (int i = 0; i < 2; i++)
        list_metaserver(qp);
    list_metaserver(NULL);
    while (lane_event(n->lane, &e))
        if (e.kind == LANE_EVENT_QP_BROKEN && e.broken.qp == qp) {
            times++;
            broken = e;
        }
    ck_assert_uint_eq(times, 1);
    world_rc_event(w, n, &broken);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0); /* through another one */
    world_detach(w, &k);
    world_close(w);
}
END_TEST

/* The queue pairs of node 1 that node 0 has connected to, without a word to that. */
static void break_responders(void)
{
    struct connector *c = w->node[1].connector;
    for (uint32_t i = 0; i < c->config.responders; i++)
        if (c->in[i].state == IN_UP &&
            memcmp(c->in[i].request.from_gid, w->node[0].fab->caps.gid, 16) == 0)
            world_break(w, 1, c->in[i].slot->qp);
}

/* By the device's time-outs its initiator would hear of that late, and with RETRY_EXC_ERR,
 * which also ends READs. */
START_TEST(what_is_out_when_the_other_end_breaks_is_judged_at_once)
{
    enum { WRITES = WORLD_NODES /* another virtual queue pair to node 1 */ };
    uint32_t status[3] = {0};
    struct schema_cqe e;
    const uint8_t ack_timeout = world_ack_timeout;
    world_ack_timeout = 19;
    open_all();
    ck_assert_int_eq(world_connect(w, &k, WRITES, 1), 0);
    post(SCHEMA_OP_READ, 0, 1, 1);
    expect(0, IBV_WC_SUCCESS);
    const struct fab_qp *link = w->node[0].last_link;
    break_responders();
    post(SCHEMA_OP_WRITE, 1, WRITES, 1);
    post(SCHEMA_OP_READ, 2, 1, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert(world_poll(w, &k, &e, LONG));
        ck_assert(e.wr_id == 1 || e.wr_id == 2);
        status[e.wr_id] = e.status;
    }
    ck_assert_uint_eq(status[1], IBV_WC_WR_FLUSH_ERR); /* it may have been carried out */
    ck_assert_uint_eq(status[2], IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 1);
    ck_assert_ptr_ne(w->node[0].last_link, link);
    close_all();
    world_ack_timeout = ack_timeout;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(more_endpoints_than_connections_are_all_served)                                              \
    T(who_uses_many_endpoints_takes_no_connection_from_who_uses_one)                               \
    T(a_connection_that_is_given_up_is_drained_first)                                              \
    T(behind_a_refused_request_others_go_again_on_another_connection)                              \
    T(a_queue_pair_that_the_device_says_is_broken_is_replaced_unseen)                              \
    T(what_was_out_when_a_queue_pair_broke_by_itself_goes_again_if_it_was_a_read)                  \
    T(a_thousand_breaks_leave_the_counts_as_they_were)                                             \
    T(a_peer_that_makes_no_connection_fails_what_is_posted_and_is_asked_again_later)               \
    T(a_connection_to_an_earlier_life_of_a_peer_goes_when_the_next_is_connected_to)                \
    T(a_handshake_that_fails_is_not_the_end_of_who_has_waited_for_less)                            \
    T(who_has_waited_for_a_connection_as_long_as_one_would_have_tried_hears_of_it)                 \
    T(a_silent_metaserver_keeps_nobody_from_asking_the_next)                                       \
    T(without_one_that_answers_lookups_end_in_time_and_then_at_once)                               \
    T(a_queue_pair_that_broke_is_given_back_once_whatever_was_listed_before_that_was_heard)        \
    T(what_is_out_when_the_other_end_breaks_is_judged_at_once)

KEDGE_CHECK_MAIN("agent.lane.links", TESTS)
