/* SPDX-License-Identifier: Apache-2.0 */
/* Resources from JSON: what is wrong is named, with what it must be; and what is right is written
 * as it was read. */
#include "schema/resource_read.h"

#include <stdio.h>
#include <string.h>

#include "../check_main.h"
#include "base/text.h"

static struct resource_violation wrong;
static union {
    struct resource_tenant tenant;
    struct resource_window window;
    struct resource_token token;
    struct resource_node node;
    struct resource_pool pool;
} is;

static int read_text(enum resource_kind kind, const char *text, uint32_t types, bool stored)
{
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    ck_assert_msg(root != NULL, "%s: %s", text, error.text);
    memset(&wrong, 0, sizeof wrong);
    const int status = resource_read(resource_table(kind), root, types, stored, &is, &wrong);
    json_decref(root);
    return status;
}

static void stays(enum resource_kind kind, const char *text)
{
    struct base_text out;
    char whole[1024];
    base_text_init(&out, sizeof whole);
    ck_assert_msg(read_text(kind, text, RESOURCE_TYPES_ALL, false) == 0, "%s: %s", text,
                  wrong.detail);
    resource_write(&out, resource_table(kind), &is);
    snprintf(whole, sizeof whole, "{%s}", base_text_str(&out));
    ck_assert_str_eq(whole, text);
    ck_assert(resource_same(resource_table(kind), &is, &is));
    base_text_fini(&out);
}

START_TEST(what_is_read_is_written_as_it_was)
{
    stays(RESOURCE_TENANT, "{\"uids\":[5,\"1000-1999\"],\"sessions\":3,\"vqps\":0,\"mrs\":0,"
                           "\"memory_bytes\":65536,\"window_bytes\":0,\"window_ops\":1,"
                           "\"control_ops_per_s\":9007199254740992}");
    stays(RESOURCE_WINDOW, "{\"scope\":\"destination\",\"node\":\"n-1\",\"pool\":\"gold\","
                           "\"bytes\":0,\"ops\":7}");
    stays(RESOURCE_WINDOW,
          "{\"scope\":\"tenant\",\"tenant\":\"web\",\"gid\":\"fd00::1\",\"bytes\":1,\"ops\":0}");
    stays(RESOURCE_TOKEN, "{\"scope\":\"worker\",\"node\":\"n\",\"gids\":[\"fd00::2\"],"
                          "\"tenant\":\"web\",\"expires\":\"2027-01-31T00:00:00Z\"}");
    stays(RESOURCE_NODE, "{\"labels\":{\"rack\":\"7\",\"zone\":\"a\"},\"cordoned\":true,"
                         "\"draining\":false,\"grace_ms\":5,\"reason\":\"a \\\"disk\\\"\"}");
    stays(RESOURCE_NODE, "{\"labels\":{},\"cordoned\":false,\"draining\":false}");
    stays(RESOURCE_POOL, "{\"nodes\":{\"zone\":\"a\"},\"spares\":0,\"grace_ms\":0,\"mtu\":512,"
                         "\"tenants\":[\"web\",\"db\"]}");
}
END_TEST

