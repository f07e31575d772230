/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer: requests that fail though they were executed, since their answers are lost. */
#include "fault_rig.h"

enum { REQUESTS = 12, ROUNDS = 64, TO = 1000 /* the first one's byte */ };

static void rig_cut(struct rig *r, uint64_t seed, bool errors_first)
{
    struct fault_plan plan = {.seed = seed, .cuts = true, .errors_first = errors_first};
    rig_open_with(r, FAB_QP_RC, &plan);
    memcpy(plan.cut, r->fab->caps.gid, sizeof plan.cut);
    fault_set_plan(r->fab, &plan);
}

/* Whether each of so many WRITEs was executed, which all fail. */
static unsigned run_cut(uint64_t seed, uint8_t executed[WRITES])
{
    unsigned n = 0;
    struct rig r;
    rig_cut(&r, seed, false);
    uint8_t *bytes = r.mem.addr;
    bytes[0] = 0xaa;
    for (size_t i = 0; i < WRITES; i++) {
        ck_assert_int_eq(write_to(&r, i, TO + i), 0);
        const struct ibv_wc wc = next_wc(r.cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
        ck_assert_int_eq(fab_qp_state(r.qp), IBV_QPS_ERR);
        executed[i] = bytes[TO + i] == 0xaa;
        n += executed[i];
        connect_both(&r);
    }
    ck_assert_uint_eq(fault_count(r.fab), WRITES);
    rig_close(&r);
    return n;
}

START_TEST(what_is_cut_was_executed_or_not_as_the_seed_says)
{
    uint8_t first[WRITES], again[WRITES], other[WRITES];
    const unsigned n = run_cut(3, first);
    ck_assert_uint_gt(n, WRITES / 4);
    ck_assert_uint_lt(n, WRITES * 3 / 4);
    ck_assert_uint_eq(run_cut(3, again), n);
    ck_assert_mem_eq(first, again, WRITES);
    (void)run_cut(4, other);
    ck_assert(memcmp(first, other, WRITES) != 0);
}
END_TEST

/* A list of WRITEs, of which every third one is signaled. */
static void post_list(struct rig *r, uint64_t n)
{
    struct fab_wr wr[64], *bad;
    struct ibv_sge sge = sge_at(r, 0);
    for (uint64_t i = 0; i < n; i++)
        wr[i] = (struct fab_wr){.wr_id = i,
                                .next = i + 1 < n ? &wr[i + 1] : NULL,
                                .sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = i % 3 == 0 ? IBV_SEND_SIGNALED : 0,
                                .key.rkey = r->mr->rkey,
                                .remote_addr = r->mr->addr + TO + i};
    ck_assert_int_eq(fab_post_send(r->qp, wr, &bad), 0);
}

/* The first fails, all others are flushed, each once and in order. How many were executed, which
 * are the first ones. */
static uint64_t take_list(struct rig *r, uint64_t n)
{
    const uint8_t *bytes = r->mem.addr;
    struct ibv_wc wc;
    uint64_t executed = 0;
    for (uint64_t i = 0; i < n; i++) {
        wc = next_wc(r->cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, i == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
    }
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(fab_poll(r->cq, 1, &wc), 0);
    while (executed < n && bytes[TO + executed] == 0xbb)
        executed++;
    for (uint64_t i = executed; i < n; i++)
        ck_assert_uint_eq(bytes[TO + i], 0);
    return executed;
}

static void run_lists(bool errors_first)
{
    unsigned of[REQUESTS + 1] = {0};
    struct rig r;
    rig_cut(&r, 7, errors_first);
    uint8_t *bytes = r.mem.addr;
    for (int round = 0; round < ROUNDS; round++) {
        memset(bytes, 0, 4096);
        bytes[0] = 0xbb;
        post_list(&r, REQUESTS);
        of[take_list(&r, REQUESTS)]++;
        connect_both(&r);
    }
    ck_assert_uint_gt(of[0], 0); /* the first did not arrive */
    ck_assert_uint_gt(of[1], 0);
    ck_assert_uint_gt(of[2] + of[3] + of[4], 0);
    ck_assert_uint_eq(of[REQUESTS], 0);
    rig_close(&r);
}

START_TEST(of_a_list_the_first_few_were_executed_and_none_behind_them)
{
    run_lists(false);
}
END_TEST

START_TEST(it_is_the_same_where_errors_come_in_the_name_of_the_oldest)
{
    run_lists(true);
}
END_TEST

START_TEST(a_send_queue_that_is_full_has_room_for_it)
{
    struct rig r;
    rig_cut(&r, 7, false);
    uint8_t *bytes = r.mem.addr;
    for (int round = 0; round < ROUNDS; round++) {
        memset(bytes, 0, 4096);
        bytes[0] = 0xbb;
        post_list(&r, r.qp->cap.send_wr);
        (void)take_list(&r, r.qp->cap.send_wr);
        connect_both(&r);
    }
    rig_close(&r);
}
END_TEST

/* Of requests that end well nothing is different, in order, also between those that do not. */
START_TEST(answers_are_lost_at_their_rate)
{
    const struct fault_plan plan = {.seed = 5, .answer_loss_ppm = 100000};
    unsigned failed = 0;
    struct rig r;
    rig_open_with(&r, FAB_QP_RC, &plan);
    uint8_t *bytes = r.mem.addr;
    bytes[0] = 0xcc;
    for (size_t i = 0; i < WRITES; i++) {
        ck_assert_int_eq(write_to(&r, i, TO + i), 0);
        const struct ibv_wc wc = next_wc(r.cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(bytes[TO + i], 0xcc);
        if (wc.status == IBV_WC_SUCCESS)
            continue;
        ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
        failed++;
        connect_both(&r);
    }
    ck_assert_uint_gt(failed, WRITES / 20);
    ck_assert_uint_lt(failed, WRITES / 5);
    ck_assert_uint_eq(fault_count(r.fab), failed);
    rig_close(&r);
}
END_TEST

/* Queue pairs have no room for it then. */
START_TEST(a_layer_that_was_opened_without_a_cut_executes_nothing_that_is_cut_later)
{
    struct fault_plan plan = {.seed = 3, .cuts = true};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    uint8_t *bytes = r.mem.addr;
    bytes[0] = 0xaa;
    memcpy(plan.cut, r.fab->caps.gid, sizeof plan.cut);
    fault_set_plan(r.fab, &plan);
    for (size_t i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(write_to(&r, i, TO), 0);
        ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_RETRY_EXC_ERR);
        ck_assert_uint_eq(bytes[TO], 0);
        connect_both(&r);
    }
    rig_close(&r);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_cut_was_executed_or_not_as_the_seed_says)                                            \
    T(of_a_list_the_first_few_were_executed_and_none_behind_them)                                  \
    T(it_is_the_same_where_errors_come_in_the_name_of_the_oldest)                                  \
    T(a_send_queue_that_is_full_has_room_for_it)                                                   \
    T(answers_are_lost_at_their_rate)                                                              \
    T(a_layer_that_was_opened_without_a_cut_executes_nothing_that_is_cut_later)
KEDGE_CHECK_MAIN("fault_answers", TESTS)
