/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: on soft all is well; on a device with faults it says what failed and goes on; on one
 * that does not answer it ends. */
#include "../../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/fault.h"
#include "fabric/placement.h"
#include "fabric/provider.h"
#include "probe/probe.h"

enum { MIB = 1 << 20, MILLION = 1000000 };
static struct probe_report report;
static struct probe_verdict verdict;
static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/dev/shm/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
    char file[96];
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    ck_assert_int_eq(rmdir(dir), 0); /* and so nothing else is left there */
}

static struct probe_settings usual(void)
{
    return (struct probe_settings){.source = "a test",
                                   .wrong = "",
                                   .provider = "soft",
                                   .attr = {.device = dir, /* soft takes nothing without: */
                                            .service = {.service_level = 3,
                                                        .traffic_class = 104,
                                                        .flow_label = 0x12345,
                                                        .pkey_index = 2}},
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
                                   .largest_region = MIB,
                                   .start_bytes = 42ull * MIB,
                                   .most_bytes = 100ull * MIB};
}

static const struct probe_check *check_of(const char *name)
{
    const struct probe_check *c = probe_find(&report, name);
    ck_assert_msg(c != NULL, "there is no check %s", name);
    return c;
}

static bool has_number(const char *name, const char *number, uint64_t *value)
{
    const struct probe_check *c = probe_find(&report, name);
    for (unsigned i = 0; c != NULL && i < c->numbers; i++)
        if (strcmp(c->number[i].name, number) == 0) {
            *value = c->number[i].value;
            return true;
        }
    return false;
}

static struct fab *open_soft(void)
{
    struct base_errbuf err;
    struct fab *fab;
    const struct fab_open_attr attr = {.device = dir};
    ck_assert_int_eq(fab_soft.open(&attr, &fab, &err), 0);
    return fab;
}

START_TEST(on_soft_everything_works_and_nothing_is_left)
{
    static const char *const names[] = {
        "opening",         "limits",          "rc.connect",      "rc.read",
        "rc.write",        "rc.write_imm",    "rc.send",         "rc.wake",
        "rc.fetch_add",    "rc.cmp_swap",     "rc.pieces",       "rc.list",
        "rc.addresses",    "rc.wrong_key",    "rc.repair",       "rc.srq_receive",
        "rc.write_inline", "ud.send",         "dc.target",       "dc.initiator",
        "dc.read",         "dc.write",        "dc.fetch_add",    "dc.cmp_swap",
        "dc.wrong_key",    "dc.wrong_dc_key", "lease",           "registering",
        "punched holes",   "destroying",      "rc.largest",      "rc.error_behind",
        "dc.largest",      "dc.targets",      "dc.error_behind", "dc.error_other_target",
        "placement",       "coverage",        "rc.reuse"};
    uint64_t value;
    make_dir();
    struct probe_settings s = usual();
    probe_run(&s, &report);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(check_of(names[i])->result == PROBE_OK, "%s: %s", names[i],
                      check_of(names[i])->found);
    for (unsigned i = 0; i < report.checks; i++) /* statuses are in words */
        ck_assert_ptr_null(strstr(report.check[i].found, "status "));
    ck_assert_ptr_null(probe_find(&report, "closing"));
    ck_assert(has_number("rc.read", "median_ns", &value) && value > 0);
    ck_assert(has_number("registering", "copy_16MiB_ns", &value) && value > 0);
    ck_assert(has_number("rc.silent_peer", "wc_status", &value) && value == IBV_WC_RETRY_EXC_ERR);
    ck_assert(has_number("dc.silent_peer", "wc_status", &value) && value == IBV_WC_RETRY_EXC_ERR);
    ck_assert(has_number("punched holes", "old_bytes", &value) && value == 0);
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable && verdict.dc);
    ck_assert_str_eq(verdict.sentence, "Kedge can run on this device: RC and DC");
    probe_report_fini(&report);
    remove_dir();
}
END_TEST

