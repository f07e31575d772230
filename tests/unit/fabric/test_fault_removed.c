/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is removed while it is open. */
#include <fcntl.h>
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

/* 0 or -EIO, of the device's own choice for all of a kind; whoever destroys one again that is there
 * still hears the same again. */
static int destroy(struct rig *r, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl ctl = {.kind = kind}, again = ctl;
    ctl.pd.x = again.pd.x = x;
    const int status = call(r, &ctl);
    ck_assert(status == 0 || status == -EIO);
    if (status != 0)
        ck_assert_int_eq(call(r, &again), status);
    return status;
}

/* Returns how many kinds were refused. */
static unsigned end(struct rig *r)
{
    char path[96];
    const int qp = destroy(r, FAB_DESTROY_QP, r->qp);
    ck_assert_int_eq(destroy(r, FAB_DESTROY_QP, r->far), qp);
    const int ah = destroy(r, FAB_DESTROY_AH, r->ah), mr = destroy(r, FAB_DEREG_MR, r->mr);
    const int cq = destroy(r, FAB_DESTROY_CQ, r->cq);
    ck_assert_int_eq(destroy(r, FAB_DESTROY_CQ, r->far_cq), cq);
    const int pd = destroy(r, FAB_FREE_PD, r->pd);
    ck_assert_int_eq(fab_close(r->fab), 0); /* all the same */
    fab_mem_free(&r->mem);
    snprintf(path, sizeof path, "%s/device", r->dir);
    (void)unlink(path);
    (void)rmdir(r->dir);
    return (qp != 0) + (ah != 0) + (mr != 0) + (cq != 0) + (pd != 0);
}

START_TEST(what_makes_or_asks_something_of_a_removed_device_ends_with_eio)
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
        {.kind = FAB_QUERY_QP, .asked.x = r.qp},
    };
    for (size_t i = 0; i < sizeof ctl / sizeof ctl[0]; i++)
        ck_assert_int_eq(call(&r, &ctl[i]), -EIO);
    ck_assert_int_eq(move(&r, r.qp, IBV_QPS_RESET, 0), -EIO);
    ck_assert_int_eq(fab_qp_state(r.qp), IBV_QPS_ERR);
    await_the_event(&r);
    (void)end(&r);
}
END_TEST

START_TEST(what_is_posted_there_is_refused_or_never_heard_of)
{
    struct ibv_wc wc;
    struct rig r;
    unsigned refused = 0, taken = 0;
    rig_open(&r, FAB_QP_RC);
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
    (void)end(&r);
}
END_TEST

START_TEST(what_is_destroyed_there_is_or_is_not_by_its_kind_and_the_seed)
{
    unsigned refused = 0, seeds = 16;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct rig r;
        rig_open(&r, FAB_QP_RC);
        fault_set_plan(r.fab, &(struct fault_plan){.seed = seed, .removed_ns = 1});
        refused += end(&r);
    }
    ck_assert(refused > seeds && refused < 4 * seeds); /* of five kinds */
}
END_TEST

START_TEST(a_channel_is_busy_with_a_queue_that_could_not_be_destroyed_there)
{
    bool busy[2] = {false, false};
    for (uint64_t seed = 1; seed <= 16; seed++) {
        struct rig r;
        rig_open(&r, FAB_QP_RC);
        struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
        ck_assert_int_eq(call(&r, &chan), 0);
        struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 1, .chan = chan.chan.x}};
        ck_assert_int_eq(call(&r, &cq), 0);
        fault_set_plan(r.fab, &(struct fault_plan){.seed = seed, .removed_ns = 1});
        const int kept = destroy(&r, FAB_DESTROY_CQ, cq.cq.x);
        struct fab_ctl end_chan = {.kind = FAB_DESTROY_CHAN, .chan.x = chan.chan.x};
        ck_assert_int_eq(call(&r, &end_chan), kept != 0 ? -EBUSY : 0);
        busy[kept != 0] = true;
        (void)end(&r);
    }
    ck_assert(busy[0] && busy[1]);
}
END_TEST

START_TEST(what_had_completed_is_polled_as_far_as_it_got_and_then_nothing)
{
    enum { OUT = 8 };
    bool seen[OUT + 1] = {false};
    for (uint64_t seed = 1; seed <= 32; seed++) {
        struct ibv_wc wc[OUT];
        struct rig r;
        rig_open(&r, FAB_QP_RC);
        for (uint64_t i = 0; i < OUT; i++)
            ck_assert_int_eq(write_to(&r, i, 1000), 0);
        fault_set_plan(r.fab, &(struct fault_plan){.seed = seed, .removed_ns = 1});
        const int got = fab_poll(r.cq, OUT, wc);
        for (int i = 0; i < got; i++)
            ck_assert_uint_eq(wc[i].wr_id, (uint64_t)i);
        seen[got] = true;
        ck_assert_int_eq(fab_poll(r.cq, OUT, wc), 0);
        (void)end(&r);
    }
    ck_assert(seen[0] && seen[1] && seen[OUT]);
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

START_TEST(or_until_a_file_says_so)
{
    struct fault_plan plan = {.seed = 2};
    struct fab_ctl ask = {.kind = FAB_QUERY_PORT};
    struct pollfd fd = {.events = POLLIN};
    struct fab_event e;
    struct rig r;
    snprintf(plan.removed_when, sizeof plan.removed_when, "/tmp/kedge-test-gone-%d", (int)getpid());
    rig_open_with(&r, FAB_QP_RC, &plan);
    fd.fd = fab_event_fd(r.fab);
    for (int i = 0; i < 3; i++) { /* it has looked, and nothing is there */
        ck_assert_int_eq(poll(&fd, 1, 60000), 1);
        ck_assert_int_eq(fab_get_event(r.fab, &e), 0);
    }
    ck_assert_int_eq(call(&r, &ask), 0);
    close(creat(plan.removed_when, 0600));
    for (int i = 0; i < 100 && fab_get_event(r.fab, &e) == 0; i++)
        ck_assert_int_eq(poll(&fd, 1, 60000), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(call(&r, &ask), -EIO);
    (void)unlink(plan.removed_when);
    end(&r);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_makes_or_asks_something_of_a_removed_device_ends_with_eio)                              \
    T(what_is_posted_there_is_refused_or_never_heard_of)                                           \
    T(what_is_destroyed_there_is_or_is_not_by_its_kind_and_the_seed)                               \
    T(a_channel_is_busy_with_a_queue_that_could_not_be_destroyed_there)                            \
    T(what_had_completed_is_polled_as_far_as_it_got_and_then_nothing)                              \
    T(a_device_is_there_until_its_time_comes)                                                      \
    T(or_until_a_file_says_so)
KEDGE_CHECK_MAIN("fault: removed", TESTS)
