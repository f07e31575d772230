/* SPDX-License-Identifier: Apache-2.0 */
/* Completion channels: arming, waking once, draining, and the race that arming leaves. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { SOON_MS = 20000, NEVER_MS = 50 };

/* A pair whose CQs are on channels. */
struct bell {
    struct pair p;
    struct fab_chan *chan_a, *chan_b;
    struct fab_cq *cq_a, *cq_b; /* sends of a; receives of b */
    struct fab_qp *qp, *peer;
};

/* 17 s: a receiver that is late uses up rxe's tries (deviations.c), and then nobody is woken. */
static const struct rc_options patient = {.timeout = 22};

static bool bell_open(struct bell *x, const char *test)
{
    if (!nodes_open(&x->p, FAB_RC, test))
        return false;
    x->chan_a = make_chan(x->p.a.fab);
    x->chan_b = make_chan(x->p.b.fab);
    x->cq_a = make_cq(x->p.a.fab, 128, x->chan_a);
    x->cq_b = make_cq(x->p.b.fab, 128, x->chan_b);
    const struct qp_options a = {.send_cq = x->cq_a}, b = {.recv_cq = x->cq_b};
    x->qp = make_qp(&x->p.a, FAB_QP_RC, &a);
    x->peer = make_qp(&x->p.b, FAB_QP_RC, &b);
    bring_to(x->peer, IBV_QPS_RTS, x->p.a.fab->caps.gid, x->qp->qpn, &patient);
    bring_to(x->qp, IBV_QPS_RTS, x->p.b.fab->caps.gid, x->peer->qpn, &patient);
    return true;
}

static void bell_close(struct bell *x)
{
    ck_assert_int_eq(free_qp(x->qp), 0);
    ck_assert_int_eq(free_qp(x->peer), 0);
    ck_assert_int_eq(free_cq(x->cq_a), 0);
    ck_assert_int_eq(free_cq(x->cq_b), 0);
    ck_assert_int_eq(free_chan(x->chan_a), 0);
    ck_assert_int_eq(free_chan(x->chan_b), 0);
    nodes_close(&x->p);
}

static void post(struct bell *x, uint64_t wr_id, enum ibv_wr_opcode opcode, unsigned flags)
{
    struct fab_wr wr = {.wr_id = wr_id, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED | flags};
    struct fab_wr *bad;
    ck_assert_int_eq(fab_post_send(x->qp, &wr, &bad), 0);
}

static void send(struct bell *x, uint64_t wr_id, unsigned flags)
{
    post_recv(x->peer, wr_id, NULL, 0);
    post(x, wr_id, IBV_WR_SEND, flags);
    expect_wc(x->cq_a, wr_id, IBV_WC_SUCCESS);
}

START_TEST(an_armed_queue_wakes_at_its_next_completion)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    for (uint64_t i = 0; i < 5; i++) {
        ck_assert(!fd_is_readable(x.chan_a->fd, NEVER_MS));
        ck_assert_int_eq(fab_arm(x.cq_a, false), 0);
        ck_assert(!fd_is_readable(x.chan_a->fd, NEVER_MS));
        post(&x, i, IBV_WR_RDMA_WRITE, 0);
        ck_assert(fd_is_readable(x.chan_a->fd, SOON_MS));
        fab_chan_drain(x.chan_a);
        expect_wc(x.cq_a, i, IBV_WC_SUCCESS);
    }
    bell_close(&x);
}
END_TEST

/* Who sleeps does not poll: a provider that carries requests out when it is polled has to wake it.
 */
START_TEST(who_sleeps_until_its_queue_wakes_it_hears_of_each_read)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    for (uint64_t i = 0; i < 16; i++) {
        struct ibv_wc wc;
        int n = 0;
        post(&x, i, IBV_WR_RDMA_READ, 0);
        while (n == 0) {
            ck_assert_int_eq(fab_arm(x.cq_a, false), 0);
            n = fab_poll(x.cq_a, 1, &wc);
            if (n != 0)
                break;
            ck_assert(fd_is_readable(x.chan_a->fd, SOON_MS));
            fab_chan_drain(x.chan_a);
        }
        ck_assert(n == 1 && wc.wr_id == i && wc.status == IBV_WC_SUCCESS);
    }
    bell_close(&x);
}
END_TEST

START_TEST(a_receive_wakes_its_queue)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    for (uint64_t i = 0; i < 5; i++) {
        ck_assert_int_eq(fab_arm(x.cq_b, false), 0);
        send(&x, i, 0);
        ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
        fab_chan_drain(x.chan_b);
        ck_assert(!fd_is_readable(x.chan_b->fd, NEVER_MS));
        expect_wc(x.cq_b, i, IBV_WC_SUCCESS);
    }
    bell_close(&x);
}
END_TEST

