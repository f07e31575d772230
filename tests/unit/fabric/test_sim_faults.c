/* SPDX-License-Identifier: Apache-2.0 */
/* Each thing that can go wrong with a simulated device. */
#include <errno.h>
#include <stdlib.h>

#include "../check_main.h"
#include "sim_link.h"

struct two {
    struct sim_net *net;
    struct bed_node a, b;
    struct bed_link l;
    uint64_t waited_ns;
    int64_t ahead_ns; /* of node 0's clock */
    uint32_t told;
};

static void on_wait(void *user, uint32_t node, uint64_t ns)
{
    (void)node;
    ((struct two *)user)->waited_ns += ns;
}

static uint64_t host_ns(void *user, uint32_t node, uint64_t now_ns)
{
    return now_ns + (uint64_t)(node == 0 ? ((struct two *)user)->ahead_ns : 0);
}

static void on_line(void *user, uint32_t node, const char *line)
{
    (void)node;
    ((struct two *)user)->told += line[0] != '\0';
}

static void two_open(struct two *t, const struct sim_device_attr *attr)
{
    struct sim_device_attr mine = *attr;
    const struct sim_hooks hooks = {
        .user = t, .waited = on_wait, .host_ns = host_ns, .told = on_line};
    *t = (struct two){.net = sim_net_new(21, &hooks, 0)};
    bed_open_with(&t->a, t->net, &mine);
    mine.node = 1;
    bed_open_with(&t->b, t->net, &mine);
    bed_link(&t->l, &t->a, &t->b, FAB_QP_RC);
}

static const struct sim_device_attr plain = {.node = 0};

static void two_close(struct two *t)
{
    bed_unlink(&t->l);
    bed_close(&t->a);
    bed_close(&t->b);
    sim_net_free(t->net);
}

static uint32_t register_again(struct bed_node *n)
{
    bed_free(n, FAB_DEREG_MR, n->mr);
    n->mr = bed_register(n);
    return n->mr->rkey;
}

START_TEST(keys_come_back_where_the_device_keeps_them)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        const struct sim_device_attr attr = {.keys_return = keeps};
        struct two t;
        uint32_t same = 0;
        two_open(&t, &attr);
        for (int i = 0; i < 32; i++) {
            const uint32_t before = t.a.mr->rkey;
            same += register_again(&t.a) == before;
        }
        ck_assert(keeps ? same > 20 && same < 32 : same == 0);
        two_close(&t);
    }
}
END_TEST

/* Their numbers come back, and a target that knew one has no doubt about the next. */
START_TEST(a_target_serves_each_initiator_that_has_a_former_ones_number)
{
    enum { LIVES = 64 };
    const struct sim_device_attr attr = {.numbers_return = true};
    struct two t;
    uint32_t last = 0, same = 0;
    two_open(&t, &attr);
    for (int i = 0; i < LIVES; i++) {
        struct bed_link l;
        bed_link(&l, &t.a, &t.b, FAB_QP_DCI);
        same += l.qp->qpn == last;
        last = l.qp->qpn;
        struct bed_request r = bed_request(&l, 7, IBV_WR_RDMA_WRITE, 0, 0, 8);
        ck_assert_int_eq(bed_post(&l, &r), 0);
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_SUCCESS);
        bed_unlink(&l);
    }
    ck_assert_uint_gt(same, LIVES / 4);
    two_close(&t);
}
END_TEST

START_TEST(a_queue_pair_that_breaks_says_so_and_flushes)
{
    struct two t;
    struct fab_event event;
    two_open(&t, &plain);
    struct bed_request r = bed_request(&t.l, 3, IBV_WR_RDMA_WRITE, 0, 0, 8);
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    ck_assert(!sim_fd_is_readable(t.net, fab_event_fd(t.a.fab)));
    ck_assert(sim_device_break_qp(t.a.fab));
    ck_assert(sim_fd_is_readable(t.net, fab_event_fd(t.a.fab)));
    ck_assert_int_eq(fab_get_event(t.a.fab, &event), 1);
    ck_assert(event.type == IBV_EVENT_QP_FATAL && event.qp == t.l.qp);
    ck_assert_int_eq(fab_get_event(t.a.fab, &event), 0);
    const struct ibv_wc wc = bed_wait(&t.a);
    ck_assert(wc.wr_id == 3 && wc.status == IBV_WC_WR_FLUSH_ERR);
    ck_assert(!sim_device_break_qp(t.a.fab)); /* it has no other */
    two_close(&t);
}
END_TEST

