/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that are used again, on devices that let them be and on such to which RESET is final.
 */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fault.h"
#include "fabric/reuse.h"

struct rig {
    char dir[64];
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    enum fab_ctl_kind done[8]; /* operations of the last reuse */
    unsigned count;
};

static void call(struct rig *r, struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(r->fab, ctl), 0);
}

static void rig_open(struct rig *r, bool resets_are_final)
{
    const struct fault_plan plan = {.seed = 1, .resets_are_final = resets_are_final};
    struct base_errbuf err = {.text = ""};
    struct fab *soft;
    *r = (struct rig){.dir = "/dev/shm/kedge-reuse-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    const struct fab_open_attr attr = {.device = r->dir};
    ck_assert_msg(fab_soft.open(&attr, &soft, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fault_open(soft, &plan, &r->fab), 0);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    call(r, &pd);
    r->pd = pd.pd.x;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 16}};
    call(r, &cq);
    r->cq = cq.cq.x;
}

static void rig_close(struct rig *r, struct fab_qp *qp)
{
    struct fab_ctl ctl[] = {{.kind = FAB_DESTROY_QP, .qp = {.x = qp}},
                            {.kind = FAB_DESTROY_CQ, .cq = {.x = r->cq}},
                            {.kind = FAB_FREE_PD, .pd = {.x = r->pd}}};
    char path[96];
    for (size_t i = qp == NULL; i < sizeof ctl / sizeof ctl[0]; i++)
        call(r, &ctl[i]);
    ck_assert_int_eq(fab_close(r->fab), 0); /* and so none was left */
    snprintf(path, sizeof path, "%s/device", r->dir);
    (void)unlink(path);
    (void)rmdir(r->dir);
}

static struct fab_ctl creation(const struct rig *r)
{
    return (struct fab_ctl){.kind = FAB_CREATE_QP,
                            .qp = {.pd = r->pd,
                                   .type = FAB_QP_RC,
                                   .send_cq = r->cq,
                                   .recv_cq = r->cq,
                                   .cap = {.send_wr = 1, .recv_wr = 1, .send_sge = 1}}};
}

static struct fab_reuse reuse(struct rig *r, struct fab_qp *qp, bool in_reset)
{
    struct fab_reuse again = {.fab = r->fab,
                              .qp = qp,
                              .in_reset = in_reset,
                              .make = creation(r),
                              .init = fab_init_attr(r->fab),
                              .mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                      IBV_QP_ACCESS_FLAGS};
    struct fab_ctl ctl;
    r->count = 0;
    fab_reuse_begin(&again, &ctl);
    do {
        ck_assert_uint_lt(r->count, 8);
        r->done[r->count++] = ctl.kind;
        (void)fab_call(r->fab, &ctl);
    } while (fab_reuse_next(&again, &ctl));
    return again;
}

START_TEST(a_queue_pair_is_used_again_where_that_can_be)
{
    struct rig r;
    rig_open(&r, false);
    struct fab_ctl made = creation(&r);
    call(&r, &made);
    for (int i = 0; i < 3; i++) {
        const struct fab_reuse again = reuse(&r, made.qp.x, i == 0);
        ck_assert_int_eq(again.status, 0);
        ck_assert_ptr_eq(again.qp, made.qp.x);
        ck_assert(!again.anew);
        ck_assert_uint_eq(r.count, i == 0 ? 1 : 2);
        ck_assert_int_eq(fab_qp_state(again.qp), IBV_QPS_INIT);
    }
    ck_assert(!r.fab->resets_are_final);
    rig_close(&r, made.qp.x);
}
END_TEST

START_TEST(where_reset_is_final_another_takes_its_place_and_that_is_tried_once)
{
    struct rig r;
    rig_open(&r, true);
    struct fab_ctl made = creation(&r);
    call(&r, &made);
    struct fab_reuse again = reuse(&r, made.qp.x, true); /* a new one needs no RESET */
    ck_assert_int_eq(again.status, 0);
    ck_assert(!again.anew && !r.fab->resets_are_final);
    for (int i = 0; i < 3; i++) {
        again = reuse(&r, again.qp, false);
        ck_assert_int_eq(again.status, 0);
        ck_assert(again.anew && r.fab->resets_are_final);
        ck_assert_uint_eq(r.count, i == 0 ? 5 : 3);
        ck_assert_int_eq(r.done[0], i == 0 ? FAB_MODIFY_QP : FAB_DESTROY_QP);
        ck_assert_int_eq(fab_qp_state(again.qp), IBV_QPS_INIT);
    }
    rig_close(&r, again.qp);
}
END_TEST

START_TEST(where_there_is_none_one_is_made)
{
    struct rig r;
    rig_open(&r, false);
    const struct fab_reuse again = reuse(&r, NULL, false);
    ck_assert_int_eq(again.status, 0);
    ck_assert(again.anew && !r.fab->resets_are_final);
    rig_close(&r, again.qp);
}
END_TEST

START_TEST(another_error_of_the_device_is_told_and_proves_nothing)
{
    static const struct fault_plan ill = {.seed = 1, .control_error_ppm = 1000000};
    struct rig r;
    rig_open(&r, false);
    struct fab_ctl made = creation(&r);
    call(&r, &made);
    fault_set_plan(r.fab, &ill);
    const struct fab_reuse again = reuse(&r, made.qp.x, false);
    ck_assert_int_eq(again.status, -EIO);
    ck_assert_ptr_eq(again.qp, made.qp.x);
    ck_assert(!r.fab->resets_are_final);
    fault_set_plan(r.fab, &(struct fault_plan){.seed = 1});
    rig_close(&r, again.qp);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_queue_pair_is_used_again_where_that_can_be)                                                \
    T(where_reset_is_final_another_takes_its_place_and_that_is_tried_once)                         \
    T(where_there_is_none_one_is_made)                                                             \
    T(another_error_of_the_device_is_told_and_proves_nothing)

KEDGE_CHECK_MAIN("reuse", TESTS)