START_TEST(what_is_wrong_is_named_with_what_it_must_be)
{
    static const struct {
        enum resource_kind kind;
        const char *text, *field, *detail;
    } cases[] = {
        {RESOURCE_TENANT, "{\"uids\":{}}", "uids",
         "must be an array of at most 32 uids or ranges of uids"},
        {RESOURCE_TENANT, "{\"uids\":[1,\"5-4\"]}", "uids[1]",
         "must be a uid, which is a number without quotes, or a range of them in quotes, such as "
         "\"1000-1999\"; below 4294967295"},
        {RESOURCE_TENANT, "{\"vqps\":1.5}", "vqps",
         "must be an integer from 0 to 9007199254740992"},
        {RESOURCE_WINDOW, "{}", "scope", "must be \"device\", \"destination\" or \"tenant\""},
        {RESOURCE_WINDOW, "{\"scope\":\"device\",\"gid\":\"::\"}", "gid",
         "must be a unicast IPv6 address"},
        {RESOURCE_WINDOW, "{\"scope\":\"device\",\"node\":\"N\"}", "node", "must be a node's id"},
        {RESOURCE_TOKEN, "{\"scope\":\"rack\"}", "scope",
         "must be \"reader\", \"operator\", \"admin\", \"agent\" or \"worker\""},
        {RESOURCE_TOKEN, "{\"scope\":\"agent\",\"gids\":[\"x\"]}", "gids[0]",
         "must be an IPv6 address"},
        {RESOURCE_TOKEN, "{\"scope\":\"agent\",\"expires\":\"2027-02-30T00:00:00Z\"}", "expires",
         "must be a time in UTC such as \"2027-01-31T00:00:00Z\""},
        {RESOURCE_NODE, "{\"labels\":{\"-\":\"a\"}}", "labels.-",
         "must be a key and a string, each of at most 63 of A-Z, a-z, 0-9, '.', '_' and '-' (a "
         "key '/' too), with a letter or digit at both ends"},
        {RESOURCE_NODE, "{\"cordoned\":1}", "cordoned", "must be true or false"},
        {RESOURCE_NODE, "{\"grace_ms\":9007199255}", "grace_ms",
         "must be an integer from 0 to 9007199254"},
        {RESOURCE_NODE, "{\"reason\":5}", "reason", "must be a string of at most 127 bytes"},
        {RESOURCE_POOL, "{}", "nodes",
         "is missing: say which nodes have the pool, by labels such as {\"zone\": \"a\"}, or {} "
         "for all"},
        {RESOURCE_POOL, "{\"nodes\":{},\"dcis\":1}", "dcis", "must be an integer from 2 to 32"},
        {RESOURCE_POOL, "{\"nodes\":{},\"tenants\":[7]}", "tenants[0]", "must be a tenant's name"},
        {RESOURCE_POOL, "{\"nodes\":{},\"tenants\":7}", "tenants",
         "must be an array of at most 64 tenants' names"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(read_text(cases[i].kind, cases[i].text, RESOURCE_TYPES_ALL, false) != 0, "%s",
                      cases[i].text);
        ck_assert_str_eq(wrong.field, cases[i].field);
        ck_assert_str_eq(wrong.detail, cases[i].detail);
    }
}
END_TEST

START_TEST(what_is_not_asked_for_is_not_looked_at)
{
    static const char pool[] = "{\"later\":1,\"nodes\":7,\"tenants\":[0],\"dcis\":3}";
    ck_assert_int_eq(read_text(RESOURCE_POOL, pool, RESOURCE_TYPES_NUMBERS, false), 0);
    ck_assert_uint_eq(is.pool.numbers.dcis, 3);
    ck_assert_uint_eq(is.pool.numbers.spares, RESOURCE_UNSAID);
    ck_assert_uint_eq(is.pool.tenants.count, 0);
    ck_assert_int_ne(read_text(RESOURCE_POOL, pool, RESOURCE_TYPES_ALL, false), 0);
    ck_assert_int_eq(read_text(RESOURCE_POOL, "{}", RESOURCE_TYPES_ALL, true), 0); /* of old */
}
END_TEST

START_TEST(an_integer_in_its_range_can_still_be_wrong)
{
    const struct resource_table *pool = resource_table(RESOURCE_POOL);
    char must[RESOURCE_MUST_BYTES];
    ck_assert_int_eq(
        read_text(RESOURCE_POOL, "{\"nodes\":{},\"mtu\":1500}", RESOURCE_TYPES_ALL, false), 0);
    const struct resource_field *f = resource_numbers_check(pool, &is);
    ck_assert_ptr_eq(f, resource_field_find(pool, "mtu"));
    ck_assert_str_eq(resource_number_must(f, must), "must be 256, 512, 1024, 2048 or 4096");
    ck_assert_int_eq(
        read_text(RESOURCE_TENANT, "{\"memory_bytes\":4096}", RESOURCE_TYPES_ALL, false), 0);
    f = resource_numbers_check(resource_table(RESOURCE_TENANT), &is);
    ck_assert_str_eq(resource_number_must(f, must), "must be 0 or at least 65536");
}
END_TEST

START_TEST(what_differs_in_one_field_is_not_the_same)
{
    const struct resource_table *t = resource_table(RESOURCE_POOL);
    static const char *const pools[] = {
        "{\"nodes\":{}}", "{\"nodes\":{\"a\":\"b\"}}", "{\"nodes\":{},\"spares\":0}",
        "{\"nodes\":{},\"tenants\":[\"a\"]}", "{\"nodes\":{},\"tenants\":[\"b\"]}"};
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        for (size_t k = 0; k < sizeof pools / sizeof pools[0]; k++) {
            ck_assert_int_eq(read_text(RESOURCE_POOL, pools[i], RESOURCE_TYPES_ALL, false), 0);
            const struct resource_pool one = is.pool;
            ck_assert_int_eq(read_text(RESOURCE_POOL, pools[k], RESOURCE_TYPES_ALL, false), 0);
            ck_assert_int_eq(resource_same(t, &one, &is), i == k);
        }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_read_is_written_as_it_was)                                                           \
    T(what_is_wrong_is_named_with_what_it_must_be)                                                 \
    T(what_is_not_asked_for_is_not_looked_at)                                                      \
    T(an_integer_in_its_range_can_still_be_wrong)                                                  \
    T(what_differs_in_one_field_is_not_the_same)
KEDGE_CHECK_MAIN("schema resource read", TESTS)
