/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a net with a cost model: what they do takes what the card takes, and what they do is
 * what it was. */
#include <stdio.h>

#include "../check_main.h"
#include "fabric/model.h"
#include "sim_link.h"

enum { TARGETS = 10 };

static struct sim_net *net_of(uint64_t seed, const char *preset)
{
    struct sim_net *net = sim_net_new(seed, NULL, 0);
    if (preset != NULL)
        sim_net_set_model(net, fab_model_find(preset));
    return net;
}

static const struct fab_model_counters *counters_of(const struct bed_node *n)
{
    ck_assert_ptr_nonnull(n->fab->model);
    return &n->fab->model->counters;
}

static void bed_two(struct bed_node n[2], struct bed_link *l, struct sim_net *net,
                    enum fab_qp_type type)
{
    bed_open(&n[0], net, 0);
    bed_open(&n[1], net, 1);
    bed_link(l, &n[0], &n[1], type);
}

static void close_two(struct bed_node n[2], struct bed_link *l, struct sim_net *net)
{
    bed_unlink(l);
    bed_close(&n[0]);
    bed_close(&n[1]);
    sim_net_free(net);
}

START_TEST(a_device_without_a_model_says_so)
{
    struct bed_node n;
    struct sim_net *net = net_of(1, NULL);
    bed_open(&n, net, 0);
    ck_assert_ptr_null(n.fab->model);
    bed_close(&n);
    sim_net_free(net);
}
END_TEST

static uint64_t time_read(uint64_t seed, enum fab_qp_type type)
{
    struct bed_node n[2];
    struct bed_link l;
    struct sim_net *net = net_of(seed, "connectx-4");
    bed_two(n, &l, net, type);
    ck_assert_str_eq(n[0].fab->model->preset, "connectx-4");
    (void)bed_do(&l, IBV_WR_RDMA_READ, 0, 0, 8); /* the first connects a DCI */
    for (int i = 0; i < 8; i++)
        n[1].bytes[i] = (uint8_t)(i + 1);
    const uint64_t before = sim_net_now(net);
    ck_assert_int_eq(bed_do(&l, IBV_WR_RDMA_READ, 64, 0, 8), IBV_WC_SUCCESS);
    const uint64_t took = sim_net_now(net) - before;
    ck_assert_int_eq(memcmp(n[0].bytes + 64, n[1].bytes, 8), 0);
    close_two(n, &l, net);
    return took;
}

/* KRCore 5.2: 2.15 us, and 3.24 with DC where RC has 3.15; whatever the seed. */
START_TEST(a_read_takes_what_the_card_takes)
{
    const uint64_t rc = time_read(1, FAB_QP_RC), dc = time_read(1, FAB_QP_DCI);
    printf("a READ of 8 bytes by RC: paper 2.15 us, model %.2f; DC: paper + 0.09, model + %.2f\n",
           (double)rc / 1e3, ((double)dc - (double)rc) / 1e3);
    ck_assert_uint_ge(rc, 2110);
    ck_assert_uint_le(rc, 2190);
    ck_assert_uint_ge(dc, rc + 60);
    ck_assert_uint_le(dc, rc + 120);
    ck_assert_uint_eq(time_read(77, FAB_QP_RC), rc);
}
END_TEST

/* KRCore 5.3, figure 14a: 64 READs to 10 targets by one DCI take 99 us. */
START_TEST(a_dci_goes_from_target_to_target)
{
    static struct bed_node n[1 + TARGETS];
    struct bed_link l[TARGETS];
    struct base_prng prng;
    struct sim_net *net = net_of(5, "connectx-4");
    for (uint32_t i = 0; i <= TARGETS; i++)
        bed_open(&n[i], net, i);
    for (uint32_t i = 0; i < TARGETS; i++)
        bed_link(&l[i], &n[0], &n[1 + i], FAB_QP_DCI);
    base_prng_seed(&prng, 3);
    const uint64_t before = sim_net_now(net);
    struct fab_qp *one = l[0].qp;
    for (uint32_t i = 0; i < 64; i++) {
        struct bed_link to = l[base_prng_below(&prng, TARGETS)];
        struct bed_request r = bed_request(&to, i, IBV_WR_RDMA_READ, 8 * i, 0, 8);
        to.qp = one;
        ck_assert_int_eq(bed_post(&to, &r), 0);
    }
    for (uint32_t i = 0; i < 64; i++)
        ck_assert_int_eq(bed_wait(&n[0]).status, IBV_WC_SUCCESS);
    const double took_us = (double)(sim_net_now(net) - before) / 1e3;
    printf("64 READs to 10 targets by one DCI: paper 99 us, model %.1f us, %llu reconnects\n",
           took_us, (unsigned long long)counters_of(&n[0])->reconnects);
    ck_assert_double_ge(took_us, 99 * 0.85);
    ck_assert_double_le(took_us, 99 * 1.15);
    ck_assert_uint_ge(counters_of(&n[0])->reconnects, 50);
    for (uint32_t i = 0; i < TARGETS; i++)
        bed_unlink(&l[i]);
    for (uint32_t i = 0; i <= TARGETS; i++)
        bed_close(&n[i]);
    sim_net_free(net);
}
END_TEST

