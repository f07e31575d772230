/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair number has several lives: RESET, or another queue pair that gets it. What a lane
 * polls while a worker ends one of them belongs to that one, and to no later one. */
#include <pthread.h>
#include <stdatomic.h>

#include "../check_main.h"
#include "base/random.h"
#include "dc_bed.h"

enum { ROOM = 4, ROUNDS = 3000 };

struct bed {
    struct dc_bed b;
    struct fab_qp *qp;
    struct fab_ah *ah;
};

static struct bed x;

static void open_bed(void)
{
    dc_bed_open(&x.b);
    x.b.f->base.caps.transports |= FAB_DC;
    x.qp = dc_bed_dci(&x.b, ROOM);
    x.ah = dc_bed_ah(&x.b, 1);
    dc_bed_bring_up(&x.b, x.qp);
}

static void close_bed(void)
{
    dc_bed_free_ah(&x.b, x.ah);
    dc_bed_free_dci(&x.b, x.qp);
    dc_bed_close(&x.b);
}

static int post_one(uint64_t id)
{
    static const struct ibv_sge sge = {.addr = 4096, .length = 8, .lkey = 77};
    struct fab_wr *bad, wr = {.wr_id = id,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED,
                              .ah = x.ah,
                              .dest_qpn = 300};
    return fab_post_send(x.qp, &wr, &bad);
}

static void completes(uint32_t n, enum ibv_wc_status status)
{
    fake_completes(((struct verbs_qp *)x.qp)->qp, n, status);
}

static int poll(struct ibv_wc *wc)
{
    return fab_poll(&x.b.vcq.base, ROOM, wc);
}

/* The worker comes in between: after the lane took completions from the device, and before it has
 * noted them. */
static int poll_and_be_reset(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = fake_poll(cq, n, wc);
    if (got > 0)
        dc_bed_bring_up(&x.b, x.qp);
    return got;
}

static void begins_empty(void)
{
    struct ibv_wc wc[ROOM];
    for (int i = 0; i < ROOM; i++)
        ck_assert_int_eq(post_one(10), 0);
    ck_assert_int_eq(post_one(10), -ENOMEM);
    completes(ROOM, IBV_WC_SUCCESS);
    ck_assert_int_eq(poll(wc), ROOM);
    ck_assert_int_eq(fab_qp_state(x.qp), IBV_QPS_RTS);
}

/* Of n requests of the former life, the last of which ends so. */
static void what_is_polled_across_a_reset_is_dropped(uint32_t n, enum ibv_wc_status last)
{
    struct ibv_wc wc[ROOM];
    open_bed();
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(post_one(i), 0);
    completes(n, last);
    x.b.context.ops.poll_cq = poll_and_be_reset;
    ck_assert_int_eq(poll(wc), 0);
    x.b.context.ops.poll_cq = fake_poll;
    begins_empty();
    close_bed();
}

