/* SPDX-License-Identifier: Apache-2.0 */
/* The probe where there may be no more objects of the device. */
#include "../../check_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fault.h"
#include "probe/probe.h"

static const struct probe_check *first_that_failed(const struct probe_report *r)
{
    for (unsigned i = 0; i < r->checks; i++)
        if (r->check[i].result == PROBE_FAILED)
            return &r->check[i];
    return NULL;
}

START_TEST(a_limit_of_an_rdma_cgroup_is_named_with_what_to_raise)
{
    static const struct fault_plan plan = {.seed = 1, .max_objects = 3};
    static const struct probe_settings s = {.source = "a test",
                                            .wrong = "",
                                            .provider = "soft",
                                            .mr_lease_ns = 100000000,
                                            .ack_timeout = 8,
                                            .ack_retries = 7,
                                            .transport = "auto"};
    static struct probe_report report;
    char dir[] = "/dev/shm/kedge-test-XXXXXX", file[sizeof dir + 8];
    struct base_errbuf err;
    struct fab *fab;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const struct fab_open_attr attr = {.device = dir};
    ck_assert_int_eq(fab_soft.open(&attr, &fab, &err), 0);
    ck_assert_int_eq(fault_open(fab, &plan, &fab), 0);
    probe_device(fab, &s, &report);
    const struct probe_check *failed = first_that_failed(&report);
    ck_assert_ptr_nonnull(failed);
    ck_assert_ptr_nonnull(strstr(failed->advice, "raise hca_object and hca_handle in rdma.max"));
    probe_report_fini(&report);
    ck_assert_int_eq(fab_close(fab), 0); /* and nothing is left of what could be made */
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    (void)rmdir(dir);
}
END_TEST

#define TESTS(T) T(a_limit_of_an_rdma_cgroup_is_named_with_what_to_raise)
KEDGE_CHECK_MAIN("agent.probe.limits", TESTS)