START_TEST(what_was_posted_is_counted)
{
    struct bed_node n[2];
    struct bed_link l;
    struct bed_request r[3];
    struct fab_wr *bad;
    struct sim_net *net = net_of(2, "connectx-3");
    bed_two(n, &l, net, FAB_QP_RC);
    for (uint32_t i = 0; i < 3; i++) {
        r[i] = bed_request(&l, i, IBV_WR_RDMA_WRITE, 4096 * i, 4096 * i, 4096);
        r[i].wr.sg_list = &r[i].sge;
        r[i].wr.next = i < 2 ? &r[i + 1].wr : NULL;
    }
    r[0].wr.send_flags = 0;
    memset(n[0].bytes, 0x5a, 3 * 4096);
    ck_assert_int_eq(fab_post_send(l.qp, &r[0].wr, &bad), 0);
    ck_assert_uint_eq(bed_wait(&n[0]).wr_id, 1);
    ck_assert_uint_eq(bed_wait(&n[0]).wr_id, 2);
    ck_assert_int_eq(bed_do(&l, IBV_WR_RDMA_READ, 0, 0, 8), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(n[0].bytes, n[1].bytes, 3 * 4096), 0);
    const struct fab_model_counters *c = counters_of(&n[0]);
    ck_assert_uint_eq(c->work_requests, 4);
    ck_assert_uint_eq(c->doorbells, 2);
    ck_assert_uint_eq(c->bytes, 3 * 4096 + 8);
    ck_assert_uint_eq(c->cqes, 3);
    ck_assert_uint_eq(c->most_ops, 3);
    ck_assert_uint_eq(counters_of(&n[1])->served, 4);
    close_two(n, &l, net);
}
END_TEST

/* A completion is seen when the card has written it, by who polls and by who sleeps. */
START_TEST(a_completion_wakes_when_it_can_be_polled)
{
    struct bed_node n[2];
    struct bed_link l;
    struct ibv_wc wc;
    struct sim_net *net = net_of(3, "connectx-3");
    bed_two(n, &l, net, FAB_QP_RC);
    struct bed_request r = bed_request(&l, 9, IBV_WR_RDMA_WRITE, 0, 0, 8);
    ck_assert_int_eq(fab_arm(n[0].cq, false), 0);
    ck_assert_int_eq(bed_post(&l, &r), 0);
    while (!sim_fd_is_readable(net, n[0].chan->fd)) {
        ck_assert_int_eq(fab_poll(n[0].cq, 1, &wc), 0);
        ck_assert(sim_net_step(net));
    }
    ck_assert_int_eq(fab_poll(n[0].cq, 1, &wc), 1);
    ck_assert_uint_eq(wc.wr_id, 9);
    close_two(n, &l, net);
}
END_TEST

/* Nothing of a queue pair that broke or was reset is out any more. */
START_TEST(a_reset_leaves_nothing_out)
{
    struct bed_node n[2];
    struct bed_link l;
    struct sim_net *net = net_of(4, "connectx-3");
    bed_two(n, &l, net, FAB_QP_RC);
    for (uint32_t i = 0; i < 8; i++) {
        struct bed_request r = bed_request(&l, i, IBV_WR_RDMA_WRITE, 0, 0, 4096);
        ck_assert_int_eq(bed_post(&l, &r), 0);
    }
    bed_to(l.qp, IBV_QPS_RESET);
    bed_to(l.peer, IBV_QPS_RESET);
    bed_link_up(&l, 300);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(bed_do(&l, IBV_WR_RDMA_WRITE, 0, 0, 4096), IBV_WC_SUCCESS);
    ck_assert_uint_eq(counters_of(&n[0])->most_ops, 8);
    struct bed_request r = bed_request(&l, 5, IBV_WR_RDMA_WRITE, 0, BED_BYTES, 8);
    ck_assert_int_eq(bed_post(&l, &r), 0);
    ck_assert_int_eq(bed_wait(&n[0]).status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(fab_qp_state(l.qp), IBV_QPS_ERR);
    close_two(n, &l, net);
}
END_TEST

/* Messages and datagrams go on as ever, and are charged. */
START_TEST(messages_are_charged)
{
    struct bed_node n[2];
    struct bed_link l;
    struct sim_net *net = net_of(6, "connect-ib");
    bed_two(n, &l, net, FAB_QP_RC);
    struct ibv_sge into = {.addr = n[1].mr->addr + 4096, .length = 64, .lkey = n[1].mr->lkey};
    struct fab_recv_wr receive = {.wr_id = 7, .sg_list = &into, .num_sge = 1}, *bad;
    ck_assert_int_eq(fab_post_srq_recv(n[1].srq, &receive, &bad), 0);
    memcpy(n[0].bytes, "a message", 10);
    ck_assert_int_eq(bed_do(&l, IBV_WR_SEND, 0, 0, 10), IBV_WC_SUCCESS);
    ck_assert_uint_eq(bed_wait(&n[1]).wr_id, 7);
    ck_assert_str_eq((const char *)n[1].bytes + 4096, "a message");
    ck_assert_uint_eq(counters_of(&n[1])->served, 1);
    ck_assert_uint_eq(counters_of(&n[1])->cqes, 1);
    close_two(n, &l, net);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_device_without_a_model_says_so)                                                            \
    X(a_read_takes_what_the_card_takes)                                                            \
    X(a_dci_goes_from_target_to_target)                                                            \
    X(what_was_posted_is_counted)                                                                  \
    X(a_completion_wakes_when_it_can_be_polled)                                                    \
    X(a_reset_leaves_nothing_out)                                                                  \
    X(messages_are_charged)

KEDGE_CHECK_MAIN("sim model", TESTS)
