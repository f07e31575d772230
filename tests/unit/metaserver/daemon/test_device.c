/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver makes of its device's news, on `soft` with a layer of faults. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "../../fabric/bed.h"
#include "base/clock.h"
#include "device.h"
#include "fabric/fault.h"
#include "fabric/provider.h"

enum { BYTES = 4096, PLACE = 3, MOVED = 4 };

static struct {
    char dir[64];
    struct meta_process process;
    struct meta_device device;
} w;

/* What nodes have said of the table. */
static struct meta_reach_counts reach;
struct meta_reach_counts __wrap_meta_directory_reach_count(const struct meta_directory *m);
struct meta_reach_counts __wrap_meta_directory_reach_count(const struct meta_directory *m)
{
    (void)m;
    return reach;
}

static void make(struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(w.process.endpoint.fab, ctl), 0);
}

static void begin(void)
{
    static const struct fault_plan nothing = {.seed = 1};
    struct meta_table_endpoint *e = &w.process.endpoint;
    struct base_errbuf err;
    struct fab *inner;
    memset(&w, 0, sizeof w);
    memset(&reach, 0, sizeof reach);
    bed_dir_make(w.dir);
    const struct fab_open_attr attr = {.device = w.dir, .service.pkey_index = PLACE};
    ck_assert_int_eq(fab_soft.open(&attr, &inner, &err), 0);
    ck_assert_int_eq(fault_open(inner, &nothing, &e->fab), 0);
    ck_assert_int_eq(fab_mem_alloc(BYTES, "table", &e->mem), 0);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    make(&pd);
    e->pd = pd.pd.x;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 4}};
    make(&cq);
    e->cq = cq.cq.x;
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = e->pd, .mem = &e->mem, .length = BYTES, .access = IBV_ACCESS_REMOTE_READ}};
    make(&mr);
    e->mr = mr.mr.x;
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = e->pd, .max_wr = 1, .max_sge = 1}};
    make(&srq);
    e->srq = srq.srq.x;
    struct fab_ctl dct = meta_table_endpoint_target(e, 0xab);
    make(&dct);
    e->dct = dct.dct.x;
    w.process.service.endpoint = meta_table_endpoint_describe(e);
    meta_device_init(&w.device, &w.process);
}

static void end(void)
{
    meta_device_stop(&w.device);
    meta_table_endpoint_fini(&w.process.endpoint);
    bed_dir_remove(w.dir);
}

/* As the loop does, until there is nothing to do. */
static void run(void)
{
    struct fab *fab = w.process.endpoint.fab;
    meta_device_events(&w.device);
    while (w.device.address.asking || w.device.target.busy)
        if (fab_run(fab) == 0)
            fab_wait(fab);
}

START_TEST(a_pkey_that_moves_has_the_target_made_anew_and_agents_told_its_number)
{
    const struct fault_plan moved = {.seed = 1, .pkey_moved = MOVED};
    begin();
    const uint32_t before = w.process.service.endpoint.dct_number;
    meta_device_tick(&w.device, BASE_NS_PER_S);
    run();
    ck_assert_uint_eq(w.process.service.endpoint.dct_number, before);
    fault_set_plan(w.process.endpoint.fab, &moved); /* and its event */
    run();
    ck_assert_uint_eq(w.process.endpoint.pd->service.pkey_index, PLACE + MOVED);
    ck_assert_uint_ne(w.process.service.endpoint.dct_number, before);
    ck_assert_uint_eq(w.process.service.endpoint.dct_number, w.process.endpoint.dct->dctn);
    ck_assert_uint_eq(w.process.service.endpoint.dc_key, 0xab);
    ck_assert_ptr_null(w.device.lost);
    end();
}
END_TEST

START_TEST(a_pkey_that_is_gone_is_why_the_table_cannot_be_read_until_it_is_back)
{
    const struct fault_plan gone = {.seed = 1, .pkey_gone = true}, back = {.seed = 1};
    begin();
    const uint32_t before = w.process.service.endpoint.dct_number;
    fault_set_plan(w.process.endpoint.fab, &gone);
    run();
    ck_assert_ptr_nonnull(strstr(w.process.service.table_why, "P_Key"));
    fault_set_plan(w.process.endpoint.fab, &back);
    run();
    ck_assert_str_eq(w.process.service.table_why, "");
    ck_assert_uint_eq(w.process.service.endpoint.dct_number, before);
    end();
}
END_TEST

