/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs provider when the kernel has taken its device away: what is destroyed ends with EIO. */
#include "../check_main.h"

#include "dc_bed.h"
#include "verbs/objects.h"

static void tell(struct dc_bed *b, enum ibv_event_type type, struct ibv_cq *cq)
{
    struct ibv_async_event in = {.event_type = type, .element.cq = cq};
    verbs_events_handle(b->f, &in);
}

START_TEST(what_a_removed_device_had_is_destroyed_although_no_command_works)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.transports |= FAB_DC;
    struct fab_qp *qp = dc_bed_dci(&b, 4);
    struct ibv_qp *stranded = ((struct verbs_qp *)qp)->qp;
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp.x = qp};
    fake.refused = "destroy dci";
    fake.refused_errno = EIO;
    ck_assert_int_eq(verbs_qp_destroy(b.f, &ctl), -EIO); /* the device is there: it is kept */
    ck_assert_uint_eq(atomic_load(&b.vpd.users), 1);
    tell(&b, IBV_EVENT_DEVICE_FATAL, NULL);
    fake.refused_errno = EBUSY; /* which says something else */
    ck_assert_int_eq(verbs_qp_destroy(b.f, &ctl), -EBUSY);
    fake.refused_errno = EIO;
    ck_assert_int_eq(verbs_qp_destroy(b.f, &ctl), 0);
    ck_assert_uint_eq(atomic_load(&b.vpd.users), 0);
    free(qp);
    fake.refused = NULL;
    ck_assert_int_eq(fake_calls.destroy_qp(stranded), 0);
    dc_bed_close(&b);
}
END_TEST

/* libibverbs counts that queue as the channel's still. */
START_TEST(a_channel_goes_with_a_queue_that_no_command_could_destroy)
{
    struct dc_bed b;
    struct ibv_context context = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct ibv_comp_channel of_libibverbs = {.context = &context, .fd = -1, .refcnt = 1};
    dc_bed_open(&b);
    struct verbs_chan chan = {.base.fab = &b.f->base, .chan = &of_libibverbs};
    struct fab_ctl ctl = {.kind = FAB_DESTROY_CHAN, .chan.x = &chan.base};
    ck_assert_int_eq(verbs_chan_destroy(&ctl), -EBUSY);
    tell(&b, IBV_EVENT_DEVICE_FATAL, NULL);
    chan.users = 1; /* which is one of ours */
    ck_assert_int_eq(verbs_chan_destroy(&ctl), -EBUSY);
    chan.users = 0;
    ck_assert_int_eq(verbs_chan_destroy(&ctl), 0);
    dc_bed_close(&b);
}
END_TEST

START_TEST(behind_the_end_of_a_device_no_event_of_its_objects_is_heard)
{
    struct dc_bed b;
    struct fab_event e;
    struct ibv_cq gone = {.cq_context = NULL}; /* whoever looks there ends */
    dc_bed_open(&b);
    tell(&b, IBV_EVENT_DEVICE_FATAL, NULL);
    tell(&b, IBV_EVENT_CQ_ERR, &gone);
    tell(&b, IBV_EVENT_DEVICE_FATAL, NULL);
    ck_assert_int_eq(fab_events_pop(&b.f->events, &e), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(fab_events_pop(&b.f->events, &e), 0);
    dc_bed_close(&b);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_a_removed_device_had_is_destroyed_although_no_command_works)                            \
    T(a_channel_goes_with_a_queue_that_no_command_could_destroy)                                   \
    T(behind_the_end_of_a_device_no_event_of_its_objects_is_heard)
KEDGE_CHECK_MAIN("verbs: removed", TESTS)