/* mlx5's says nothing. */
START_TEST(a_target_that_breaks_takes_nothing_more_whether_it_says_so_or_not)
{
    for (int tells = 0; tells < 2; tells++) {
        struct two t;
        struct bed_link dc;
        struct fab_event event;
        two_open(&t, &plain);
        bed_link(&dc, &t.a, &t.b, FAB_QP_DCI);
        ck_assert_int_eq(bed_do(&dc, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_SUCCESS);
        ck_assert(sim_device_break_target(t.b.fab, tells));
        ck_assert(sim_target_is_silent(t.b.dct));
        ck_assert(!sim_target_is_silent(t.a.dct));
        ck_assert_int_eq(bed_do(&dc, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_RETRY_EXC_ERR);
        ck_assert_int_eq(fab_get_event(t.b.fab, &event), tells);
        ck_assert(!tells || (event.type == IBV_EVENT_QP_FATAL && event.qp == NULL));
        ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_SUCCESS); /* RC */
        ck_assert(!sim_device_break_target(t.b.fab, tells)); /* it has no other */
        bed_unlink(&dc);
        two_close(&t);
    }
}
END_TEST

START_TEST(a_completion_queue_that_overflows_breaks_who_uses_it)
{
    struct two t;
    struct fab_event event;
    struct ibv_wc wc;
    two_open(&t, &plain);
    ck_assert(sim_device_overflow_cq(t.a.fab));
    ck_assert_int_eq(fab_poll(t.a.cq, 1, &wc), -EIO);
    bed_pass(t.net, 1000);
    ck_assert_int_eq(fab_get_event(t.a.fab, &event), 1);
    ck_assert(event.type == IBV_EVENT_CQ_ERR && event.cq == t.a.cq);
    ck_assert_int_eq(fab_get_event(t.a.fab, &event), 1);
    ck_assert(event.type == IBV_EVENT_QP_FATAL && event.qp == t.l.qp);
    ck_assert_int_eq(fab_qp_state(t.l.qp), IBV_QPS_ERR);
    two_close(&t);
}
END_TEST

/* Of changes of state that fail some are carried out, as when the answer of a command is lost. */
START_TEST(creations_are_refused_and_operations_fail_and_frees_do_not)
{
    enum { QPS = 32 };
    static const struct sim_faults all = {.create_refused_ppm = 1000000,
                                          .control_error_ppm = 1000000,
                                          .post_refused_ppm = 1000000},
                                   none = {.control_ns = 0};
    struct two t;
    struct fab_ctl c = {.kind = FAB_ALLOC_PD};
    struct fab_qp *qp[QPS];
    uint32_t carried_out = 0;
    two_open(&t, &plain);
    for (int i = 0; i < QPS; i++) {
        qp[i] = bed_qp(&t.a, FAB_QP_DCI);
        bed_connect(qp[i], t.b.fab->caps.gid, 0, 1);
    }
    struct bed_request r = bed_request(&t.l, 3, IBV_WR_RDMA_WRITE, 0, 0, 8);
    sim_device_set_faults(t.a.fab, &all);
    ck_assert_int_eq(fab_call(t.a.fab, &c), -ENOMEM);
    const struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
    for (int i = 0; i < QPS; i++) {
        ck_assert_int_eq(bed_modify(qp[i], &err, IBV_QP_STATE), -EIO);
        const enum ibv_qp_state state = fab_qp_state(qp[i]);
        ck_assert(state == IBV_QPS_RTS || state == IBV_QPS_ERR);
        carried_out += state == IBV_QPS_ERR;
        bed_free(&t.a, FAB_DESTROY_QP, qp[i]);
    }
    ck_assert(carried_out > QPS / 8 && carried_out < QPS - QPS / 8);
    ck_assert_int_eq(fab_qp_state(t.l.qp), IBV_QPS_RTS);
    ck_assert_int_eq(bed_post(&t.l, &r), -ENOMEM);
    bed_free(&t.a, FAB_DESTROY_AH, t.l.ah);
    t.l.ah = NULL;
    sim_device_set_faults(t.a.fab, &none);
    two_close(&t);
}
END_TEST

START_TEST(requests_break_their_queue_pair_at_a_rate)
{
    static const struct sim_faults often = {.break_ppm = 100000};
    struct two t;
    int whole = 0;
    two_open(&t, &plain);
    sim_device_set_faults(t.a.fab, &often);
    while (bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 0, 8) == IBV_WC_SUCCESS)
        whole++;
    ck_assert_int_lt(whole, 100);
    ck_assert_int_eq(fab_qp_state(t.l.qp), IBV_QPS_ERR);
    ck_assert_int_eq(fab_qp_state(t.l.peer), IBV_QPS_RTS); /* the other side knows nothing */
    two_close(&t);
}
END_TEST