START_TEST(a_directory_that_is_not_there_is_not_made)
{
    struct stat st;
    make_dir();
    remove_dir();
    struct probe_settings s = usual();
    probe_run(&s, &report);
    ck_assert_int_eq(check_of("opening")->result, PROBE_OK);
    ck_assert_int_ne(stat(dir, &st), 0);
    ck_assert_int_ne(access(report.device, F_OK), 0); /* where it was tried instead */
    probe_report_fini(&report);
}
END_TEST

START_TEST(beside_an_agent_another_gid_is_taken)
{
    make_dir();
    struct fab *agent = open_soft();
    struct probe_settings s = usual();
    memcpy(s.attr.gid, agent->caps.gid, 16);
    probe_run(&s, &report);
    ck_assert_int_eq(check_of("opening")->result, PROBE_OK);
    ck_assert_ptr_nonnull(strstr(check_of("opening")->found, "in use by the agent"));
    ck_assert_mem_ne(report.gid, agent->caps.gid, 16);
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable);
    probe_report_fini(&report);
    ck_assert_int_eq(fab_close(agent), 0);
    remove_dir();
}
END_TEST

START_TEST(a_failed_check_does_not_stop_the_others)
{
    const struct fault_plan plan = {
        .seed = 1, .completion_error_ppm = MILLION, .status = IBV_WC_RETRY_EXC_ERR};
    struct fab *fab;
    make_dir();
    ck_assert_int_eq(fault_open(open_soft(), &plan, &fab), 0);
    struct probe_settings s = usual();
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    ck_assert_int_eq(check_of("rc.connect")->result, PROBE_OK);
    ck_assert_int_eq(check_of("rc.read")->result, PROBE_FAILED);
    ck_assert_ptr_nonnull(strstr(check_of("rc.read")->found, "RETRY_EXC_ERR"));
    ck_assert_int_eq(check_of("rc.write")->result, PROBE_FAILED);
    ck_assert_int_eq(check_of("dc.read")->result, PROBE_FAILED);
    ck_assert_int_eq(check_of("lease")->result, PROBE_OK);
    ck_assert_int_eq(check_of("registering")->result, PROBE_OK);
    ck_assert_int_eq(check_of("destroying")->result, PROBE_OK);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable && !verdict.dc);
    ck_assert_ptr_nonnull(strstr(verdict.sentence, "because rc.read failed"));
    ck_assert_int_eq(fab_close(fab), 0);
    probe_report_fini(&report);
    remove_dir();
}
END_TEST

START_TEST(a_device_to_which_reset_is_final_can_be_used_and_is_told_of)
{
    static const struct fault_plan plan = {.seed = 1, .resets_are_final = true};
    static const char *const names[] = {"rc.connect",      "rc.read",   "rc.write",
                                        "rc.addresses",    "rc.repair", "rc.wrong_key",
                                        "rc.error_behind", "ud.send",   "rc.srq_receive",
                                        "punched holes",   "dc.read",   "destroying"};
    struct base_errbuf err = {.text = ""};
    struct fab *fab;
    make_dir();
    ck_assert_int_eq(fault_open(open_soft(), &plan, &fab), 0);
    ck_assert_msg(probe_addresses(fab, &err) == 0, "%s", err.text);
    struct probe_settings s = usual();
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(check_of(names[i])->result == PROBE_OK, "%s: %s", names[i],
                      check_of(names[i])->found);
    ck_assert_int_eq(check_of("rc.reuse")->result, PROBE_WARNING);
    ck_assert_ptr_nonnull(strstr(check_of("rc.reuse")->found, "queue pairs cannot be reused"));
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable);
    ck_assert_int_eq(fab_close(fab), 0);
    probe_report_fini(&report);
    remove_dir();
}
END_TEST

static void open_with(const struct fault_plan *plan, struct fab **fab)
{
    make_dir();
    ck_assert_int_eq(fault_open(open_soft(), plan, fab), 0);
}

static void close_with(struct fab *fab)
{
    ck_assert_int_eq(fab_close(fab), 0);
    remove_dir();
}

