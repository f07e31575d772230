/* SPDX-License-Identifier: Apache-2.0 */
/* The probe measures how long a READ of a silent peer takes. What took longer than leases allow for
 * is tried again, and the least counts: of those that met silence. Completions here are held back,
 * as a busy machine does, or are of another kind. */
#include "../../check_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "fabric/placement.h"
#include "fabric/provider.h"
#include "probe/probe.h"

enum { ACK_TIMEOUT = 8, ACK_RETRIES = 7, LOOKS = 3 };

static struct probe_report report;
static char dir[64];

/* Of the READs of the silent peer, in order. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    bool slow[LOOKS];    /* it takes three times as long as leases allow for */
    bool flushed[LOOKS]; /* it ends otherwise, at once */
    uint64_t bound_ns;
    unsigned looks;
} device;

static bool is_under_way(void)
{
    return report.checks > 0 && strcmp(report.check[report.checks - 1].name, "rc.silent_peer") == 0;
}

static int poll_cq(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    const int got = device.real->poll(cq, n, wc);
    for (int i = 0; i < got && is_under_way(); i++) {
        if (wc[i].status != IBV_WC_RETRY_EXC_ERR)
            continue;
        ck_assert_uint_lt(device.looks, LOOKS);
        if (device.slow[device.looks])
            (void)usleep((unsigned)(3 * device.bound_ns / 1000));
        if (device.flushed[device.looks])
            wc[i].status = IBV_WC_WR_FLUSH_ERR;
        device.looks++;
    }
    return got;
}

static struct fab *open_soft(void)
{
    struct base_errbuf err = {.text = ""};
    struct fab *fab;
    snprintf(dir, sizeof dir, "/dev/shm/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const struct fab_open_attr attr = {.device = dir};
    ck_assert_msg(fab_soft.open(&attr, &fab, &err) == 0, "%s", err.text);
    memset(&device, 0, sizeof device);
    device.real = fab->ops;
    device.ops = *device.real;
    device.ops.poll = poll_cq;
    device.bound_ns = fab_bound_ns(&fab->caps, ACK_TIMEOUT, ACK_RETRIES);
    fab->ops = &device.ops;
    return fab;
}

static void probe(struct fab *fab)
{
    const struct probe_settings s = {.source = "a test",
                                     .wrong = "",
                                     .provider = "soft",
                                     .attr = {.device = dir},
                                     .mr_lease_ns = BASE_NS_PER_S,
                                     .ack_timeout = ACK_TIMEOUT,
                                     .ack_retries = ACK_RETRIES,
                                     .transport = "auto",
                                     .lane_cpu = FAB_ANY_CPU,
                                     .dc = {4, 64, 256, "lower dcis"},
                                     .rc = {4, 64, 256, "lower connections"},
                                     .sge = 4,
                                     .inline_bytes = 64,
                                     .regions = 16,
                                     .largest_region = 1 << 20};
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
}

static void close_soft(struct fab *fab)
{
    char file[96];
    probe_report_fini(&report);
    fab->ops = device.real;
    ck_assert_int_eq(fab_close(fab), 0);
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    ck_assert_int_eq(rmdir(dir), 0);
}

static uint64_t number_of(const char *name)
{
    const struct probe_check *c = probe_find(&report, "rc.silent_peer");
    ck_assert_ptr_nonnull(c);
    for (unsigned i = 0; i < c->numbers; i++)
        if (strcmp(c->number[i].name, name) == 0)
            return c->number[i].value;
    ck_abort_msg("there is no number %s", name);
    return 0;
}

START_TEST(a_second_look_that_met_no_silence_does_not_count)
{
    struct fab *fab = open_soft();
    device.slow[0] = device.flushed[1] = true;
    probe(fab);
    ck_assert_uint_eq(device.looks, 2);
    ck_assert_uint_eq(number_of("times"), 1);
    ck_assert_uint_ge(number_of("measured_ns"), 3 * device.bound_ns);
    ck_assert_uint_eq(number_of("wc_status"), IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(probe_find(&report, "rc.silent_peer")->result, PROBE_WARNING);
    ck_assert_uint_gt(number_of("ack_timeout_wanted"), ACK_TIMEOUT);
    close_soft(fab);
}
END_TEST

/* How long soft itself takes depends on the machine. */
START_TEST(of_several_looks_that_met_silence_the_least_counts)
{
    struct fab *fab = open_soft();
    device.slow[0] = device.slow[1] = true;
    probe(fab);
    ck_assert_uint_eq(device.looks, 3);
    ck_assert_uint_eq(number_of("times"), 3);
    const uint64_t measured = number_of("measured_ns");
    ck_assert_int_eq(probe_find(&report, "rc.silent_peer")->result,
                     measured > device.bound_ns ? PROBE_WARNING : PROBE_OK);
    close_soft(fab);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_second_look_that_met_no_silence_does_not_count)                                            \
    T(of_several_looks_that_met_silence_the_least_counts)
KEDGE_CHECK_MAIN("agent.probe.silence", TESTS)