/* Its objects go at once, what is on its way arrives, and a node that starts again under the same
 * GID has other numbers and keys. */
START_TEST(a_node_that_crashes_is_silent_and_one_that_starts_again_is_another_one)
{
    struct two t;
    struct bed_node again;
    two_open(&t, &plain);
    const uint32_t key = t.b.mr->rkey;
    uint8_t gid[16];
    memcpy(gid, t.b.fab->caps.gid, 16);
    struct bed_request r = bed_request(&t.l, 1, IBV_WR_RDMA_READ, 0, 0, 64);
    struct fab_ctl never = {.kind = FAB_QUERY_PORT};
    fab_submit(t.b.fab, &never); /* nobody hears of it */
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    sim_device_crash(t.b.fab);
    bed_pass(t.net, 1000000);
    bed_open(&again, t.net, 1);
    ck_assert_mem_eq(again.fab->caps.gid, gid, 16);
    ck_assert_uint_ne(again.mr->rkey, key);
    ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(never.status, -EINPROGRESS);
    bed_free(&t.a, FAB_DESTROY_QP, t.l.qp);
    bed_free(&t.a, FAB_DESTROY_AH, t.l.ah);
    bed_close(&t.a);
    bed_close(&again);
    sim_net_free(t.net);
}
END_TEST

/* A WRITE that left before its initiator died is executed after. */
START_TEST(a_packet_of_a_dead_node_arrives)
{
    static const struct sim_link slow = {.delay_ns = 10000000};
    struct two t;
    two_open(&t, &plain);
    ck_assert_int_eq(sim_link_set(t.net, 0, 1, &slow), 0);
    memset(t.a.bytes, 9, 8);
    struct bed_request r = bed_request(&t.l, 1, IBV_WR_RDMA_WRITE, 0, 0, 8);
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    bed_pass(t.net, 5000000);
    ck_assert_uint_eq(t.b.bytes[0], 0);
    sim_device_crash(t.a.fab);
    while (sim_net_step(t.net))
        ;
    ck_assert_uint_eq(t.b.bytes[0], 9);
    bed_free(&t.b, FAB_DESTROY_QP, t.l.peer);
    bed_close(&t.b);
    sim_net_free(t.net);
}
END_TEST

START_TEST(a_host_that_sleeps_does_nothing_and_goes_on)
{
    struct two t;
    struct ibv_wc wc;
    two_open(&t, &plain);
    struct bed_request r = bed_request(&t.l, 1, IBV_WR_RDMA_WRITE, 0, 0, 8);
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    sim_device_suspend(t.a.fab, true);
    bed_pass(t.net, 10000000000);
    ck_assert_int_eq(fab_poll(t.a.cq, 1, &wc), 0);
    ck_assert_uint_eq(sim_net_next_due(t.net), SIM_NEVER);
    sim_device_suspend(t.a.fab, false);
    ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_SUCCESS);
    sim_device_suspend(t.b.fab, true); /* what arrives there is lost */
    ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_RETRY_EXC_ERR);
    sim_device_suspend(t.b.fab, false);
    two_close(&t);
}
END_TEST

