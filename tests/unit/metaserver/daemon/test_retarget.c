/* SPDX-License-Identifier: Apache-2.0 */
/* The table gets another DC target. The device is the test's, and answers when it wants. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "fabric/provider.h"
#include "retarget.h"

static struct {
    struct meta_table_endpoint endpoint;
    struct meta_retarget target;
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd;
    struct fab_cq cq;
    struct fab_srq srq;
    struct fab_dct dct[4];
    uint32_t made, dones;
    struct fab_ctl *out;
} w;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_ptr_null(w.out);
    w.out = ctl;
}

static int run(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void make_target(int status)
{
    struct fab_ctl *ctl = w.out;
    ck_assert_ptr_nonnull(ctl);
    ck_assert_int_eq(ctl->kind, FAB_CREATE_DCT);
    ck_assert_ptr_eq(ctl->dct.pd, &w.pd);
    ck_assert_ptr_eq(ctl->dct.cq, &w.cq);
    ck_assert_ptr_eq(ctl->dct.srq, &w.srq);
    ck_assert_uint_eq(ctl->dct.access, IBV_ACCESS_REMOTE_READ);
    ck_assert_uint_eq(ctl->dct.dc_key, 0xab); /* as before: who knows it may go on */
    w.out = NULL;
    ctl->status = status;
    if (status == 0) {
        struct fab_dct *made = &w.dct[++w.made];
        *made = (struct fab_dct){.pd = &w.pd, .dctn = 100 + w.made, .dc_key = ctl->dct.dc_key};
        ctl->dct.x = made;
    }
    ctl->done(ctl);
}

static void destroy_target(const struct fab_dct *which)
{
    struct fab_ctl *ctl = w.out;
    ck_assert_ptr_nonnull(ctl);
    ck_assert_int_eq(ctl->kind, FAB_DESTROY_DCT);
    ck_assert_ptr_eq(ctl->dct.x, which);
    w.out = NULL;
    ctl->status = 0;
    ctl->done(ctl);
}

static void wait_for(struct fab *fab)
{
    (void)fab;
    if (w.out->kind == FAB_CREATE_DCT)
        make_target(0);
    else
        destroy_target(&w.dct[w.made - 1]);
}

static void done(void *user)
{
    ck_assert_ptr_eq(user, &w);
    w.dones++;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit, .run = run, .wait = wait_for};
    w.fab = (struct fab){.ops = &w.ops};
    w.dct[0] = (struct fab_dct){.pd = &w.pd, .dctn = 100, .dc_key = 0xab};
    w.endpoint = (struct meta_table_endpoint){
        .fab = &w.fab, .pd = &w.pd, .cq = &w.cq, .srq = &w.srq, .dct = &w.dct[0]};
    w.target = (struct meta_retarget){.endpoint = &w.endpoint, .done = done, .user = &w};
}

START_TEST(the_former_one_goes_when_the_new_one_stands)
{
    begin();
    meta_retarget_want(&w.target);
    ck_assert_ptr_eq(w.endpoint.dct, &w.dct[0]);
    make_target(0);
    ck_assert_ptr_eq(w.endpoint.dct, &w.dct[1]);
    ck_assert_uint_eq(w.dones, 1);
    destroy_target(&w.dct[0]);
    ck_assert_ptr_null(w.out);
}
END_TEST

START_TEST(what_is_wanted_meanwhile_is_done_once_more)
{
    begin();
    for (int i = 0; i < 3; i++)
        meta_retarget_want(&w.target);
    make_target(0);
    meta_retarget_want(&w.target);
    destroy_target(&w.dct[0]);
    make_target(0);
    destroy_target(&w.dct[1]);
    ck_assert_ptr_null(w.out);
    ck_assert_uint_eq(w.dones, 2);
}
END_TEST

START_TEST(what_the_device_refuses_is_tried_again_after_a_while)
{
    begin();
    meta_retarget_want(&w.target);
    for (int i = 0; i < 3; i++) {
        const uint64_t before_ns = base_clock_ns();
        make_target(-ENOMEM);
        ck_assert_ptr_eq(w.endpoint.dct, &w.dct[0]); /* which somebody may reach */
        ck_assert_uint_ge(w.target.retry_ns, before_ns + BASE_NS_PER_S);
        meta_retarget_tick(&w.target, w.target.retry_ns - 1);
        ck_assert_ptr_null(w.out);
        meta_retarget_tick(&w.target, w.target.retry_ns);
    }
    make_target(0);
    destroy_target(&w.dct[0]);
    meta_retarget_tick(&w.target, base_clock_ns() + 2 * BASE_NS_PER_S);
    ck_assert_ptr_null(w.out);
    ck_assert_uint_eq(w.dones, 1);
}
END_TEST

START_TEST(the_end_waits_for_what_is_under_way_and_nobody_hears_of_it)
{
    begin();
    meta_retarget_stop(&w.target);
    w.target.stopping = false;
    meta_retarget_want(&w.target);
    meta_retarget_want(&w.target);
    meta_retarget_stop(&w.target);
    ck_assert_ptr_null(w.out);
    ck_assert_ptr_eq(w.endpoint.dct, &w.dct[1]); /* for who gives it back */
    ck_assert_uint_eq(w.made, 1);
    ck_assert_uint_eq(w.dones, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_former_one_goes_when_the_new_one_stands)                                                 \
    T(what_is_wanted_meanwhile_is_done_once_more)                                                  \
    T(what_the_device_refuses_is_tried_again_after_a_while)                                        \
    T(the_end_waits_for_what_is_under_way_and_nobody_hears_of_it)
KEDGE_CHECK_MAIN("metad.retarget", TESTS)
