/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what comes from other nodes a step takes, and whom it believes. */
#include <check.h>
#include <string.h>

#include "../../check_main.h"
#include "internal.h"
#include "schema/handshake.h"
#include "world.h"

/* Nine nodes ask one at once, under a name that it had before, so that each message is counted.
 * Returns how many do. */
static uint64_t ask_all_at_once(struct world *w, uint32_t each)
{
    struct connector_peer before = peer_of(w, 0);
    uint64_t sent = 0;
    before.incarnation = 99;
    for (uint32_t i = 1; i < NODES; i++) {
        sent -= stats_of(w, i).requests;
        for (uint32_t t = 0; t < each; t++)
            connector_connect(w->node[i].c, &before, t);
        (void)node_step(w, i);
        sent += stats_of(w, i).requests;
    }
    return sent;
}

START_TEST(a_step_takes_as_many_messages_as_it_may_and_asks_for_another)
{
    enum { EACH = 20 };
    struct world w = {0};
    for (int i = 1; i < NODES; i++)
        w.node[i].config.handshakes = w.node[i].config.ahead = EACH;
    world_open(&w, NODES);
    for (uint32_t i = 1; i < NODES; i++) { /* they know where it is */
        ask(&w, i, 0, WANTED);
        ck_assert_int_eq(await(&w, i, WANTED), 0);
    }
    world_run(&w, 10);
    const uint64_t sent = ask_all_at_once(&w, EACH);
    ck_assert_uint_gt(sent, 2 * CONNECTOR_TAKES);
    for (uint64_t taken = 0; taken < sent;) {
        const uint64_t due_ns = node_step(&w, 0), now = stats_of(&w, 0).refused;
        ck_assert_uint_le(now - taken, CONNECTOR_TAKES);
        ck_assert(now == sent || due_ns <= w.now_ns);
        taken = now;
    }
    for (int steps = 0; node_step(&w, 0) <= w.now_ns; steps++) /* its answers were sent */
        ck_assert_int_lt(steps, 10);
    world_close(&w);
}
END_TEST

/* ---- in another's name */

/* A process of a node, with a device and all that a node's agent tells the others, but no agent:
 * what it says is its own. */
struct liar {
    struct fab *fab;
    struct fab_qp *qp;
    struct fab_cq *cq;
    struct fab_ah *ah; /* to its victim */
    struct fab_mem mem;
    struct fab_mr *mr;
};

static void *make(struct fab *fab, struct fab_ctl ctl)
{
    ck_assert_int_eq(fab_call(fab, &ctl), 0);
    return ctl.pd.x; /* every kind names its object first */
}

static void make_liar(struct world *w, uint32_t on, uint32_t to, struct liar *l)
{
    struct node *n = &w->node[on];
    l->fab = n->fab;
    l->cq = make(l->fab, (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = 16}});
    ck_assert_int_eq(fab_mem_alloc(4096, "liar", &l->mem), 0);
    l->mr = make(l->fab, (struct fab_ctl){.kind = FAB_REG_MR,
                                          .mr = {.pd = n->system_pd,
                                                 .mem = &l->mem,
                                                 .length = l->mem.size,
                                                 .access = IBV_ACCESS_LOCAL_WRITE}});
    l->qp = make(l->fab,
                 (struct fab_ctl){
                     .kind = FAB_CREATE_QP,
                     .qp = {.pd = n->system_pd,
                            .type = FAB_QP_UD,
                            .send_cq = l->cq,
                            .recv_cq = l->cq,
                            .cap = {.send_wr = 4, .recv_wr = 4, .send_sge = 1, .recv_sge = 1}}});
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    static const int masks[] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN};
    for (int i = 0; i < 3; i++) {
        struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                              .modify = {.x = l->qp, .attr = fab_pd_init_attr(n->system_pd)}};
        ctl.modify.attr.qp_state = states[i];
        ctl.modify.attr.qkey = 5;
        ctl.modify.mask = IBV_QP_STATE | masks[i];
        ck_assert_int_eq(fab_call(l->fab, &ctl), 0);
    }
    const struct connector_peer victim = peer_of(w, to);
    l->ah =
        make(l->fab, (struct fab_ctl){.kind = FAB_CREATE_AH,
                                      .ah = {.pd = n->system_pd,
                                             .attr = fab_address(l->fab, victim.gid, victim.lid)}});
}

static void unmake(struct fab *fab, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl ctl = {.kind = kind};
    ctl.pd.x = x;
    ck_assert_int_eq(fab_call(fab, &ctl), 0);
}

static void unmake_liar(struct liar *l)
{
    unmake(l->fab, FAB_DESTROY_QP, l->qp);
    unmake(l->fab, FAB_DESTROY_AH, l->ah);
    unmake(l->fab, FAB_DESTROY_CQ, l->cq);
    unmake(l->fab, FAB_DEREG_MR, l->mr);
    fab_mem_free(&l->mem);
}

