/* SPDX-License-Identifier: Apache-2.0 */
/* The probe makes the queue pairs that an agent makes, with its requests: what a device refuses of
 * them is found here and not at the agent's start. */
#include "../../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/placement.h"
#include "fabric/provider.h"
#include "probe/probe.h"

enum { SLOTS = 128, DC_SLOTS = 256, SENT = 192, TAKEN = 320, SGES = 4, INLINE = 128, MADE = 64 };

static struct probe_report report;
static char dir[64];
static const struct fab_ops *soft;
static struct fab_ops ops;

/* What was asked for. */
static struct asked {
    enum fab_qp_type type;
    struct fab_qp_cap cap;
} asked[MADE];
static unsigned asked_count;
/* Refused, though the device has each by itself: 0: nothing is. */
static uint32_t refused_wr, refused_inline;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    if (ctl->kind == FAB_CREATE_QP) {
        const struct fab_qp_cap *cap = &ctl->qp.cap;
        ck_assert_uint_lt(asked_count, MADE);
        asked[asked_count++] = (struct asked){ctl->qp.type, *cap};
        if (refused_wr != 0 && cap->send_wr >= refused_wr && cap->inline_bytes >= refused_inline)
            ctl->qp.pd = NULL;
    }
    if (ctl->kind != FAB_CREATE_QP || ctl->qp.pd != NULL) {
        soft->submit(fab, ctl);
        return;
    }
    ctl->status = -EINVAL;
    ctl->done(ctl);
}

static struct fab *open_soft(void)
{
    struct base_errbuf err;
    struct fab *fab;
    snprintf(dir, sizeof dir, "/dev/shm/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const struct fab_open_attr attr = {.device = dir};
    ck_assert_int_eq(fab_soft.open(&attr, &fab, &err), 0);
    soft = fab->ops;
    ops = *soft;
    ops.submit = submit;
    fab->ops = &ops;
    asked_count = 0;
    return fab;
}

static void close_soft(struct fab *fab)
{
    char file[96];
    probe_report_fini(&report);
    fab->ops = soft;
    ck_assert_int_eq(fab_close(fab), 0);
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void probe(struct fab *fab)
{
    const struct probe_settings s = {.source = "a test",
                                     .wrong = "",
                                     .provider = "soft",
                                     .attr = {.device = dir},
                                     .mr_lease_ns = 100000000,
                                     .ack_timeout = 8,
                                     .ack_retries = 7,
                                     .transport = "auto",
                                     .lane_cpu = FAB_ANY_CPU,
                                     .dc = {4, DC_SLOTS, 4 * DC_SLOTS, "lower dcis"},
                                     .rc = {4, SLOTS, 4 * SLOTS, "lower connections"},
                                     .sge = SGES,
                                     .inline_bytes = INLINE,
                                     .datagrams_sent = SENT,
                                     .datagrams_taken = TAKEN,
                                     .regions = 16,
                                     .largest_region = 1 << 20};
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
}

static bool was_asked(enum fab_qp_type type, struct fab_qp_cap cap)
{
    for (unsigned i = 0; i < asked_count; i++)
        if (asked[i].type == type && memcmp(&asked[i].cap, &cap, sizeof cap) == 0)
            return true;
    return false;
}

static enum probe_result result_of(const char *name)
{
    const struct probe_check *c = probe_find(&report, name);
    ck_assert_msg(c != NULL, "there is no check %s", name);
    return c->result;
}

START_TEST(each_queue_pair_of_an_agent_is_made_with_its_requests)
{
    struct fab *fab = open_soft();
    const uint32_t bytes = fab->caps.max_inline < INLINE ? fab->caps.max_inline : INLINE;
    refused_wr = 0;
    probe(fab);
    ck_assert(was_asked(FAB_QP_RC, (struct fab_qp_cap){SLOTS, 1, SGES, 1, bytes}));
    ck_assert(was_asked(FAB_QP_RC, (struct fab_qp_cap){1, 1, 1, 1, 0}));
    ck_assert(was_asked(FAB_QP_RC, (struct fab_qp_cap){SLOTS, 1, 1, 1, 0}));
    ck_assert(was_asked(FAB_QP_UD, (struct fab_qp_cap){SENT, TAKEN, 1, 1, 0}));
    ck_assert(was_asked(FAB_QP_DCI, (struct fab_qp_cap){DC_SLOTS, 0, SGES, 0, bytes}));
    ck_assert_int_eq(result_of("rc.metaserver"), PROBE_OK);
    close_soft(fab);
}
END_TEST

/* It has as many slots, and as many bytes, but not in one queue pair. */
START_TEST(a_device_that_refuses_a_queue_pair_of_an_agents_is_not_said_to_be_usable)
{
    struct probe_verdict verdict;
    struct fab *fab = open_soft();
    refused_wr = SLOTS;
    refused_inline = INLINE < fab->caps.max_inline ? INLINE : fab->caps.max_inline;
    probe(fab);
    ck_assert_int_eq(result_of("limits"), PROBE_OK);
    ck_assert_int_eq(result_of("rc.connect"), PROBE_FAILED);
    ck_assert_int_eq(result_of("dc.initiator"), PROBE_FAILED);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable);
    close_soft(fab);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_queue_pair_of_an_agent_is_made_with_its_requests)                                       \
    T(a_device_that_refuses_a_queue_pair_of_an_agents_is_not_said_to_be_usable)
KEDGE_CHECK_MAIN("agent.probe.queue_pairs", TESTS)
