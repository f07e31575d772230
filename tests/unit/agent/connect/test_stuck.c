/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that the device does not bring back: others take their places. */
#include <check.h>

#include "../../check_main.h"
#include "fabric/fault.h"
#include "fabric/provider.h"
#include "world.h"

/* Nor are they lost to the device, which refuses to destroy some of them at first: the world's end
 * asks for that. */
START_TEST(connections_come_and_go_where_the_device_brings_none_back)
{
    static const uint32_t share[] = {1000000, 400000};
    for (uint32_t i = 0; i < 2; i++) {
        struct world w = {.stuck_ppm = share[i]};
        w.node[0].config.initiators = w.node[0].config.ahead = 2;
        w.node[1].config.responders = w.node[1].config.ahead = 2;
        world_open(&w, 2);
        for (uint32_t t = 0; t < 20; t++) {
            ask(&w, 0, 1, t);
            ck_assert_int_eq(await(&w, 0, t), 0);
            ck_assert_int_eq(read_through(&w, 0, 1, t), IBV_WC_SUCCESS);
            connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
        }
        world_run(&w, 3000);
        ck_assert_uint_eq(stats_of(&w, 0).initiators_ready, 2);
        ck_assert_uint_eq(stats_of(&w, 1).responders_ready, 2);
        world_close(&w);
    }
}
END_TEST

START_TEST(handshakes_have_another_queue_pair_when_the_device_does_not_bring_theirs_back)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const struct fault_plan stuck = {.seed = i + 1,
                                         .stuck_ppm = 1000000,
                                         .completion_error_ppm = 1000000,
                                         .status = IBV_WC_LOC_QP_OP_ERR};
        const uint32_t before = connector_ud_qpn(w.node[0].c);
        fault_set_plan(w.node[0].fab, &stuck);
        ask(&w, 0, 1, 2 + 2 * i);
        world_run(&w, 10);
        fault_set_plan(w.node[0].fab, &(struct fault_plan){.seed = 1});
        world_run(&w, 10000);
        ck_assert_uint_ne(connector_ud_qpn(w.node[0].c), before);
        ask(&w, 0, 1, 3 + 2 * i);
        ck_assert_int_eq(await(&w, 0, 3 + 2 * i), 0);
        ask(&w, 1, 0, 20 + i);
        ck_assert_int_eq(await(&w, 1, 20 + i), 0);
    }
    world_close(&w);
}
END_TEST

/* Some of what the device says it did not do it has done. */
START_TEST(what_the_device_refuses_now_and_then_is_tried_until_all_is_as_before)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        const struct fault_plan ill = {.seed = seed, .control_error_ppm = 200000},
                                well = {.seed = seed};
        struct world w = {0};
        w.node[0].config.initiators = w.node[0].config.ahead = 2;
        w.node[1].config.responders = w.node[1].config.ahead = 2;
        world_open(&w, 2);
        for (uint32_t i = 0; i < 2; i++)
            fault_set_plan(w.node[i].fab, &ill);
        for (uint32_t t = 0; t < 10; t++) {
            ask(&w, 0, 1, t);
            if (await(&w, 0, t) != 0)
                continue;
            ck_assert_int_eq(read_through(&w, 0, 1, t), IBV_WC_SUCCESS);
            connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
        }
        for (uint32_t i = 0; i < 2; i++)
            fault_set_plan(w.node[i].fab, &well);
        world_run(&w, 5000);
        ck_assert_uint_eq(stats_of(&w, 0).initiators_ready, 2);
        ck_assert_uint_eq(stats_of(&w, 1).responders_ready, 2);
        ask(&w, 0, 1, 10);
        ck_assert_int_eq(await(&w, 0, 10), 0);
        ck_assert_int_eq(read_through(&w, 0, 1, 10), IBV_WC_SUCCESS);
        world_close(&w);
    }
}
END_TEST

/* ---- whose repair the device does not answer */

static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    bool holds;
    struct fab_ctl *held;
} device;

static void hold_reset(struct fab *fab, struct fab_ctl *ctl)
{
    if (device.holds && device.held == NULL && ctl->kind == FAB_MODIFY_QP &&
        ctl->modify.x->type == FAB_QP_UD && ctl->modify.attr.qp_state == IBV_QPS_RESET)
        device.held = ctl;
    else
        device.real->submit(fab, ctl);
}

static void begin_holding(struct fab *fab)
{
    device.real = fab->ops;
    device.ops = *fab->ops;
    device.ops.submit = hold_reset;
    device.holds = true;
    fab->ops = &device.ops;
}

static void go_on(struct fab *fab)
{
    device.holds = false;
    device.real->submit(fab, device.held);
    device.held = NULL;
}

static void break_handshakes(struct world *w, uint32_t node, uint32_t tag)
{
    const struct fault_plan ill = {
        .seed = 1, .completion_error_ppm = 1000000, .status = IBV_WC_LOC_QP_OP_ERR};
    fault_set_plan(w->node[node].fab, &ill);
    ask(w, node, 1 - node, tag);
    world_run(w, 10);
    fault_set_plan(w->node[node].fab, &(struct fault_plan){.seed = 1});
}

