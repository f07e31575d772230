/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of asynchronous events that the providers share. */
#include <poll.h>

#include "../check_main.h"
#include "fabric/events.h"

static bool is_readable(const struct fab_events *q)
{
    struct pollfd fd = {.fd = q->efd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

START_TEST(events_come_out_in_order_and_the_fd_is_readable_while_there_are_any)
{
    struct fab_events q;
    struct fab_event e;
    struct fab_qp qp;
    ck_assert_int_eq(fab_events_init(&q), 0);
    ck_assert(!is_readable(&q));
    fab_events_push(&q, IBV_EVENT_QP_FATAL, &qp);
    fab_events_push(&q, IBV_EVENT_PORT_ERR, NULL);
    ck_assert(is_readable(&q));
    ck_assert_int_eq(fab_events_pop(&q, &e), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_QP_FATAL);
    ck_assert_ptr_eq(e.qp, &qp);
    ck_assert(is_readable(&q));
    ck_assert_int_eq(fab_events_pop(&q, &e), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_PORT_ERR);
    ck_assert_ptr_null(e.qp);
    ck_assert(!is_readable(&q));
    ck_assert_int_eq(fab_events_pop(&q, &e), 0);
    fab_events_fini(&q);
}
END_TEST

START_TEST(an_object_that_goes_takes_its_events_along)
{
    struct fab_events q;
    struct fab_event e;
    struct fab_qp gone, stays;
    ck_assert_int_eq(fab_events_init(&q), 0);
    for (int i = 0; i < 3; i++) {
        fab_events_push(&q, IBV_EVENT_QP_FATAL, &gone);
        fab_events_push(&q, IBV_EVENT_QP_ACCESS_ERR, &stays);
    }
    fab_events_push(&q, IBV_EVENT_QP_FATAL, &gone);
    fab_events_purge(&q, &gone);
    fab_events_push(&q, IBV_EVENT_QP_REQ_ERR, &stays); /* behind the others, still */
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(fab_events_pop(&q, &e), 1);
        ck_assert_ptr_eq(e.qp, &stays);
        ck_assert_int_eq(e.type, i < 3 ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
    }
    fab_events_push(&q, IBV_EVENT_QP_FATAL, &gone);
    fab_events_purge(&q, &gone);
    ck_assert(!is_readable(&q));
    ck_assert_int_eq(fab_events_pop(&q, &e), 0);
    fab_events_fini(&q);
}
END_TEST

START_TEST(queue_pairs_do_not_crowd_out_the_devices_own_events)
{
    struct fab_events q;
    struct fab_event e;
    struct fab_qp qp;
    int left = 0;
    ck_assert_int_eq(fab_events_init(&q), 0);
    for (int i = 0; i < FAB_EVENTS + 100; i++)
        fab_events_push(&q, IBV_EVENT_QP_FATAL, &qp);
    fab_events_push(&q, IBV_EVENT_QP_ACCESS_ERR, NULL); /* of a DC target: no more room */
    for (int i = 0; i < FAB_EVENTS_SPARE + 100; i++)
        fab_events_push(&q, IBV_EVENT_DEVICE_FATAL, NULL);
    while (fab_events_pop(&q, &e) == 1)
        left++;
    ck_assert_int_eq(e.type, IBV_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(left, FAB_EVENTS + FAB_EVENTS_SPARE);
    fab_events_push(&q, IBV_EVENT_QP_FATAL, &qp); /* there is room again */
    ck_assert_int_eq(fab_events_pop(&q, &e), 1);
    fab_events_push(&q, IBV_EVENT_QP_FATAL, &qp); /* what is left is freed */
    fab_events_fini(&q);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(events_come_out_in_order_and_the_fd_is_readable_while_there_are_any)                         \
    T(an_object_that_goes_takes_its_events_along)                                                  \
    T(queue_pairs_do_not_crowd_out_the_devices_own_events)

KEDGE_CHECK_MAIN("fabric.events", TESTS)
