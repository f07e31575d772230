/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a probe as rdmactl reads it, and what becomes of the checks of the host. */
#include "../check_main.h"

#include <errno.h>
#include <string.h>

#include "ctl/probe.h"

static struct ctl_probe probe;
static struct base_errbuf err;

static int decode(const char *text)
{
    err.text[0] = '\0';
    return ctl_probe_decode(text, strlen(text), &probe, &err);
}

#define HEAD    "{\"report\":\"kedge-probe\",\"version\":1,\"provider\":\"verbs\","
#define VERDICT "\"verdict\":{\"usable\":true,\"rc\":true,\"dc\":false,\"sentence\":\"It runs\"}}"

START_TEST(a_report_is_taken_apart)
{
    ck_assert_int_eq(
        decode(HEAD
               "\"device\":\"mlx5_0\",\"gid\":\"::1\",\"more\":[1],"
               "\"candidates\":[{\"chosen\":true,\"device\":\"mlx5_0\",\"port\":2,\"gid\":\"::1\","
               "\"gid_kind\":\"RoCE v2\",\"why\":\"the first\"}],"
               "\"checks\":[{\"check\":\"rc.read\",\"result\":\"failed\",\"found\":"
               "\"no\\u0007\\u009b\\u202e\","
               "\"advice\":\"do\",\"numbers\":{\"median_ns\":7}},"
               "{\"check\":\"dc\",\"result\":\"skipped\",\"numbers\":{}}]," VERDICT),
        0);
    ck_assert_uint_eq(probe.checks, 2);
    ck_assert_str_eq(probe.check[0].name, "rc.read");
    ck_assert_int_eq(probe.check[0].level, CTL_FAIL);
    ck_assert_str_eq(probe.check[0].found, "no??\?"); /* it goes to a terminal */
    ck_assert_str_eq(probe.check[0].numbers, "{\"median_ns\":7}");
    ck_assert_int_eq(probe.check[1].level, CTL_SKIP);
    ck_assert_ptr_null(probe.check[1].numbers);
    ck_assert_uint_eq(probe.candidates, 1);
    ck_assert(probe.candidate[0].chosen);
    ck_assert_str_eq(probe.candidate[0].port, "2");
    ck_assert(probe.usable && probe.rc && !probe.dc);
    ck_assert_str_eq(probe.sentence, "It runs");
    ck_assert_ptr_nonnull(strstr(probe.rest, "\"more\":[1]"));
    ck_assert_ptr_null(strstr(probe.rest, "rc.read"));
    ctl_probe_fini(&probe);
}
END_TEST

START_TEST(what_is_no_report_is_refused)
{
    static const char *const wrong[] = {
        "",
        "ready",
        "[]",
        "{}",
        "{\"report\":\"kedge-probe\",\"version\":2,\"checks\":[]," VERDICT,
        "{\"report\":\"other\",\"version\":1,\"checks\":[]," VERDICT,
        HEAD "\"checks\":[]}",
        HEAD VERDICT,
        HEAD "\"checks\":[{\"check\":\"x\",\"result\":\"good\"}]," VERDICT,
        HEAD "\"checks\":[{\"result\":\"ok\",\"numbers\":{\"a\":1}}]," VERDICT,
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(decode(wrong[i]) == -EBADMSG, "taken: %s", wrong[i]);
        ck_assert_str_ne(err.text, "");
        ck_assert_uint_eq(probe.checks, 0);
    }
}
END_TEST

START_TEST(the_probe_stands_in_for_what_it_knows_better)
{
    struct ctl_check check[16];
    size_t all = ctl_checks_host(check, 16);
    size_t left = ctl_checks_leave(check, all, true);
    ck_assert_uint_eq(left, all - 5);
    for (size_t i = 0; i < left; i++) {
        ck_assert_str_ne(check[i].name, "locked memory");
        ck_assert_str_ne(check[i].name, "soft device"); /* the probe's is the settings' own */
    }
    all = ctl_checks_host(check, 16);
    left = ctl_checks_leave(check, all, false);
    ck_assert_uint_eq(left, all - 6);
    for (size_t i = 0; i < left; i++)
        ck_assert_str_ne(check[i].name, "soft device");
    ck_assert_str_eq(check[0].name, "kernel");
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_report_is_taken_apart)                                                                     \
    X(what_is_no_report_is_refused)                                                                \
    X(the_probe_stands_in_for_what_it_knows_better)
KEDGE_CHECK_MAIN("ctl.probe", TESTS)