START_TEST(a_device_without_atomics_can_be_used)
{
    static const struct fault_plan plan = {.seed = 1, .picky = true, .no_atomics = true};
    static const char *const names[] = {"rc.connect", "rc.read",    "rc.write",   "rc.addresses",
                                        "dc.target",  "dc.read",    "dc.targets", "rc.error_behind",
                                        "ud.send",    "registering"};
    static const char *const none[] = {"rc.fetch_add", "rc.cmp_swap", "dc.fetch_add",
                                       "dc.cmp_swap"};
    struct base_errbuf err = {.text = ""};
    struct fab *fab;
    open_with(&plan, &fab);
    ck_assert_msg(probe_addresses(fab, &err) == 0, "%s", err.text);
    struct probe_settings s = usual();
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(check_of(names[i])->result == PROBE_OK, "%s: %s", names[i],
                      check_of(names[i])->found);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(check_of(none[i])->result == PROBE_SKIPPED, "%s: %s", none[i],
                      check_of(none[i])->found);
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable && verdict.dc);
    probe_report_fini(&report);
    close_with(fab);
}
END_TEST

START_TEST(a_clock_that_the_devices_contradicts_is_told_of)
{
    static const struct fault_plan plan = {.seed = 1, .clock_drift_ppm = 20000},
                                   none = {.seed = 1, .no_clock = true};
    struct probe_settings s = usual();
    struct fab *fab;
    uint64_t value;
    open_with(&plan, &fab);
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    ck_assert_int_eq(check_of("clocks")->result, PROBE_WARNING);
    ck_assert_ptr_nonnull(strstr(check_of("clocks")->found, "and the device's differ by"));
    ck_assert(has_number("clocks", "off_devices_ppm", &value) && value > 10000);
    probe_report_fini(&report);
    close_with(fab);
    open_with(&none, &fab);
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    ck_assert(!has_number("clocks", "off_devices_ppm", &value));
    ck_assert_int_ne(check_of("clocks")->result, PROBE_FAILED);
    probe_report_fini(&report);
    close_with(fab);
}
END_TEST

START_TEST(only_a_refusal_proves_that_an_address_leads_nowhere)
{
    static const enum ibv_wc_status others[] = {IBV_WC_RETRY_EXC_ERR, IBV_WC_GENERAL_ERR,
                                                IBV_WC_LOC_PROT_ERR};
    unsigned untried = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) { /* each of the three WRITEs fails now and then */
        const struct fault_plan plan = {
            .seed = seed, .completion_error_ppm = MILLION / 3, .status = others[seed % 3]};
        struct base_errbuf err = {.text = ""};
        struct fab *fab;
        open_with(&plan, &fab);
        const int status = probe_addresses(fab, &err);
        ck_assert_int_eq(status != 0, fault_count(fab) > 0);
        ck_assert_ptr_null(strstr(err.text, "do not use this device"));
        ck_assert(status == 0 || strstr(err.text, "could not be tried") != NULL);
        untried += status != 0;
        close_with(fab);
    }
    ck_assert_uint_gt(untried, 8);
}
END_TEST

START_TEST(a_region_that_is_refused_at_its_address_is_not_there)
{
    static const struct fault_plan plan = {
        .seed = 1, .completion_error_ppm = MILLION, .status = IBV_WC_REM_ACCESS_ERR};
    struct base_errbuf err = {.text = ""};
    struct fab *fab;
    open_with(&plan, &fab);
    ck_assert_int_eq(probe_addresses(fab, &err), -EOPNOTSUPP);
    ck_assert_ptr_nonnull(strstr(err.text, "is not found at the address"));
    ck_assert_ptr_nonnull(strstr(err.text, "do not use this device"));
    close_with(fab);
}
END_TEST