START_TEST(a_port_goes_down_with_an_event_and_comes_back)
{
    struct two t;
    struct fab_event event;
    two_open(&t, &plain);
    struct fab_ctl c = {.kind = FAB_QUERY_ADDRESS};
    sim_device_set_port(t.b.fab, false);
    ck_assert_int_eq(fab_get_event(t.b.fab, &event), 1);
    ck_assert_int_eq(event.type, IBV_EVENT_PORT_ERR);
    ck_assert_int_eq(fab_call(t.b.fab, &c), 0);
    ck_assert(!c.address.now.active);
    ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_RETRY_EXC_ERR);
    sim_device_set_port(t.b.fab, true);
    ck_assert_int_eq(fab_get_event(t.b.fab, &event), 1);
    ck_assert_int_eq(event.type, IBV_EVENT_PORT_ACTIVE);
    two_close(&t);
    ck_assert_uint_gt(t.told, 3);
}
END_TEST

/* Against the clock of its host, which may be wrong. */
START_TEST(what_comes_too_late_by_its_hosts_clock_is_not_posted)
{
    struct two t;
    two_open(&t, &plain);
    struct bed_request r = bed_request(&t.l, 1, IBV_WR_RDMA_READ, 0, 0, 8);
    r.wr.key.not_after_ns = sim_net_now(t.net) + 1000;
    ck_assert(t.a.fab->caps.posts_in_time);
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    t.ahead_ns = 2000;
    ck_assert_int_eq(bed_post(&t.l, &r), -ETIME);
    t.ahead_ns = -1000000;
    bed_pass(t.net, 100000);
    ck_assert_int_eq(bed_post(&t.l, &r), 0);
    two_close(&t);
}
END_TEST

START_TEST(a_wait_takes_its_threads_time_and_nobody_elses)
{
    struct two t;
    two_open(&t, &plain);
    const uint64_t now = sim_net_now(t.net), waited = t.waited_ns;
    for (int i = 0; i < 20; i++)
        (void)register_again(&t.a);
    ck_assert_uint_eq(sim_net_now(t.net), now);
    ck_assert_uint_gt(t.waited_ns, waited + 20000);
    two_close(&t);
}
END_TEST

START_TEST(a_device_counts_its_objects_and_does_not_close_before_they_are_gone)
{
    struct two t;
    two_open(&t, &plain);
    ck_assert_uint_eq(sim_device_objects(t.a.fab), 9);
    ck_assert_int_eq(fab_close(t.a.fab), -EBUSY);
    const struct sim_device_attr same = {.node = 0};
    struct base_errbuf err;
    struct fab *fab;
    ck_assert_int_eq(sim_device_open(t.net, &same, &fab, &err), -EADDRINUSE);
    two_close(&t);
}
END_TEST

START_TEST(a_reset_may_be_final)
{
    const struct sim_device_attr attr = {.resets_are_final = true};
    struct two t;
    two_open(&t, &attr);
    bed_to(t.l.qp, IBV_QPS_RESET);
    struct ibv_qp_attr a = fab_init_attr(t.a.fab);
    ck_assert_int_eq(
        bed_modify(t.l.qp, &a,
                   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
        -EINVAL);
    two_close(&t);
}
END_TEST

/* The longest of 100 WRITEs. */
static uint64_t slowest_write(const struct sim_device_attr *attr, uint64_t seed)
{
    struct two t = {.net = sim_net_new(seed, NULL, 0)};
    uint64_t slowest_ns = 0;
    bed_open_with(&t.a, t.net, attr);
    bed_open(&t.b, t.net, 1);
    bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
    for (int i = 0; i < 100; i++) {
        const uint64_t begun_ns = sim_net_now(t.net);
        ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 0, 8), IBV_WC_SUCCESS);
        const uint64_t ns = sim_net_now(t.net) - begun_ns;
        slowest_ns = ns > slowest_ns ? ns : slowest_ns;
    }
    two_close(&t);
    return slowest_ns;
}