/* Sends the first so many bytes of its memory. */
static void send_bytes(struct world *w, struct liar *l, uint32_t to, uint32_t bytes)
{
    const struct connector_peer victim = peer_of(w, to);
    struct ibv_sge sge = {.addr = (uintptr_t)l->mem.addr, .length = bytes, .lkey = l->mr->lkey};
    struct fab_wr wr = {.wr_id = 1,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED,
                        .ah = l->ah,
                        .dest_qpn = victim.ud_qpn,
                        .qkey = victim.ud_qkey},
                  *bad;
    struct ibv_wc wc;
    ck_assert_int_eq(fab_post_send(l->qp, &wr, &bad), 0);
    world_run(w, 20);
    ck_assert_int_eq(fab_poll(l->cq, 1, &wc), 1);
}

/* Asks for a connection to `to` in the name of `as`, in that one's last life. */
static void lie(struct world *w, struct liar *l, uint32_t to, uint32_t as)
{
    const struct connector_peer victim = peer_of(w, to), other = peer_of(w, as);
    struct schema_handshake h = {.magic = SCHEMA_HANDSHAKE_MAGIC,
                                 .version = SCHEMA_HANDSHAKE_VERSION,
                                 .kind = SCHEMA_HANDSHAKE_REQUEST,
                                 .from_incarnation = UINT32_MAX,
                                 .to_incarnation = victim.incarnation,
                                 .nonce = 4711,
                                 .pool = 1,
                                 .mtu = IBV_MTU_1024,
                                 .rd_atomic = 1,
                                 .qpn = 77,
                                 .ud_qpn = l->qp->qpn,
                                 .ud_qkey = 5};
    memcpy(h.from_gid, other.gid, 16);
    memcpy(h.to_gid, victim.gid, 16);
    memcpy(l->mem.addr, &h, sizeof h);
    send_bytes(w, l, to, sizeof h);
}

/* Node 2 has the Q_Key: it asks for connections itself. */
START_TEST(a_request_in_another_nodes_name_ends_none_of_its_connections)
{
    struct world w = {0};
    struct liar liar;
    world_open(&w, 3);
    ask(&w, 1, 0, 1);
    ck_assert_int_eq(await(&w, 1, 1), 0);
    make_liar(&w, 2, 0, &liar);
    lie(&w, &liar, 0, 1);
    ck_assert_uint_eq(stats_of(&w, 0).incoming, 1);
    ck_assert_uint_eq(stats_of(&w, 0).reclaimed, 0);
    ck_assert_uint_eq(stats_of(&w, 0).forged, 1);
    ck_assert_int_eq(read_through(&w, 1, 0, 1), IBV_WC_SUCCESS);
    ask(&w, 1, 0, 2); /* and is not kept out by a life that it never had */
    ck_assert_int_eq(await(&w, 1, 2), 0);
    lie(&w, &liar, 0, 2); /* in its own name it is heard */
    ck_assert_uint_eq(stats_of(&w, 0).forged, 1);
    ck_assert_uint_eq(stats_of(&w, 0).incoming, 3);
    unmake_liar(&liar);
    world_close(&w);
}
END_TEST

/* As long as the network takes: there is room for it, or it would break the queue pair. */
START_TEST(a_long_datagram_of_a_stranger_breaks_nothing)
{
    struct world w = {0};
    struct liar liar;
    world_open(&w, 3);
    const struct datagrams *d = &w.node[0].c->ud;
    make_liar(&w, 2, 0, &liar);
    memset(liar.mem.addr, 0xff, liar.mem.size);
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t bytes = i < 4 ? SCHEMA_HANDSHAKE_BYTES - 1 + i : 4096;
        send_bytes(&w, &liar, 0, bytes);
        ck_assert_uint_eq(d->repairs[0].step + d->repairs[1].step, 0); /* none was ever needed */
        ck_assert(!d->broken);
        ck_assert_uint_eq(stats_of(&w, 0).dropped, i + 1);
    }
    ask(&w, 1, 0, 1);
    ck_assert_int_eq(await(&w, 1, 1), 0);
    unmake_liar(&liar);
    world_close(&w);
}
END_TEST

/* As a network may bring it that duplicates and delays: the initiator has left meanwhile. */
START_TEST(a_request_that_comes_again_after_the_good_bye_takes_no_queue_pair)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    struct connector *c = w.node[1].c;
    uint32_t at = 0;
    while (c->in[at].state == IN_FREE)
        at++;
    const struct schema_handshake request = c->in[at].request;
    connector_drop(w.node[0].c, w.node[0].event[1].qp, w.now_ns);
    world_run(&w, 50);
    const struct connector_stats before = stats_of(&w, 1);
    ck_assert_uint_eq(before.incoming, 0);
    connector_incoming_request(c, &request);
    world_run(&w, 5);
    ck_assert_uint_eq(stats_of(&w, 1).dropped, before.dropped + 1);
    ck_assert_uint_eq(stats_of(&w, 1).accepted, before.accepted);
    ck_assert_uint_eq(stats_of(&w, 1).responders_ready, before.responders_ready);
    ask(&w, 0, 1, 2); /* another one of the same peer is */
    ck_assert_int_eq(await(&w, 0, 2), 0);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_step_takes_as_many_messages_as_it_may_and_asks_for_another)                                \
    T(a_long_datagram_of_a_stranger_breaks_nothing)                                                \
    T(a_request_in_another_nodes_name_ends_none_of_its_connections)                                \
    T(a_request_that_comes_again_after_the_good_bye_takes_no_queue_pair)
KEDGE_CHECK_MAIN("agent.connect.messages", TESTS)