START_TEST(a_queue_that_is_not_armed_wakes_nobody)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    post(&x, 1, IBV_WR_RDMA_WRITE, 0);
    expect_wc(x.cq_a, 1, IBV_WC_SUCCESS);
    send(&x, 2, 0);
    ck_assert(!fd_is_readable(x.chan_a->fd, NEVER_MS));
    ck_assert(!fd_is_readable(x.chan_b->fd, NEVER_MS));
    bell_close(&x);
}
END_TEST

START_TEST(arming_wakes_once)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    ck_assert_int_eq(fab_arm(x.cq_b, false), 0);
    send(&x, 1, 0);
    ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    fab_chan_drain(x.chan_b);
    send(&x, 2, 0);
    send(&x, 3, 0);
    ck_assert(!fd_is_readable(x.chan_b->fd, NEVER_MS));
    for (uint64_t i = 1; i <= 3; i++)
        expect_wc(x.cq_b, i, IBV_WC_SUCCESS);
    bell_close(&x);
}
END_TEST

START_TEST(the_descriptor_stays_readable_until_it_is_drained)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    ck_assert_int_eq(fab_arm(x.cq_b, false), 0);
    send(&x, 1, 0);
    for (int i = 0; i < 3; i++)
        ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    expect_wc(x.cq_b, 1, IBV_WC_SUCCESS);
    ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    fab_chan_drain(x.chan_b);
    ck_assert(!fd_is_readable(x.chan_b->fd, 0));
    fab_chan_drain(x.chan_b); /* of an empty one: never blocks */
    bell_close(&x);
}
END_TEST

START_TEST(what_came_before_arming_is_found_by_the_poll_after_it)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    for (uint64_t i = 0; i < 20; i++) {
        send(&x, i, 0);
        ck_assert_int_eq(fab_arm(x.cq_b, false), 0);
        expect_wc(x.cq_b, i, IBV_WC_SUCCESS);
        fab_chan_drain(x.chan_b);
    }
    bell_close(&x);
}
END_TEST

START_TEST(armed_for_solicited_ones_it_sleeps_through_the_others)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    ck_assert_int_eq(fab_arm(x.cq_b, true), 0);
    send(&x, 1, 0);
    ck_assert(!fd_is_readable(x.chan_b->fd, NEVER_MS));
    send(&x, 2, IBV_SEND_SOLICITED);
    ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    fab_chan_drain(x.chan_b);
    expect_wc(x.cq_b, 1, IBV_WC_SUCCESS);
    expect_wc(x.cq_b, 2, IBV_WC_SUCCESS);
    bell_close(&x);
}
END_TEST

START_TEST(an_error_wakes_who_waits_for_solicited_ones)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    struct fab_wr wr = {.wr_id = 5,
                        .opcode = IBV_WR_RDMA_READ,
                        .remote_addr = x.p.b.mr->addr,
                        .key.rkey = x.p.b.mr->rkey ^ 0x5a5a00};
    struct ibv_sge sge = sge_of(&x.p.a, 0, 8);
    struct fab_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    post_recv(x.peer, 9, NULL, 0);
    ck_assert_int_eq(fab_arm(x.cq_a, true), 0);
    ck_assert_int_eq(fab_arm(x.cq_b, true), 0);
    ck_assert_int_eq(fab_post_send(x.qp, &wr, &bad), 0);
    ck_assert(fd_is_readable(x.chan_a->fd, SOON_MS));
    expect_wc(x.cq_a, 5, IBV_WC_REM_ACCESS_ERR);
    /* The responder's side broke: its receive flushes, and whoever sleeps there wakes. */
    ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    expect_wc(x.cq_b, 9, IBV_WC_WR_FLUSH_ERR);
    bell_close(&x);
}
END_TEST

START_TEST(a_request_that_waits_wakes_its_queue_when_it_ends)
{
    const struct rc_options few = {.rnr_retry = 4, .min_rnr_timer = 14}; /* 3 x 1 ms */
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    bring_to(x.peer, IBV_QPS_RTS, x.p.a.fab->caps.gid, x.qp->qpn, &few);
    bring_to(x.qp, IBV_QPS_RTS, x.p.b.fab->caps.gid, x.peer->qpn, &few);
    post(&x, 1, IBV_WR_SEND, 0); /* no receive */
    uint64_t deadline = now_ms() + SOON_MS;
    struct ibv_wc wc;
    int n = 0;
    while (n == 0) { /* the loop of a thread that only polls when it is woken */
        ck_assert_int_eq(fab_arm(x.cq_a, false), 0);
        n = fab_poll(x.cq_a, 1, &wc);
        if (n == 0) {
            ck_assert(fd_is_readable(x.chan_a->fd, SOON_MS));
            fab_chan_drain(x.chan_a);
            n = fab_poll(x.cq_a, 1, &wc);
        }
        ck_assert(now_ms() < deadline);
    }
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
    bell_close(&x);
}
END_TEST

