/* SPDX-License-Identifier: Apache-2.0 */
/* Responders that share receives: none is lost with a queue pair that is used again. */
#include <check.h>

#include "../../check_main.h"
#include "internal.h"
#include "world.h"

enum { TAG = 1, NEXT = 2, BYTES = 8, RECEIVE = 4711, LONG = 300 /* ms */ };

/* One connection, from node 0 to node 1, which has one responder and one receive. */
static void open_pair(struct world *w)
{
    *w = (struct world){.has_srq = true};
    w->node[1].config.responders = 1;
    world_open(w, 2);
    struct node *n = &w->node[1];
    struct ibv_sge sge = {
        .addr = (uintptr_t)n->mem.addr + 256, .length = BYTES, .lkey = n->mr->lkey};
    struct fab_recv_wr wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1}, *bad;
    ck_assert_int_eq(fab_post_srq_recv(n->srq, &wr, &bad), 0);
    ask(w, 0, 1, TAG);
    ck_assert_int_eq(await(w, 0, TAG), 0);
}

/* Acknowledged, so that the responder has taken it. */
static void send_one(struct world *w)
{
    struct node *n = &w->node[0];
    struct ibv_sge sge = {.addr = (uintptr_t)n->mem.addr, .length = BYTES, .lkey = n->mr->lkey};
    struct fab_wr wr = {.wr_id = TAG,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED},
                  *bad;
    struct ibv_wc wc;
    int polled = 0;
    ck_assert_int_eq(fab_post_send(n->event[TAG].qp, &wr, &bad), 0);
    for (int i = 0; i < LONG && (polled = fab_poll(n->cq, 1, &wc)) == 0; i++)
        world_run(w, 1);
    ck_assert_int_eq(polled, 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}

static void leave(struct world *w)
{
    connector_drop(w->node[0].c, w->node[0].event[TAG].qp, w->now_ns);
    world_run(w, 20);
    ck_assert_uint_eq(stats_of(w, 1).incoming, 0);
}

/* Its initiator has said good-bye before this node's lane polls. */
START_TEST(a_receive_that_nobody_has_polled_yet_outlives_its_connection)
{
    struct world w;
    struct ibv_wc wc;
    open_pair(&w);
    send_one(&w);
    leave(&w);
    ck_assert_int_eq(fab_poll(w.node[1].cq, 1, &wc), 1);
    ck_assert_uint_eq(wc.wr_id, RECEIVE);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(its_queue_pair_is_used_again)
{
    struct world w;
    open_pair(&w);
    leave(&w);
    ck_assert_uint_eq(stats_of(&w, 1).responders_ready, 0);
    ask(&w, 0, 1, NEXT);
    ck_assert_int_eq(await(&w, 0, NEXT), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, NEXT), IBV_WC_SUCCESS);
    ck_assert_uint_eq(stats_of(&w, 1).responders, 1);
    world_close(&w);
}
END_TEST

/* world_close() says whether anything is left. */
START_TEST(a_connector_ends_while_a_queue_pair_gives_back_what_it_has)
{
    struct world w;
    open_pair(&w);
    connector_drop(w.node[0].c, w.node[0].event[TAG].qp, w.now_ns);
    for (int i = 0; i < LONG && stats_of(&w, 1).incoming > 0; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(w.node[1].c->responders.at[0].state, SLOT_DRAINING);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_receive_that_nobody_has_polled_yet_outlives_its_connection)                                \
    T(its_queue_pair_is_used_again)                                                                \
    T(a_connector_ends_while_a_queue_pair_gives_back_what_it_has)
KEDGE_CHECK_MAIN("agent.connect.shared_receives", TESTS)