/* How long soft takes depends on the machine, too: the report must agree with itself. */
START_TEST(a_device_with_a_timeout_of_its_own_is_told_of)
{
    static const struct fault_plan plan = {.seed = 1, .timeout = 1};
    uint64_t measured, least;
    struct fab *fab;
    open_with(&plan, &fab);
    struct probe_settings s = usual();
    s.ack_timeout = 14;
    s.mr_lease_ns = 10000000000;
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    ck_assert(has_number("rc.silent_peer", "measured_ns", &measured));
    ck_assert(has_number("rc.silent_peer", "least_ns", &least));
    ck_assert_uint_eq(least, 8 * (4096ull << 14));
    ck_assert_int_eq(check_of("rc.silent_peer")->result,
                     measured < least ? PROBE_WARNING : PROBE_OK);
    if (measured < least)
        ck_assert_ptr_nonnull(strstr(check_of("rc.silent_peer")->found, "sooner than ack_timeout"));
    probe_report_fini(&report);
    close_with(fab);
}
END_TEST

START_TEST(faults_now_and_then_are_survived)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const struct fault_plan plan = {.seed = seed,
                                        .post_error_ppm = MILLION / 200,
                                        .completion_error_ppm = MILLION / 200,
                                        .loss_ppm = MILLION / 100};
        struct fab *fab;
        make_dir();
        ck_assert_int_eq(fault_open(open_soft(), &plan, &fab), 0);
        struct probe_settings s = usual();
        s.wait_ms = 200;
        report = (struct probe_report){.port = 0};
        probe_device(fab, &s, &report);
        ck_assert_int_eq(check_of("destroying")->result, PROBE_OK);
        ck_assert(!report.stuck);
        ck_assert_int_eq(fab_close(fab), 0);
        remove_dir();
    }
}
END_TEST

/* ---- a device that takes control operations and never answers */

static int deaf_efd;

static void deaf_submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab, (void)ctl;
}

static int deaf_run(struct fab *fab)
{
    (void)fab;
    return 0;
}

static int deaf_fd(const struct fab *fab)
{
    (void)fab;
    return deaf_efd;
}

START_TEST(a_device_that_does_not_answer_ends_the_probe)
{
    static const struct fab_ops ops = {
        .name = "deaf", .submit = deaf_submit, .run = deaf_run, .ctl_fd = deaf_fd};
    struct fab fab = {.ops = &ops, .caps = {.transports = FAB_RC}};
    struct probe_settings s = usual();
    s.wait_ms = 20;
    deaf_efd = eventfd(0, EFD_CLOEXEC);
    report = (struct probe_report){.port = 0};
    probe_device(&fab, &s, &report);
    ck_assert(report.stuck);
    ck_assert_int_eq(check_of("objects")->result, PROBE_FAILED);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable);
    close(deaf_efd);
}
END_TEST

START_TEST(a_configuration_that_asks_for_too_much_is_refused_in_numbers)
{
    make_dir();
    struct probe_settings s = usual();
    s.dc.queue_pairs = 1u << 31;
    s.open_files = 1ull << 40;
    s.mr_lease_ns = 10000000;
    probe_run(&s, &report);
    ck_assert_int_eq(check_of("open files")->result, PROBE_WARNING);
    ck_assert_ptr_nonnull(strstr(check_of("open files")->found, "would not start"));
    ck_assert_int_eq(check_of("limits")->result, PROBE_FAILED);
    ck_assert_ptr_nonnull(strstr(check_of("limits")->found, "2147483648"));
    ck_assert_str_eq(probe_find(&report, "limits")->advice, "lower dcis in [pool]");
    ck_assert_int_eq(check_of("lease")->result, PROBE_FAILED);
    ck_assert_ptr_nonnull(strstr(probe_find(&report, "lease")->advice, "set mr_lease in [pool]"));
    ck_assert_int_eq(check_of("rc.read")->result, PROBE_OK);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable);
    probe_report_fini(&report);
    remove_dir();
}
END_TEST

