/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/compare.h"

static struct base_errbuf err;

/* "sessions: - -> 64, vqps: 4 -> -" */
static const char *compare(const char *kind, const char *there, const char *wanted)
{
    static char text[1024];
    struct ctl_changes c;
    size_t used = 0;
    ck_assert_msg(ctl_compare(resource_table_find(kind), there, wanted, &c, &err) == 0, "%s",
                  err.text);
    text[0] = '\0';
    for (size_t i = 0; i < c.count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s: %s -> %s", i > 0 ? ", " : "",
                             c.change[i].field->name, c.change[i].before, c.change[i].after);
    ctl_changes_fini(&c);
    return text;
}

START_TEST(what_means_the_same_is_no_change)
{
    ck_assert_str_eq(compare("tenant",
                             "{\"name\":\"t\",\"revision\":3,\"uids\":[5,\"7-9\"],\"sessions\":0}",
                             "{\"uids\":[\"7-9\",5]}"),
                     "");
    ck_assert_str_eq(compare("node",
                             "{\"labels\":{\"a\":\"1\",\"b\":\"2\"},\"cordoned\":false,"
                             "\"draining\":false}",
                             "{\"labels\":{\"b\":\"2\",\"a\":\"1\"}}"),
                     "");
    ck_assert_str_eq(compare("pool", "{\"nodes\":{},\"number\":77,\"tenants\":[\"a\",\"b\"]}",
                             "{\"nodes\":{},\"tenants\":[\"b\",\"a\"]}"),
                     "");
}
END_TEST

START_TEST(what_is_left_out_gets_its_default)
{
    ck_assert_str_eq(
        compare("tenant", "{\"uids\":[],\"vqps\":4,\"memory_bytes\":65536}", "{\"sessions\":64}"),
        "sessions: - -> 64, vqps: 4 -> -, memory_bytes: 64KiB -> -");
    ck_assert_str_eq(compare("pool", "{\"nodes\":{\"zone\":\"a\"},\"grace_ms\":0}",
                             "{\"nodes\":{},\"spares\":0}"),
                     "nodes: zone=a -> all, spares: - -> 0, grace_ms: 0 -> -");
    ck_assert_str_eq(
        compare("pool", "{\"nodes\":{},\"number\":77}", "{\"nodes\":{},\"number\":78}"),
        "number: 77 -> 78");
}
END_TEST

START_TEST(of_what_is_not_there_all_that_is_said_is_new)
{
    ck_assert_str_eq(compare("window", NULL, "{\"scope\":\"device\",\"bytes\":1024}"),
                     "scope: - -> device, bytes: - -> 1KiB");
    ck_assert_str_eq(compare("pool", NULL, "{\"nodes\":{}}"), "nodes: - -> all");
}
END_TEST

START_TEST(what_would_be_refused_says_why)
{
    static const struct {
        const char *kind, *wanted, *says;
    } wrong[] = {
        {"tenant", "{\"uidz\":[1]}", "uidz: unknown field"},
        {"tenant", "{\"uids\":[\"9-7\"]}", "uids[0]"},
        {"tenant", "{\"memory_bytes\":1}", "memory_bytes: must be 0 or at least 65536"},
        {"pool", "{\"nodes\":{},\"mtu\":1000}", "mtu: must be 256, 512"},
        {"pool", "{}", "nodes"},
        {"window", "{\"scope\":\"planet\"}", "scope"},
        {"node", "{\"draining\":true}", "cordoned: must be true"},
        {"node", "{\"cordoned\":true,\"grace_ms\":5}", "grace_ms: is for a node that is draining"},
        {"node", "{\"reason\":\"r\"}", "reason: is for a node that is cordoned"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ctl_changes c;
        ck_assert_int_eq(
            ctl_compare(resource_table_find(wrong[i].kind), NULL, wrong[i].wanted, &c, &err),
            -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "%s", err.text);
        ck_assert_int_eq(
            ctl_wanted_check(resource_table_find(wrong[i].kind), wrong[i].wanted, &err), -EINVAL);
    }
    ck_assert_int_eq(ctl_wanted_check(resource_table_find("node"),
                                      "{\"cordoned\":true,\"draining\":true,\"grace_ms\":0}", &err),
                     0);
    struct ctl_changes c;
    ck_assert_int_eq(ctl_compare(resource_table_find("tenant"), "[]", "{}", &c, &err), -EBADMSG);
    ck_assert_int_eq(
        ctl_compare(resource_table_find("tenant"), "{\"sessions\":\"x\"}", "{}", &c, &err),
        -EBADMSG);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(what_means_the_same_is_no_change)                                                            \
    X(what_is_left_out_gets_its_default)                                                           \
    X(of_what_is_not_there_all_that_is_said_is_new)                                                \
    X(what_would_be_refused_says_why)
KEDGE_CHECK_MAIN("ctl.compare", TESTS)
