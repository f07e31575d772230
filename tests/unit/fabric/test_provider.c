/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider may bring of its own: how to wait for its control operations, and memory. */
#include <errno.h>
#include <stdlib.h>

#include "../check_main.h"
#include "fabric/provider.h"

/* A provider whose operations are over when somebody has waited three times. */
struct patient {
    struct fab base;
    struct fab_ctl *submitted;
    int waited;
};

static struct patient *patient_of(const struct fab *fab)
{
    return (struct patient *)fab;
}

static void submit_one(struct fab *fab, struct fab_ctl *ctl)
{
    patient_of(fab)->submitted = ctl;
}

static int run_one(struct fab *fab)
{
    struct patient *p = patient_of(fab);
    struct fab_ctl *ctl = p->submitted;
    if (ctl == NULL || p->waited < 3)
        return 0;
    p->submitted = NULL;
    ctl->status = -EMLINK;
    ctl->done(ctl);
    return 1;
}

static int no_fd(const struct fab *fab)
{
    (void)fab;
    ck_abort_msg("the descriptor of a provider that waits by itself was asked for");
    return -1;
}

static void wait_once(struct fab *fab)
{
    patient_of(fab)->waited++;
}

static void take_back(struct fab_mem *mem)
{
    free(mem->addr);
}

static int give_memory(struct fab *fab, size_t size, struct fab_mem *out)
{
    (void)fab;
    *out =
        (struct fab_mem){.addr = calloc(1, size), .size = size, .fd = -1, .give_back = take_back};
    return out->addr != NULL ? 0 : -ENOMEM;
}

static struct fab_event events[3];
static uint32_t event_count;

static int next_event(struct fab *fab, struct fab_event *out)
{
    (void)fab;
    if (event_count == 0)
        return 0;
    *out = events[--event_count];
    return 1;
}

static const struct fab_ops own_ops = {.name = "own",
                                       .submit = submit_one,
                                       .run = run_one,
                                       .ctl_fd = no_fd,
                                       .wait = wait_once,
                                       .get_event = next_event,
                                       .mem_alloc = give_memory};
static const struct fab_ops plain_ops = {.name = "plain"};

START_TEST(a_provider_that_waits_by_itself_is_not_polled)
{
    struct patient p = {.base.ops = &own_ops};
    struct fab_ctl ctl = {.kind = FAB_QUERY_PORT};
    ck_assert_int_eq(fab_call(&p.base, &ctl), -EMLINK);
    ck_assert_int_eq(p.waited, 3);
}
END_TEST

START_TEST(memory_for_a_device_is_of_its_providers_kind)
{
    struct patient own = {.base.ops = &own_ops};
    struct fab plain = {.ops = &plain_ops};
    struct fab_mem m;
    ck_assert_int_eq(fab_mem_alloc_for(&own.base, 4096, "mem", &m), 0);
    ck_assert_int_eq(m.fd, -1);
    ((char *)m.addr)[4095] = 1;
    ck_assert_int_eq(fab_mem_zero(&m), 0);
    ck_assert_int_eq(((char *)m.addr)[4095], 0);
    fab_mem_free(&m); /* or the leak sanitizer says so */
    ck_assert_ptr_null(m.addr);
    ck_assert_int_eq(fab_mem_alloc_for(&plain, 4096, "mem", &m), 0);
    ck_assert_int_ge(m.fd, 0);
    fab_mem_free(&m);
}
END_TEST

START_TEST(of_a_queue_pair_that_is_to_be_destroyed_no_event_is_told)
{
    struct patient p = {.base.ops = &own_ops};
    struct fab_pd pd = {.fab = &p.base};
    struct fab_qp leaves = {.pd = &pd}, stays = {.pd = &pd};
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp.x = &leaves};
    struct fab_event event;
    fab_submit(&p.base, &ctl); /* and is not executed yet */
    events[2] = (struct fab_event){.type = IBV_EVENT_QP_FATAL, .qp = &leaves};
    events[1] = (struct fab_event){.type = IBV_EVENT_QP_FATAL, .qp = NULL}; /* a DC target's */
    events[0] = (struct fab_event){.type = IBV_EVENT_QP_ACCESS_ERR, .qp = &stays};
    event_count = 3;
    ck_assert_int_eq(fab_get_event(&p.base, &event), 1);
    ck_assert_ptr_null(event.qp);
    ck_assert_int_eq(fab_get_event(&p.base, &event), 1);
    ck_assert_ptr_eq(event.qp, &stays);
    ck_assert_int_eq(fab_get_event(&p.base, &event), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_provider_that_waits_by_itself_is_not_polled)                                               \
    T(memory_for_a_device_is_of_its_providers_kind)                                                \
    T(of_a_queue_pair_that_is_to_be_destroyed_no_event_is_told)

KEDGE_CHECK_MAIN("fabric.provider", TESTS)
