/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is removed while it is open. */
#include <poll.h>

#include "fault_rig.h"

static const struct fault_plan removed = {.seed = 3, .removed_ns = 1};

static void await_the_event(struct rig *r)
{
    struct pollfd fd = {.fd = fab_event_fd(r->fab), .events = POLLIN};
    struct fab_event e = {0};
    ck_assert_int_eq(poll(&fd, 1, 60000), 1);
    ck_assert_int_eq(fab_get_event(r->fab, &e), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(fab_get_event(r->fab, &e), 0); /* once */
}

/* Whoever destroys it again hears the same again. */
static void fail_to_destroy(struct rig *r, enum fab_ctl_kind kind, void *x)
{
    for (int i = 0; i < 2; i++) {
        struct fab_ctl ctl = {.kind = kind};
        ctl.pd.x = x;
        ck_assert_int_eq(call(r, &ctl), -EIO);
    }
}

static void end(struct rig *r)
{
    char path[96];
    fail_to_destroy(r, FAB_DESTROY_QP, r->qp);
    fail_to_destroy(r, FAB_DESTROY_QP, r->far);
    fail_to_destroy(r, FAB_DESTROY_AH, r->ah);
    fail_to_destroy(r, FAB_DEREG_MR, r->mr);
    fail_to_destroy(r, FAB_DESTROY_CQ, r->cq);
    fail_to_destroy(r, FAB_DESTROY_CQ, r->far_cq);
    fail_to_destroy(r, FAB_FREE_PD, r->pd);
    ck_assert_int_eq(fab_close(r->fab), 0); /* all the same */
    fab_mem_free(&r->mem);
    snprintf(path, sizeof path, "%s/device", r->dir);
    (void)unlink(path);
    (void)rmdir(r->dir);
}

START_TEST(every_command_of_a_device_that_was_removed_ends_with_eio)
{
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &removed);
    struct fab_ctl ctl[] = {
        {.kind = FAB_ALLOC_PD},
        {.kind = FAB_CREATE_CQ, .cq = {.cqe = 1}},
        {.kind = FAB_REG_MR, .mr = {.pd = r.pd, .mem = &r.mem, .length = 1}},
        {.kind = FAB_QUIESCE_MR, .quiesce.rkey = r.mr->rkey},
        {.kind = FAB_QUERY_PORT},
        {.kind = FAB_QUERY_ADDRESS},
        {.kind = FAB_QUERY_CLOCK},
        {.kind = FAB_QUERY_PKEY},
    };
    for (size_t i = 0; i < sizeof ctl / sizeof ctl[0]; i++)
        ck_assert_int_eq(call(&r, &ctl[i]), -EIO);
    ck_assert_int_eq(move(&r, r.qp, IBV_QPS_RESET, 0), -EIO);
    ck_assert_int_eq(fab_qp_state(r.qp), IBV_QPS_ERR);
    await_the_event(&r);
    end(&r);
}
END_TEST

START_TEST(what_is_posted_there_is_refused_or_never_heard_of)
{
    struct ibv_wc wc;
    struct rig r;
    unsigned refused = 0, taken = 0;
    rig_open(&r, FAB_QP_RC);
    ck_assert_int_eq(write_to(&r, 1, 1000), 0); /* and what was out before is not either */
    fault_set_plan(r.fab, &removed);
    for (uint64_t i = 0; i < 64; i++) {
        const int status = write_to(&r, i, 1000);
        refused += status == -EIO;
        taken += status == 0;
    }
    ck_assert_uint_eq(refused + taken, 64);
    ck_assert(refused > 8 && taken > 8);
    ck_assert_int_eq(fab_arm(r.cq, false), 0);
    ck_assert_int_eq(fab_poll(r.cq, 1, &wc), 0);
    end(&r);
}
END_TEST

START_TEST(a_device_is_there_until_its_time_comes)
{
    const struct fault_plan later = {.seed = 1, .removed_ns = 60000000000};
    struct fab_event e;
    struct rig r;
    rig_open_with(&r, FAB_QP_RC, &later);
    ck_assert_int_eq(write_to(&r, 1, 1000), 0);
    ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(fab_get_event(r.fab, &e), 0);
    rig_close(&r);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_command_of_a_device_that_was_removed_ends_with_eio)                                    \
    T(what_is_posted_there_is_refused_or_never_heard_of)                                           \
    T(a_device_is_there_until_its_time_comes)
KEDGE_CHECK_MAIN("fault: removed", TESTS)