/* How long soft takes depends on the machine: either way the report must agree with itself. */
START_TEST(a_device_that_tries_for_longer_than_leases_allow_is_told_of)
{
    const struct fab_caps caps = {.timeout_stretch = 1}; /* soft's */
    uint64_t measured, bound, wanted, times;
    struct probe_settings s = usual();
    make_dir();
    s.ack_timeout = 1;
    probe_run(&s, &report);
    ck_assert(has_number("rc.silent_peer", "measured_ns", &measured));
    ck_assert(has_number("rc.silent_peer", "bound_ns", &bound) &&
              bound == fab_bound_ns(&caps, 1, 7));
    ck_assert_int_eq(check_of("rc.silent_peer")->result,
                     measured > bound ? PROBE_WARNING : PROBE_OK);
    ck_assert(has_number("rc.silent_peer", "times", &times) && (measured <= bound || times == 3));
    if (measured > bound) {
        const char *advice = probe_find(&report, "rc.silent_peer")->advice;
        ck_assert(has_number("rc.silent_peer", "ack_timeout_wanted", &wanted));
        ck_assert_uint_ge(fab_bound_ns(&caps, (uint8_t)wanted, 7), measured);
        ck_assert_ptr_nonnull(strstr(advice, "set ack_timeout in [fabric]"));
    }
    probe_report_fini(&report);
    remove_dir();
}
END_TEST

START_TEST(the_transport_that_is_asked_for_is_the_one_that_counts)
{
    make_dir();
    struct probe_settings s = usual();
    s.transport = "rc";
    s.dc.queue_pairs = 1u << 31;
    probe_run(&s, &report);
    ck_assert_int_eq(check_of("limits")->result, PROBE_OK);
    ck_assert_ptr_nonnull(strstr(check_of("transport")->found, "would use RC"));
    probe_report_fini(&report);
    struct fab *fab = open_soft();
    fab->caps.transports &= ~(uint32_t)FAB_DC; /* as on rxe */
    s.transport = "dc";
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    ck_assert_int_eq(check_of("transport")->result, PROBE_FAILED);
    ck_assert_int_eq(check_of("dc")->result, PROBE_SKIPPED);
    ck_assert_int_eq(check_of("rc.read")->result, PROBE_OK);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable);
    s.transport = "auto";
    report = (struct probe_report){.port = 0};
    probe_device(fab, &s, &report);
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable && !verdict.dc);
    ck_assert_int_eq(fab_close(fab), 0);
    remove_dir();
}
END_TEST

START_TEST(a_provider_that_there_is_not_is_named)
{
    struct probe_settings s = usual();
    s.provider = "hard";
    probe_run(&s, &report);
    ck_assert_int_eq(check_of("provider")->result, PROBE_FAILED);
    probe_judge(&report, &verdict);
    ck_assert(!verdict.usable);
    ck_assert_ptr_nonnull(strstr(verdict.sentence, "\"hard\""));
    probe_report_fini(&report);
}
END_TEST

/* ---- locked memory */

static const struct probe_check *memlock(bool locks, uint64_t limit, bool exempt)
{
    struct probe_settings s = usual();
    report = (struct probe_report){.port = 0};
    probe_memlock(&report, &s, locks, limit, exempt);
    return probe_find(&report, "locked memory");
}

START_TEST(a_limit_of_locked_memory_is_held_against_what_the_agent_locks)
{
    const struct probe_check *c = memlock(true, 8 * MIB, false);
    ck_assert_int_eq(c->result, PROBE_WARNING);
    ck_assert_ptr_nonnull(strstr(c->found, "42 MiB"));
    ck_assert_ptr_nonnull(strstr(c->found, "only 8 MiB"));
    ck_assert_ptr_nonnull(strstr(c->found, "would not start"));
    ck_assert_ptr_nonnull(strstr(c->advice, "LimitMEMLOCK=infinity"));
    ck_assert_ptr_nonnull(strstr(c->advice, "/etc/security/limits.conf"));
    c = memlock(true, 50 * MIB, false);
    ck_assert_int_eq(c->result, PROBE_WARNING);
    ck_assert_ptr_nonnull(strstr(c->found, "workers would be refused"));
    ck_assert_int_eq(memlock(true, 100ull * MIB, false)->result, PROBE_OK);
    ck_assert_int_eq(memlock(true, RLIM_INFINITY, false)->result, PROBE_OK);
}
END_TEST