START_TEST(what_a_device_claims_of_its_doorbells_is_true_unless_it_is_told_otherwise)
{
    const struct sim_device_attr honest = {.slack_ns = 1000000};
    const struct sim_device_attr liar = {.slack_ns = 1000000, .true_slack_ns = 50000000};
    uint32_t slow = 0, quick = 0, beyond = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        const uint64_t ns = slowest_write(&honest, seed);
        ck_assert_uint_lt(ns, 1000000 + 100000);
        slow += ns > 700000;
        quick += ns < 300000;
        beyond += slowest_write(&liar, seed) > 2000000;
    }
    ck_assert(slow > 20 && quick > 5 && beyond > 80);
}
END_TEST

/* How long a WRITE is tried that nobody answers. */
static uint64_t give_up(const struct sim_device_attr *attr, uint64_t seed, uint64_t *bound_ns)
{
    static const struct sim_link cut = {.cut = true};
    struct two t = {.net = sim_net_new(seed, NULL, 0)};
    bed_open_with(&t.a, t.net, attr);
    bed_open(&t.b, t.net, 1);
    bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
    *bound_ns = fab_bound_ns(&t.a.fab->caps, BED_TIMEOUT, 7);
    ck_assert_int_eq(sim_link_set(t.net, 0, 1, &cut), 0);
    const uint64_t begun_ns = sim_net_now(t.net);
    ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 0, 8), IBV_WC_RETRY_EXC_ERR);
    const uint64_t ns = sim_net_now(t.net) - begun_ns;
    two_close(&t);
    return ns;
}

START_TEST(what_a_device_claims_of_its_time_outs_is_true_unless_it_is_told_otherwise)
{
    const struct sim_device_attr honest = {.timeout_stretch = 4};
    const struct sim_device_attr liar = {.timeout_stretch = 1, .true_stretch = 40};
    uint32_t beyond = 0;
    uint64_t bound_ns;
    for (uint64_t seed = 0; seed < 100; seed++) {
        ck_assert_uint_le(give_up(&honest, seed, &bound_ns), bound_ns);
        beyond += give_up(&liar, seed, &bound_ns) > bound_ns;
    }
    ck_assert_uint_gt(beyond, 50);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(keys_come_back_where_the_device_keeps_them)                                                  \
    T(a_target_serves_each_initiator_that_has_a_former_ones_number)                                \
    T(a_queue_pair_that_breaks_says_so_and_flushes)                                                \
    T(a_target_that_breaks_takes_nothing_more_whether_it_says_so_or_not)                           \
    T(a_completion_queue_that_overflows_breaks_who_uses_it)                                        \
    T(creations_are_refused_and_operations_fail_and_frees_do_not)                                  \
    T(requests_break_their_queue_pair_at_a_rate)                                                   \
    T(a_node_that_crashes_is_silent_and_one_that_starts_again_is_another_one)                      \
    T(a_packet_of_a_dead_node_arrives)                                                             \
    T(a_host_that_sleeps_does_nothing_and_goes_on)                                                 \
    T(a_port_goes_down_with_an_event_and_comes_back)                                               \
    T(what_comes_too_late_by_its_hosts_clock_is_not_posted)                                        \
    T(a_wait_takes_its_threads_time_and_nobody_elses)                                              \
    T(a_device_counts_its_objects_and_does_not_close_before_they_are_gone)                         \
    T(what_a_device_claims_of_its_doorbells_is_true_unless_it_is_told_otherwise)                   \
    T(what_a_device_claims_of_its_time_outs_is_true_unless_it_is_told_otherwise)                   \
    T(a_reset_may_be_final)

KEDGE_CHECK_MAIN("fabric.sim_faults", TESTS)
