/* SPDX-License-Identifier: Apache-2.0 */
/* What is handed to a device to destroy: counted by its owner and, by kind, by the device. */
#include "fabric/retire.h"

#include <errno.h>
#include <string.h>

#include "fabric/provider.h"
#include "../check_main.h"

enum { MOST = 8 };

/* A device that ends what it is told to end, and in what order. */
static struct {
    struct fab base;
    struct fab_ctl *out[MOST];
    uint32_t count;
} device;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    device.out[device.count++] = ctl;
}

static void finish(uint32_t number, int status)
{
    device.out[number]->status = status;
    device.out[number]->done(device.out[number]);
}

static const struct fab_ops ops = {.submit = submit};

static void begin(void)
{
    memset(&device, 0, sizeof device);
    device.base.ops = &ops;
}

START_TEST(what_is_being_destroyed_is_counted_until_it_is_over_however_it_went)
{
    struct fab_qp qp = {0};
    uint32_t mine = 0, others = 0;
    begin();
    ck_assert_uint_eq(fab_retiring(&device.base), 0);
    fab_retire(&device.base, FAB_DESTROY_QP, &qp, &mine);
    fab_retire(&device.base, FAB_FREE_PD, &qp, &mine);
    fab_retire(&device.base, FAB_DEREG_MR, NULL, &mine); /* there is none */
    fab_retire(&device.base, FAB_DESTROY_CQ, &qp, &others);
    ck_assert_uint_eq(mine, 2);
    ck_assert_uint_eq(others, 1);
    ck_assert_uint_eq(device.count, 3);
    finish(0, -EIO);
    ck_assert_uint_eq(device.base.undestroyed, 1);
    ck_assert_uint_eq(mine, 1);
    finish(1, 0);
    finish(2, 0);
    ck_assert_uint_eq(mine, 0);
    ck_assert_uint_eq(others, 0);
    ck_assert_uint_eq(fab_retiring(&device.base), 0);
}
END_TEST

START_TEST(what_others_wait_for_is_told_whoever_handed_it_over)
{
    struct fab_qp qp = {0};
    uint32_t connector = 0, pool = 0;
    begin();
    fab_retire(&device.base, FAB_DESTROY_QP, &qp, &connector);
    fab_retire(&device.base, FAB_DESTROY_CQ, &qp, &connector);
    fab_retire(&device.base, FAB_FREE_PD, &qp, &pool);
    ck_assert_uint_eq(fab_retiring(&device.base), FAB_DESTROY_QP);
    finish(0, 0);
    ck_assert_uint_eq(fab_retiring(&device.base), FAB_DESTROY_CQ);
    finish(1, 0);
    ck_assert_uint_eq(fab_retiring(&device.base), FAB_FREE_PD);
    finish(2, 0);
}
END_TEST

static uint32_t then_ops;

static int then_status;

static void on_gone(void *user, int status)
{
    then_status = status;
    ck_assert_uint_eq(then_ops, 0); /* whoever hears of it may be the last */
    (*(uint32_t *)user)++;
}

START_TEST(who_wants_to_hear_of_the_end_hears_of_it_once_and_how_it_went)
{
    struct fab_mr mr = {0};
    uint32_t heard = 0;
    begin();
    fab_retire_then(&device.base, FAB_DEREG_MR, &mr, &then_ops, on_gone, &heard);
    ck_assert_uint_eq(then_ops, 1);
    ck_assert_uint_eq(heard, 0);
    finish(0, 0);
    ck_assert_uint_eq(heard, 1);
    ck_assert_int_eq(then_status, 0);
    fab_retire_then(&device.base, FAB_DEREG_MR, &mr, &then_ops, on_gone, &heard);
    finish(1, -EBUSY); /* the device may use that memory still */
    ck_assert_uint_eq(heard, 2);
    ck_assert_int_eq(then_status, -EBUSY);
    ck_assert_uint_eq(device.base.undestroyed, 1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_being_destroyed_is_counted_until_it_is_over_however_it_went)                         \
    T(what_others_wait_for_is_told_whoever_handed_it_over)                                         \
    T(who_wants_to_hear_of_the_end_hears_of_it_once_and_how_it_went)

KEDGE_CHECK_MAIN("fabric.retire", TESTS)