/* It returns late, while the next one breaks, or never, for as long as the agent runs. */
START_TEST(handshakes_go_on_with_another_queue_pair_while_the_device_says_nothing_of_theirs)
{
    for (uint32_t late = 0; late < 2; late++) {
        struct world w = {0};
        world_open(&w, 2);
        struct node *n = &w.node[0];
        begin_holding(n->fab);
        const uint32_t before = connector_ud_qpn(n->c);
        break_handshakes(&w, 0, 1);
        ck_assert_ptr_nonnull(device.held);
        world_run(&w, 6000);
        ck_assert_uint_ne(connector_ud_qpn(n->c), before);
        ask(&w, 0, 1, 2);
        ck_assert_int_eq(await(&w, 0, 2), 0);
        ask(&w, 1, 0, 3);
        ck_assert_int_eq(await(&w, 1, 3), 0);
        const uint32_t second = connector_ud_qpn(n->c);
        break_handshakes(&w, 0, 4);
        if (late == 1)
            go_on(n->fab);
        world_run(&w, 3000);
        ck_assert_uint_eq(connector_ud_qpn(n->c), second); /* which is repaired as it is */
        ask(&w, 0, 1, 5);
        ck_assert_int_eq(await(&w, 0, 5), 0);
        if (late == 0)
            go_on(n->fab);
        world_run(&w, 2000);
        n->fab->ops = device.real;
        world_close(&w);
    }
}
END_TEST

/* ---- devices that leave completions where they are when a queue pair is put to RESET, as rxe */

static struct {
    bool keeps;
    struct fab_cq *cq; /* where it was */
    struct ibv_wc wc;
} left;
static uint32_t receives;

/* A completion that is there, and that nobody has polled. */
static int poll_or_leave(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (left.keeps && left.cq == NULL && device.real->poll(cq, 1, &left.wc) == 1)
        left.cq = cq;
    if (left.keeps)
        return 0;
    if (left.cq != cq || n < 1)
        return device.real->poll(cq, n, wc);
    left.cq = NULL;
    wc[0] = left.wc;
    return 1;
}

static int count_receive(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    receives += qp->type == FAB_QP_UD;
    return device.real->post_recv(qp, wr, bad);
}

/* It would be posted once more, into memory that the device has. */
START_TEST(what_completed_before_a_repair_is_none_of_the_receives_that_are_posted_behind_it)
{
    struct world w = {0};
    world_open(&w, 2);
    struct node *n = &w.node[0];
    device.real = n->fab->ops;
    device.ops = *n->fab->ops;
    device.ops.post_recv = count_receive;
    device.ops.poll = poll_or_leave;
    ask(&w, 1, 0, 1);
    for (uint32_t i = 0; i < 20; i++) { /* and its request is not taken yet */
        w.now_ns += 1000000;
        (void)node_step(&w, 1);
    }
    n->fab->ops = &device.ops;
    left.keeps = true;
    (void)node_step(&w, 0);
    left.keeps = false;
    ck_assert_ptr_nonnull(left.cq);
    receives = 0;
    connector_repartition(n->c, w.now_ns);
    for (uint32_t i = 0; i < 100; i++)
        (void)fab_run(n->fab);
    const uint32_t posted = receives;
    ck_assert_uint_gt(posted, 0);
    (void)node_step(&w, 0);
    ck_assert_uint_eq(receives, posted);
    n->fab->ops = device.real;
    ck_assert_int_eq(await(&w, 1, 1), 0);
    world_close(&w);
}
END_TEST

static struct {
    const struct fab_qp *qp;
    uint32_t refused, destroyed;
} tries;

static void note_try(void *user, const struct fab_qp *qp, int status)
{
    ck_assert_ptr_eq(user, &tries);
    ck_assert_ptr_eq(qp, tries.qp);
    tries.refused += status != 0;
    tries.destroyed += status == 0;
}

/* With requests out, of which the device goes on with some. */
START_TEST(a_connection_that_is_destroyed_early_is_over_for_its_peer_and_makes_room_for_another)
{
    struct world w = {0};
    w.node[0].config.initiators = w.node[0].config.ahead = 1;
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    fault_set_plan(w.node[0].fab, &(struct fault_plan){.seed = 1, .destroy_error_ppm = 1000000});
    tries.qp = w.node[0].event[1].qp;
    connector_destroy(w.node[0].c, w.node[0].event[1].qp, w.now_ns, note_try, &tries);
    world_run(&w, 5);
    ck_assert_uint_eq(tries.refused, 1);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 1); /* what was out may be repeated still */
    world_run(&w, 100);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0);
    fault_set_plan(w.node[0].fab, &(struct fault_plan){.seed = 1});
    world_run(&w, 2000);
    ck_assert_uint_eq(tries.destroyed, 1);
    ask(&w, 0, 1, 2);
    ck_assert_int_eq(await(&w, 0, 2), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 2), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(connections_come_and_go_where_the_device_brings_none_back)                                   \
    T(handshakes_have_another_queue_pair_when_the_device_does_not_bring_theirs_back)               \
    T(handshakes_go_on_with_another_queue_pair_while_the_device_says_nothing_of_theirs)            \
    T(what_completed_before_a_repair_is_none_of_the_receives_that_are_posted_behind_it)            \
    T(what_the_device_refuses_now_and_then_is_tried_until_all_is_as_before)                        \
    T(a_connection_that_is_destroyed_early_is_over_for_its_peer_and_makes_room_for_another)

KEDGE_CHECK_MAIN("agent.connect.stuck", TESTS)