START_TEST(who_may_lock_all_or_locks_nothing_is_not_warned)
{
    const struct probe_check *c = memlock(true, 8 * MIB, true);
    ck_assert_int_eq(c->result, PROBE_OK);
    ck_assert_ptr_nonnull(strstr(c->found, "CAP_IPC_LOCK"));
    c = memlock(false, 8 * MIB, false);
    ck_assert_int_eq(c->result, PROBE_OK);
    ck_assert_ptr_nonnull(strstr(c->found, "locks no memory"));
}
END_TEST

START_TEST(a_verdict_names_locked_memory_as_its_condition)
{
    (void)memlock(true, 8 * MIB, false);
    report.transports = FAB_RC | FAB_DC;
    probe_judge(&report, &verdict);
    ck_assert(verdict.usable);
    ck_assert_str_eq(verdict.sentence,
                     "Kedge can run on this device, once more memory may be locked: RC and DC");
}
END_TEST

START_TEST(unlimited_numbers_can_be_read_by_everybody)
{
    struct base_text text;
    report = (struct probe_report){.port = 0};
    struct probe_check *c = probe_begin(&report, "limits", PROBE_FOR_RC);
    probe_number(c, "max_mr_bytes", UINT64_MAX);
    base_text_init(&text, 1 << 20);
    probe_print_json(&report, &text);
    ck_assert_int_eq(text.error, 0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&text), "\"max_mr_bytes\":9223372036854775807"));
    base_text_fini(&text);
}
END_TEST

/* ---- devices */

START_TEST(the_list_of_devices_and_its_status_agree)
{
    const struct fab_open_attr any = {.port = 0}, other = {.device = "no-such-device"};
    struct fab_devices d;
    struct base_errbuf err = {.text = ""};
    unsigned chosen = 0;
    int status = fab_devices_list(&any, &d, &err);
    for (uint32_t i = 0; i < d.count; i++) {
        chosen += d.item[i].chosen;
        ck_assert_str_ne(d.item[i].why, "");
    }
    ck_assert_uint_eq(chosen, status == 0 ? 1 : 0);
    ck_assert(status == 0 || err.text[0] != '\0');
    fab_devices_fini(&d);
    ck_assert_int_eq(fab_devices_list(&other, &d, &err), -ENODEV);
    for (uint32_t i = 0; i < d.count; i++)
        ck_assert(!d.item[i].chosen);
    fab_devices_fini(&d);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(on_soft_everything_works_and_nothing_is_left)                                                \
    T(a_directory_that_is_not_there_is_not_made)                                                   \
    T(beside_an_agent_another_gid_is_taken)                                                        \
    T(a_failed_check_does_not_stop_the_others)                                                     \
    T(a_device_to_which_reset_is_final_can_be_used_and_is_told_of)                                 \
    T(a_device_without_atomics_can_be_used)                                                        \
    T(a_clock_that_the_devices_contradicts_is_told_of)                                             \
    T(only_a_refusal_proves_that_an_address_leads_nowhere)                                         \
    T(a_region_that_is_refused_at_its_address_is_not_there)                                        \
    T(a_device_with_a_timeout_of_its_own_is_told_of)                                               \
    T(faults_now_and_then_are_survived)                                                            \
    T(a_device_that_does_not_answer_ends_the_probe)                                                \
    T(a_configuration_that_asks_for_too_much_is_refused_in_numbers)                                \
    T(a_device_that_tries_for_longer_than_leases_allow_is_told_of)                                 \
    T(the_transport_that_is_asked_for_is_the_one_that_counts)                                      \
    T(a_provider_that_there_is_not_is_named)                                                       \
    T(a_limit_of_locked_memory_is_held_against_what_the_agent_locks)                               \
    T(who_may_lock_all_or_locks_nothing_is_not_warned)                                             \
    T(a_verdict_names_locked_memory_as_its_condition)                                              \
    T(unlimited_numbers_can_be_read_by_everybody)                                                  \
    T(the_list_of_devices_and_its_status_agree)
KEDGE_CHECK_MAIN("agent.probe.probe", TESTS)
