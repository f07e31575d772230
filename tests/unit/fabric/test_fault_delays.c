/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer: completions that come late; over the soft provider. */
#include "fault_rig.h"

START_TEST(delays_keep_the_order_of_completions)
{
    const struct fault_plan plan = {.seed = 4, .delay_ppm = 300000, .delay_polls = 7};
    struct rig r;
    uint64_t posted = 0, done = 0;
    unsigned empty = 0;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    while (done < 2000) {
        struct ibv_wc wc[5];
        while (posted < 2000 && posted - done < 40)
            ck_assert_int_eq(write_to(&r, posted++, 64), 0);
        int n = fab_poll(r.cq, 5, wc);
        empty += n == 0;
        for (int i = 0; i < n; i++)
            ck_assert_uint_eq(wc[i].wr_id, done++);
    }
    ck_assert_uint_gt(empty, 0);
    ck_assert_uint_gt(fault_count(r.fab), 300);
    rig_close(&r);
}
END_TEST

static void open_pair(struct rig *r, struct fab_qp *pair[2])
{
    pair[0] = make_qp(r, FAB_QP_RC, r->cq);
    pair[1] = make_qp(r, FAB_QP_RC, r->cq);
    r->qp = pair[0];
    r->far = pair[1];
    connect_both(r);
}

/* Nothing orders the completions of two queue pairs, whatever queue they are in. */
START_TEST(a_delayed_completion_holds_up_its_own_queue_pair_alone)
{
    const struct fault_plan plan = {.seed = 4, .delay_ppm = 300000, .delay_polls = 50};
    struct rig r;
    struct fab_qp *pair[2];
    uint64_t posted = 0, done = 0, next[2] = {0, 1}, passed = 0; /* the other one */
    rig_open(&r, FAB_QP_RC);
    struct fab_qp *own = r.qp, *far = r.far;
    open_pair(&r, pair);
    fault_set_plan(r.fab, &plan);
    while (done < 2000) {
        struct ibv_wc wc[5];
        for (; posted < 2000 && posted - done < 40; posted++) {
            r.qp = pair[posted % 2];
            ck_assert_int_eq(write_to(&r, posted, 64), 0);
        }
        int n = fab_poll(r.cq, 5, wc);
        for (int i = 0; i < n; i++, done++) {
            const int of = wc[i].qp_num == pair[1]->qpn;
            ck_assert_uint_eq(wc[i].wr_id, next[of]);
            passed += next[of] > next[!of];
            next[of] += 2;
        }
    }
    ck_assert_uint_gt(passed, 100);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(call(&r, &(struct fab_ctl){.kind = FAB_DESTROY_QP, .qp = {.x = pair[i]}}),
                         0);
    r.qp = own;
    r.far = far;
    rig_close(&r);
}
END_TEST

START_TEST(a_delayed_completion_is_withheld_for_so_many_polls)
{
    const struct fault_plan plan = {.seed = 4, .delay_ppm = MILLION, .delay_polls = 10};
    struct rig r;
    struct ibv_wc wc;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    ck_assert_int_eq(write_to(&r, 1, 64), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(fab_poll(r.cq, 1, &wc), 0);
    ck_assert_int_eq(fab_poll(r.cq, 1, &wc), 1);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert_uint_eq(fault_count(r.fab), 1);
    rig_close(&r);
}
END_TEST

START_TEST(a_plan_that_ends_lets_withheld_completions_go_in_order)
{
    const struct fault_plan plan = {.seed = 4, .delay_ppm = MILLION, .delay_polls = 3};
    const struct fault_plan nothing = {.seed = 4};
    struct rig r;
    struct ibv_wc wc;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    ck_assert_int_eq(write_to(&r, 1, 64), 0);
    ck_assert_int_eq(fab_poll(r.cq, 1, &wc), 0);
    fault_set_plan(r.fab, &nothing);
    ck_assert_int_eq(write_to(&r, 2, 64), 0);
    ck_assert_uint_eq(next_wc(r.cq).wr_id, 1);
    ck_assert_uint_eq(next_wc(r.cq).wr_id, 2);
    rig_close(&r);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(delays_keep_the_order_of_completions)                                                        \
    T(a_delayed_completion_holds_up_its_own_queue_pair_alone)                                      \
    T(a_delayed_completion_is_withheld_for_so_many_polls)                                          \
    T(a_plan_that_ends_lets_withheld_completions_go_in_order)
KEDGE_CHECK_MAIN("fault delays", TESTS)