START_TEST(two_queues_share_a_channel)
{
    struct bell x;
    if (!bell_open(&x, __func__))
        return;
    struct fab_cq *second = make_cq(x.p.b.fab, 16, x.chan_b);
    const struct qp_options o = {.recv_cq = second};
    struct fab_qp *from = make_qp(&x.p.a, FAB_QP_RC, NULL);
    struct fab_qp *to = make_qp(&x.p.b, FAB_QP_RC, &o);
    bring_to(to, IBV_QPS_RTS, x.p.a.fab->caps.gid, from->qpn, NULL);
    bring_to(from, IBV_QPS_RTS, x.p.b.fab->caps.gid, to->qpn, NULL);
    ck_assert_int_eq(fab_arm(second, false), 0);
    send(&x, 1, 0); /* into the one that is not armed */
    ck_assert(!fd_is_readable(x.chan_b->fd, NEVER_MS));
    struct fab_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    post_recv(to, 2, NULL, 0);
    ck_assert_int_eq(fab_post_send(from, &wr, &bad), 0);
    ck_assert(fd_is_readable(x.chan_b->fd, SOON_MS));
    fab_chan_drain(x.chan_b);
    expect_wc(second, 2, IBV_WC_SUCCESS);
    expect_wc(x.cq_b, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(free_qp(from), 0);
    ck_assert_int_eq(free_qp(to), 0);
    ck_assert_int_eq(free_cq(second), 0);
    bell_close(&x);
}
END_TEST

/* ---- the race */

enum { MESSAGES = 3000 };

static void *send_many(void *arg)
{
    struct bell *x = arg;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct fab_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND}, *bad;
        struct ibv_wc wc;
        wr.send_flags = IBV_SEND_SIGNALED;
        if (fab_post_send(x->qp, &wr, &bad) != 0)
            return NULL;
        while (fab_poll(x->cq_a, 1, &wc) == 0)
            ;
        if (wc.status != IBV_WC_SUCCESS)
            return NULL;
        if (i % 64 == 0)
            usleep(200);
    }
    return arg;
}

/* Arm, poll once more, sleep: nothing is lost between the three. */
START_TEST(a_sleeper_that_arms_and_polls_again_misses_nothing)
{
    struct bell x;
    pthread_t thread;
    void *finished;
    if (!bell_open(&x, __func__))
        return;
    uint64_t posted = 0, taken = 0;
    for (; posted < 30; posted++)
        post_recv(x.peer, posted, NULL, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, send_many, &x), 0);
    while (taken < MESSAGES) {
        struct ibv_wc wc[4];
        int n = fab_poll(x.cq_b, 4, wc);
        if (n == 0) {
            ck_assert_int_eq(fab_arm(x.cq_b, false), 0);
            n = fab_poll(x.cq_b, 4, wc);
        }
        if (n == 0) {
            ck_assert_msg(fd_is_readable(x.chan_b->fd, SOON_MS),
                          "lost the wake-up after %llu; the sender's queue pair is in state %d",
                          (unsigned long long)taken, (int)state_of(x.qp));
            fab_chan_drain(x.chan_b);
        }
        for (int i = 0; i < n; i++) {
            ck_assert_uint_eq(wc[i].wr_id, taken++);
            if (posted < MESSAGES)
                post_recv(x.peer, posted++, NULL, 0);
        }
    }
    pthread_join(thread, &finished);
    ck_assert_ptr_nonnull(finished);
    bell_close(&x);
}
END_TEST

void add_channels(Suite *suite)
{
    TCase *t = conf_case(suite, "channels");
    tcase_add_test(t, an_armed_queue_wakes_at_its_next_completion);
    tcase_add_test(t, who_sleeps_until_its_queue_wakes_it_hears_of_each_read);
    tcase_add_test(t, a_receive_wakes_its_queue);
    tcase_add_test(t, a_queue_that_is_not_armed_wakes_nobody);
    tcase_add_test(t, arming_wakes_once);
    tcase_add_test(t, the_descriptor_stays_readable_until_it_is_drained);
    tcase_add_test(t, what_came_before_arming_is_found_by_the_poll_after_it);
    tcase_add_test(t, armed_for_solicited_ones_it_sleeps_through_the_others);
    tcase_add_test(t, an_error_wakes_who_waits_for_solicited_ones);
    tcase_add_test(t, a_request_that_waits_wakes_its_queue_when_it_ends);
    tcase_add_test(t, two_queues_share_a_channel);
    tcase_add_test(t, a_sleeper_that_arms_and_polls_again_misses_nothing);
}