START_TEST(a_success_of_the_life_before_gives_no_room_in_the_present_one)
{
    what_is_polled_across_a_reset_is_dropped(2, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(an_error_of_the_life_before_does_not_break_the_present_one)
{
    what_is_polled_across_a_reset_is_dropped(2, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

/* Who is given none arms the CQ, or has done so, and sleeps. */
START_TEST(completions_that_are_dropped_do_not_hide_those_behind_them)
{
    struct ibv_wc wc[ROOM];
    open_bed();
    struct fab_qp *first = x.qp, *second = dc_bed_dci(&x.b, ROOM);
    dc_bed_bring_up(&x.b, second);
    for (uint64_t i = 0; i < ROOM; i++)
        ck_assert_int_eq(post_one(i), 0);
    completes(ROOM, IBV_WC_SUCCESS);
    x.qp = second;
    ck_assert_int_eq(post_one(77), 0);
    completes(1, IBV_WC_SUCCESS);
    x.qp = first;
    x.b.context.ops.poll_cq = poll_and_be_reset;
    ck_assert_int_eq(poll(wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 77);
    x.b.context.ops.poll_cq = fake_poll;
    ck_assert_int_eq(poll(wc), 0);
    dc_bed_free_dci(&x.b, second);
    close_bed();
}
END_TEST

START_TEST(a_queue_pair_that_gets_the_number_of_another_has_none_of_its_completions)
{
    struct ibv_wc wc[ROOM];
    open_bed();
    ck_assert_int_eq(post_one(1), 0);
    completes(1, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(poll(wc), 1);
    ck_assert_int_eq(wc[0].status, IBV_WC_RETRY_EXC_ERR);
    dc_bed_free_dci(&x.b, x.qp);
    fake.next_number--;
    x.qp = dc_bed_dci(&x.b, ROOM);
    dc_bed_bring_up(&x.b, x.qp);
    begins_empty();
    close_bed();
}
END_TEST

/* The number's next owner, which is no queue pair of ours. */
static uint32_t number;

static int poll_one_of_another(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq, (void)n;
    x.b.context.ops.poll_cq = fake_poll;
    *wc = (struct ibv_wc){.wr_id = 55, .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .qp_num = number};
    return 1;
}

START_TEST(a_dct_that_gets_the_number_of_a_dci_with_streams_has_its_own_completions)
{
    struct ibv_wc wc[ROOM];
    dc_bed_open(&x.b);
    fake.log_streams = x.b.f->dc.log_streams = 2;
    x.b.f->base.caps.transports |= FAB_DC;
    struct fab_qp *dci = dc_bed_dci(&x.b, ROOM);
    number = dci->qpn;
    dc_bed_free_dci(&x.b, dci);
    x.b.context.ops.poll_cq = poll_one_of_another;
    ck_assert_int_eq(poll(wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 55);
    dc_bed_close(&x.b);
}
END_TEST

static int poll_and_be_destroyed(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = fake_poll(cq, n, wc);
    if (got > 0)
        dc_bed_free_dci(&x.b, x.qp);
    return got;
}

START_TEST(what_is_polled_while_its_queue_pair_is_destroyed_is_dropped)
{
    struct ibv_wc wc[ROOM];
    for (uint8_t streams = 0; streams <= 2; streams += 2) {
        dc_bed_open(&x.b);
        fake.log_streams = x.b.f->dc.log_streams = streams;
        x.b.f->base.caps.transports |= FAB_DC;
        x.qp = dc_bed_dci(&x.b, ROOM);
        x.ah = dc_bed_ah(&x.b, 1);
        dc_bed_bring_up(&x.b, x.qp);
        ck_assert_int_eq(post_one(7), 0);
        completes(1, IBV_WC_SUCCESS);
        x.b.context.ops.poll_cq = poll_and_be_destroyed;
        ck_assert_int_eq(poll(wc), 0);
        x.b.context.ops.poll_cq = fake_poll;
        dc_bed_free_ah(&x.b, x.ah);
        dc_bed_close(&x.b);
    }
}
END_TEST

static enum ibv_qp_state said;
static int queries;

static int count_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                       struct ibv_qp_init_attr *init)
{
    queries++;
    return fake_query_qp(qp, attr, mask, init);
}

/* The control thread hears of an error while the device's object is going. */
static int destroy_and_be_asked(struct ibv_qp *qp)
{
    said = verbs_qp_state(x.qp);
    return fake_destroy_qp(qp);
}

static int refuse_and_be_asked(struct ibv_qp *qp)
{
    (void)qp;
    said = verbs_qp_state(x.qp);
    return EBUSY;
}

START_TEST(a_queue_pair_that_is_being_destroyed_is_not_asked_for_its_state)
{
    open_bed();
    struct verbs_calls *calls = &x.b.f->dc.calls;
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp = {.x = x.qp}};
    calls->query_qp = count_query;
    calls->destroy_qp = refuse_and_be_asked;
    ck_assert_int_eq(verbs_qp_destroy(x.b.f, &ctl), -EBUSY);
    ck_assert_int_eq(said, IBV_QPS_ERR);
    ck_assert_int_eq(queries, 0);
    ck_assert_int_eq(verbs_qp_state(x.qp), IBV_QPS_RTS); /* it is there still */
    ck_assert_int_eq(queries, 1);
    calls->destroy_qp = destroy_and_be_asked;
    close_bed();
    ck_assert_int_eq(queries, 1);
}
END_TEST

static struct fab_qp *going;

/* The device answers when another queue pair has gone, or never. */
static int answer_behind_destruction(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                                     struct ibv_qp_init_attr *init)
{
    if (going != NULL)
        dc_bed_free_dci(&x.b, going);
    going = NULL;
    return fake_query_qp(qp, attr, mask, init);
}

START_TEST(a_question_that_is_not_answered_keeps_no_other_queue_pair_from_going)
{
    open_bed();
    going = dc_bed_dci(&x.b, ROOM);
    x.b.f->dc.calls.query_qp = answer_behind_destruction;
    ck_assert_int_eq(verbs_qp_state(x.qp), IBV_QPS_RTS);
    ck_assert_ptr_null(going);
    x.b.f->dc.calls.query_qp = fake_query_qp;
    close_bed();
}
END_TEST

/* ---- the same with threads that race, for the thread sanitizer */

static _Atomic uint32_t polling, reset_done; /* rounds */

static int poll_in_company(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    static struct base_prng prng = {.state = 5};
    int got = fake_poll(cq, n, wc);
    if (got == 0)
        return 0;
    const uint32_t round = atomic_fetch_add(&polling, 1) + 1; /* from now on the worker may come */
    const uint64_t until = base_prng_below(&prng, 3);
    for (uint64_t i = base_prng_below(&prng, 400); until == 1 && i > 0; i--)
        atomic_signal_fence(memory_order_seq_cst);
    while (until == 2 && atomic_load(&reset_done) < round)
        sched_yield();
    return got;
}

static void *reset_again_and_again(void *unused)
{
    (void)unused;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&polling) < round)
            sched_yield();
        dc_bed_bring_up(&x.b, x.qp);
        fake.trace[0] = '\0';
        atomic_store(&reset_done, round);
    }
    return NULL;
}

START_TEST(a_reset_at_any_moment_of_a_poll_leaves_an_empty_queue)
{
    pthread_t worker;
    struct ibv_wc wc[ROOM];
    uint32_t dropped = 0;
    open_bed();
    ck_assert_int_eq(pthread_create(&worker, NULL, reset_again_and_again, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        ck_assert_int_eq(post_one(1), 0);
        ck_assert_int_eq(post_one(2), 0);
        completes(2, round % 2 == 0 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        x.b.context.ops.poll_cq = poll_in_company;
        dropped += 2 - (uint32_t)poll(wc);
        x.b.context.ops.poll_cq = fake_poll;
        while (atomic_load(&reset_done) < round)
            sched_yield();
        begins_empty();
        dc_bed_bring_up(&x.b, x.qp);
        fake.trace[0] = '\0';
    }
    ck_assert_int_eq(pthread_join(worker, NULL), 0);
    printf("%u of %u completions were of a life that ended meanwhile\n", dropped, 2 * ROUNDS);
    close_bed();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_success_of_the_life_before_gives_no_room_in_the_present_one)                               \
    T(an_error_of_the_life_before_does_not_break_the_present_one)                                  \
    T(completions_that_are_dropped_do_not_hide_those_behind_them)                                  \
    T(a_queue_pair_that_gets_the_number_of_another_has_none_of_its_completions)                    \
    T(a_dct_that_gets_the_number_of_a_dci_with_streams_has_its_own_completions)                    \
    T(what_is_polled_while_its_queue_pair_is_destroyed_is_dropped)                                 \
    T(a_queue_pair_that_is_being_destroyed_is_not_asked_for_its_state)                             \
    T(a_question_that_is_not_answered_keeps_no_other_queue_pair_from_going)                        \
    T(a_reset_at_any_moment_of_a_poll_leaves_an_empty_queue)

KEDGE_CHECK_MAIN("fabric.verbs_lives", TESTS)
