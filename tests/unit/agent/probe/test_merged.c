/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of what merged requests are: lists of pieces of which some library moves the first one
 * alone. */
#include "../../check_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "fabric/placement.h"
#include "fabric/provider.h"
#include "probe/probe.h"

enum { MIB = 1 << 20 };
static struct probe_report report;
static char dir[] = "/dev/shm/kedge-test-XXXXXX";

static struct fab *open_soft(void)
{
    const struct fab_open_attr attr = {.device = dir};
    struct base_errbuf err;
    struct fab *fab;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(fab_soft.open(&attr, &fab, &err), 0);
    return fab;
}

static void close_soft(struct fab *fab)
{
    char file[sizeof dir + 8];
    ck_assert_int_eq(fab_close(fab), 0);
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    ck_assert_int_eq(rmdir(dir), 0); /* and so nothing else is left there */
}

static enum probe_result result_of(const char *name)
{
    const struct probe_check *c = probe_find(&report, name);
    ck_assert_msg(c != NULL, "there is no check %s", name);
    return c->result;
}

/* Of each request the first piece alone. */
static const struct fab_ops *unlisted;

static int post_first_pieces(struct fab_qp *qp, struct fab_wr *first, struct fab_wr **bad)
{
    for (struct fab_wr *wr = first; wr != NULL; wr = wr->next)
        wr->num_sge = wr->num_sge > 1 ? 1 : wr->num_sge;
    return unlisted->post_send(qp, first, bad);
}

static const struct probe_settings usual = {.source = "a test",
                                            .wrong = "",
                                            .provider = "soft",
                                            .mr_lease_ns = 100000000,
                                            .ack_timeout = 8,
                                            .ack_retries = 7,
                                            .transport = "auto",
                                            .lane_cpu = FAB_ANY_CPU,
                                            .dc = {4, 64, 256, "lower dcis"},
                                            .rc = {4, 64, 256, "lower connections"},
                                            .sge = 4,
                                            .inline_bytes = 64,
                                            .regions = 16,
                                            .largest_region = MIB};

static const char *const merged[] = {"rc.merged", "dc.merged"};

START_TEST(a_device_that_moves_all_pieces_of_a_list_may_merge)
{
    struct fab *fab = open_soft();
    probe_device(fab, &usual, &report);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(result_of(merged[i]), PROBE_OK);
    probe_report_fini(&report);
    close_soft(fab);
}
END_TEST

START_TEST(a_device_that_moves_the_first_piece_of_a_list_is_not_to_merge)
{
    struct fab *fab = open_soft();
    struct fab_ops ops = *fab->ops;
    unlisted = fab->ops;
    ops.post_send = post_first_pieces;
    fab->ops = &ops;
    probe_device(fab, &usual, &report);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(result_of(merged[i]), PROBE_FAILED);
        const struct probe_check *c = probe_find(&report, merged[i]);
        ck_assert_ptr_nonnull(strstr(c->found, "other bytes than were sent"));
    }
    ck_assert_int_eq(result_of("rc.write"), PROBE_OK);
    fab->ops = unlisted;
    probe_report_fini(&report);
    close_soft(fab);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_device_that_moves_all_pieces_of_a_list_may_merge)                                          \
    T(a_device_that_moves_the_first_piece_of_a_list_is_not_to_merge)
KEDGE_CHECK_MAIN("agent.probe.merged", TESTS)