START_TEST(a_device_that_is_removed_is_lost_for_good)
{
    const struct fault_plan removed = {.seed = 1, .removed_ns = 1};
    begin();
    struct pollfd fd = {.fd = fab_event_fd(w.process.endpoint.fab), .events = POLLIN};
    fault_set_plan(w.process.endpoint.fab, &removed);
    ck_assert_int_eq(poll(&fd, 1, 60000), 1);
    run();
    ck_assert_ptr_nonnull(w.device.lost);
    end();
}
END_TEST

/* ---- what the device says of queue pairs */

static struct {
    struct fab_ops ops;
    struct fab_event event;
    bool told;
} news;

static int tell_event(struct fab *fab, struct fab_event *out)
{
    (void)fab;
    if (news.told)
        return 0;
    news.told = true;
    *out = news.event;
    return 1;
}

static void hear(enum ibv_event_type type, struct fab_qp *qp)
{
    struct fab *fab = w.process.endpoint.fab;
    const struct fab_ops *real = fab->ops;
    news.ops = *real;
    news.ops.get_event = tell_event;
    news.event = (struct fab_event){.type = type, .qp = qp};
    news.told = false;
    fab->ops = &news.ops;
    run();
    fab->ops = real;
}

START_TEST(a_target_that_breaks_is_made_anew_and_agents_told_its_number)
{
    struct fab_qp responder;
    begin();
    const uint32_t before = w.process.service.endpoint.dct_number;
    hear(IBV_EVENT_QP_FATAL, &responder);
    hear(IBV_EVENT_QP_ACCESS_ERR, NULL); /* which does not end one */
    ck_assert_uint_eq(w.process.service.endpoint.dct_number, before);
    hear(IBV_EVENT_QP_FATAL, NULL);
    ck_assert_uint_ne(w.process.service.endpoint.dct_number, before);
    ck_assert_uint_eq(w.process.service.endpoint.dct_number, w.process.endpoint.dct->dctn);
    ck_assert_ptr_null(w.device.lost);
    end();
}
END_TEST

START_TEST(a_completion_queue_that_breaks_loses_the_device)
{
    begin();
    hear(IBV_EVENT_CQ_ERR, NULL);
    ck_assert_ptr_nonnull(w.device.lost);
    end();
}
END_TEST

/* Nor has the device said anything. */
START_TEST(a_target_that_most_readers_do_not_reach_is_made_anew_and_ever_less_often)
{
    enum { MINUTES = 40 };
    uint32_t others = 0, number;
    begin();
    number = w.process.service.endpoint.dct_number;
    for (uint64_t s = 1; s <= MINUTES * 60; s++) {
        reach.table_blamed = s > 60;
        const uint64_t due_ns = meta_device_due_ns(&w.device);
        meta_device_tick(&w.device, s * BASE_NS_PER_S);
        run();
        ck_assert(w.process.service.endpoint.dct_number == number || due_ns <= s * BASE_NS_PER_S);
        others += w.process.service.endpoint.dct_number != number;
        ck_assert(s > 60 || others == 0);
        number = w.process.service.endpoint.dct_number;
    }
    ck_assert_uint_eq(others, 6); /* after 1, 2, 4, 8 and 16 minutes more */
    ck_assert_uint_gt(meta_device_due_ns(&w.device), MINUTES * 60 * BASE_NS_PER_S);
    uint64_t s = MINUTES * 60;
    for (uint32_t i = 0; i < 60; i++) { /* by turns, as nodes may say that mean harm */
        reach.table_blamed = i % 2 != 0;
        meta_device_tick(&w.device, ++s * BASE_NS_PER_S);
        run();
        ck_assert_uint_eq(w.process.service.endpoint.dct_number, number);
    }
    reach.table_blamed = false; /* that has helped */
    s += MINUTES * 60;
    meta_device_tick(&w.device, ++s * BASE_NS_PER_S);
    reach.table_blamed = true;
    meta_device_tick(&w.device, ++s * BASE_NS_PER_S);
    run();
    ck_assert_uint_ne(w.process.service.endpoint.dct_number, number);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_pkey_that_moves_has_the_target_made_anew_and_agents_told_its_number)                       \
    T(a_pkey_that_is_gone_is_why_the_table_cannot_be_read_until_it_is_back)                        \
    T(a_device_that_is_removed_is_lost_for_good)                                                   \
    T(a_target_that_breaks_is_made_anew_and_agents_told_its_number)                                \
    T(a_target_that_most_readers_do_not_reach_is_made_anew_and_ever_less_often)                    \
    T(a_completion_queue_that_breaks_loses_the_device)
KEDGE_CHECK_MAIN("metad.device", TESTS)
