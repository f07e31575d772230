/* SPDX-License-Identifier: Apache-2.0 */
/* What rdmactl makes of tenants, windows and events, and what it sends. */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/manifest.h"
#include "ctl/nodes.h"
#include "ctl/resources.h"

static struct base_errbuf err;
static struct base_text out;
static uint64_t revision;

#define TENANT                                                                                     \
    "{\"name\":\"web\",\"revision\":7,\"uids\":[5,\"10-12\"],\"sessions\":3,\"vqps\":0,"           \
    "\"memory_bytes\":4294967296,\"window_bytes\":1000,\"colour\":{\"red\":1}}"

START_TEST(settings_are_read_page_by_page_and_kept_as_they_were)
{
    const struct resource_table *kind = resource_table_find("tenant");
    struct ctl_resources all = {.item = NULL};
    char next[32];
    const char *page = "{\"revision\":9,\"tenants\":[" TENANT "],\"next_cursor\":\"abc\"}";
    ck_assert_int_eq(ctl_decode_resources(kind, page, strlen(page), &all, next, sizeof next, &err),
                     0);
    ck_assert_str_eq(next, "abc");
    page = "{\"tenants\":[{\"name\":\"x\\u001b[2J\",\"revision\":8,\"uids\":[]}]}";
    ck_assert_int_eq(ctl_decode_resources(kind, page, strlen(page), &all, next, sizeof next, &err),
                     0);
    ck_assert_str_eq(next, "");
    ck_assert_uint_eq(all.count, 2);
    ck_assert_str_eq(all.item[0].name, "web");
    ck_assert_uint_eq(all.item[0].revision, 7);
    const char *const shown[] = {"5,10-12", "3", "-", "-", "4GiB", "1000", "-", "-", "-"};
    ck_assert_uint_eq(kind->fields, sizeof shown / sizeof shown[0]);
    for (size_t i = 0; i < kind->fields; i++)
        ck_assert_str_eq(all.item[0].value[i], shown[i]);
    ck_assert_str_eq(all.item[0].json, TENANT);
    ck_assert_str_eq(all.item[1].name, "x?[2J");
    ck_assert_str_eq(all.item[1].value[0], "-");
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"tenants\":{}}",
                                        "{\"tenants\":[1]}",
                                        "{\"tenants\":[{\"name\":\"x\"}]}",
                                        "{\"tenants\":[{\"revision\":1}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(
            ctl_decode_resources(kind, wrong[i], strlen(wrong[i]), &all, next, sizeof next, &err),
            -EBADMSG);
    ck_assert_uint_eq(all.count, 2);
    ctl_resources_fini(&all);
}
END_TEST

START_TEST(each_key_has_a_line_of_help_that_fits_a_terminal)
{
    static const char *const names[] = {"tenant", "window", "token", "node", "pool"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct resource_table *kind = resource_table_find(names[i]);
        ck_assert_uint_le(kind->fields, RESOURCE_FIELDS_MAX);
        for (size_t k = 0; k < kind->fields; k++) {
            ck_assert_msg(kind->field[k].help != NULL && kind->field[k].help[0] != '\0',
                          "%s of a %s", kind->field[k].name, names[i]);
            ck_assert_uint_le(strlen(kind->field[k].help), 80);
        }
    }
}
END_TEST

static int edit(const char *kind, const char *body, const char *const words[4])
{
    size_t count = 0;
    while (count < 4 && words[count] != NULL)
        count++;
    base_text_reset(&out);
    return ctl_edit_resource(resource_table_find(kind), body, body != NULL ? strlen(body) : 0,
                             words, count, &out, &revision, &err);
}
#define EDIT(kind, body, ...) edit(kind, body, (const char *const[4]){__VA_ARGS__})

START_TEST(set_changes_what_is_named_and_keeps_the_rest)
{
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_int_eq(EDIT("tenant", TENANT, "sessions=64", "memory_bytes=2MiB"), 0);
    ck_assert_uint_eq(revision, 7);
    ck_assert_str_eq(base_text_str(&out),
                     "{\"uids\":[5,\"10-12\"],\"sessions\":64,\"vqps\":0,\"memory_bytes\":2097152,"
                     "\"window_bytes\":1000,\"colour\":{\"red\":1}}");
    ck_assert_int_eq(EDIT("tenant", NULL, "vqps=9"), 0);
    ck_assert_uint_eq(revision, 0);
    ck_assert_str_eq(base_text_str(&out), "{\"uids\":[],\"vqps\":9}");
    ck_assert_int_eq(EDIT("node", NULL, "grace_ms=1500ms"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"grace_ms\":1500}");
    ck_assert_int_eq(EDIT("node", NULL, "grace_ms=1500"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"grace_ms\":1500}");
    ck_assert_int_eq(EDIT("tenant", NULL, "uids=1,20-30,5"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"uids\":[1,\"20-30\",5]}");
    ck_assert_int_eq(EDIT("tenant", TENANT, "uids="), 0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"uids\":[]"));
    ck_assert_int_eq(EDIT("window", NULL, "scope=tenant", "tenant=web", "bytes=0"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"scope\":\"tenant\",\"tenant\":\"web\",\"bytes\":0}");
    ck_assert_int_eq(EDIT("window", "{\"revision\":1,\"scope\":\"tenant\",\"tenant\":\"web\"}",
                          "scope=device", "tenant="),
                     0);
    ck_assert_str_eq(base_text_str(&out), "{\"scope\":\"device\"}");
    ck_assert_int_eq(EDIT("token", NULL, "scope=agent", "node=n1", "gids=fd00::1,10.0.0.1",
                          "expires=2027-01-31T00:00:00Z"),
                     0);
    ck_assert_str_eq(base_text_str(&out),
                     "{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00::1\",\"10.0.0.1\"],"
                     "\"expires\":\"2027-01-31T00:00:00Z\"}");
    ck_assert_int_eq(EDIT("token", "{\"revision\":1,\"expires\":\"x\"}", "expires=", "gids=7"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"gids\":[\"7\"]}");
    ck_assert_int_eq(EDIT("token", NULL, "expires=30d"), 0);
    ck_assert_uint_eq(strlen(base_text_str(&out)),
                      strlen("{\"expires\":\"2027-01-31T00:00:00Z\"}"));
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "{\"expires\":\"20"));
    base_text_fini(&out);
}
END_TEST

START_TEST(what_cannot_be_set_says_what_can)
{
    const struct {
        const char *word, *says;
    } wrong[] = {
        {"colour=red", "uids, sessions, vqps, mrs, memory_bytes"},
        {"sessions", "KEY=VALUE"},
        {"=5", "KEY=VALUE"},
        {"sessions=many", "a number such as 64"},
        {"sessions=-1", "a number such as 64"},
        {"sessions=", "a number such as 64"},
        {"memory_bytes=4GB", "a size such as 4GiB"},
        {"uids=5,", "ascending ranges of them, such as 1000,2000-2999"},
        {"uids=,5", "ascending ranges of them, such as 1000,2000-2999"},
        {"uids=root", "which are numbers below 4294967295"},
        {"uids=5,2999-2000", "ascending ranges"},
        {"uids=4294967295", "below 4294967295"},
    };
    base_text_init(&out, CTL_BODY_BYTES);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(EDIT("tenant", NULL, wrong[i].word), -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", err.text,
                      wrong[i].says);
    }
    ck_assert_int_eq(EDIT("token", NULL, "expires=30"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "or a duration such as 30d, not \"30\""));
    ck_assert_int_eq(EDIT("tenant", "{\"name\":\"web\"}", "sessions=1"), -EBADMSG);
    base_text_fini(&out);
}
END_TEST

static int describe(const char *json, const char *what)
{
    struct ctl_event e;
    int status = ctl_decode_event(json, strlen(json), &e, &err);
    if (status == 0) {
        ck_assert_str_eq(e.what, what);
        ctl_event_fini(&e);
    }
    return status;
}

START_TEST(events_say_what_has_changed)
{
#define EVENT(from, to)                                                                            \
    "{\"revision\":3,\"time\":\"t\",\"who\":\"me\",\"kind\":\"tenant\",\"name\":\"web\","          \
    "\"from\":" from ",\"to\":" to "}"
    ck_assert_int_eq(
        describe(EVENT("null", "{\"uids\":[5],\"vqps\":0,\"mrs\":4}"), "created, uids: 5, mrs: 4"),
        0);
    ck_assert_int_eq(describe(EVENT("{\"uids\":[5],\"mrs\":4,\"memory_bytes\":0}",
                                    "{\"uids\":[5],\"mrs\":5,\"memory_bytes\":1048576}"),
                              "mrs: 4 -> 5, memory_bytes: - -> 1MiB"),
                     0);
    ck_assert_int_eq(describe(EVENT("{\"a\":\"x\"}", "{}"), "a: x -> -"), 0);
    ck_assert_int_eq(describe(EVENT("{\"uids\":[]}", "null"), "deleted"), 0);
    ck_assert_int_eq(
        describe("{\"revision\":0,\"kind\":\"certificate\",\"name\":\"m\",\"from\":null,\"to\":{"
                 "\"of\":\"etcd\",\"state\":\"expiring\",\"ends\":\"2026-12-06T15:43:28.000Z\"}}",
                 "certificate for etcd expiring, ends at 2026-12-06T15:43:28.000Z"),
        0);
    ck_assert_int_eq(
        describe("{\"revision\":3,\"kind\":\"lease\",\"from\":{\"lease\":\"1-\\u001b-2\","
                 "\"force\":true},\"to\":null}",
                 "revocation of 1-?-2, by force"),
        0);
    ck_assert_int_eq(describe("{\"revision\":3,\"kind\":\"lease\",\"from\":{\"worker\":\"1-2\","
                              "\"force\":false},\"to\":null}",
                              "revocation of all of worker 1-2"),
                     0);
    ck_assert_int_eq(describe("{\"revision\":3,\"kind\":\"lease\",\"from\":{\"lease\":\"1-2-3\","
                              "\"force\":true,\"failed\":\"unknown-lease\"},\"to\":null}",
                              "revocation of 1-2-3, by force, failed: unknown-lease"),
                     0);
    ck_assert_int_eq(describe("{\"revision\":1000048,\"kind\":\"restore\",\"from\":null,"
                              "\"to\":{\"revision\":48}}",
                              "restored from a backup of revision 48"),
                     0);
    ck_assert_int_eq(describe("{\"revision\":60,\"kind\":\"restore\",\"name\":\"store\","
                              "\"from\":{\"revision\":48},\"to\":null}",
                              "the store was found put back to revision 48"),
                     0);
    ck_assert_int_eq(describe("{\"revision\":61,\"kind\":\"restore\",\"name\":\"store\","
                              "\"from\":{\"revision\":60,\"settled\":true},\"to\":null}",
                              "names of regions are settled since revision 60"),
                     0);
    ck_assert_int_eq(describe("{\"revision\":3,\"kind\":\"eclipse\",\"from\":{\"of\":[1, 2]},"
                              "\"to\":null}",
                              "{\"of\":[1,2]} -> null"),
                     0);
    ck_assert_int_eq(describe("{}", ""), -EBADMSG);
    ck_assert_int_eq(describe("x", ""), -EBADMSG);
}
END_TEST

/* What a text comes to: KIND/NAME@REVISION and the body of each. */
static int manifest(const char *text, char to[512])
{
    struct ctl_manifest m = {.item = NULL};
    int status = ctl_manifest_read(&m, text, strlen(text), &err);
    to[0] = '\0';
    for (size_t i = 0; i < m.count; i++)
        snprintf(to + strlen(to), 512 - strlen(to), "%s/%s@%llu%s ", m.item[i].kind->name,
                 m.item[i].name, (unsigned long long)m.item[i].revision, m.item[i].body);
    ctl_manifest_fini(&m);
    return status;
}

START_TEST(a_manifest_is_objects_with_kind_and_name)
{
    const struct {
        const char *text, *read;
    } cases[] = {
        {"[]", ""},
        {"[{\"kind\":\"tenant\",\"name\":\"a\",\"revision\":4,\"uids\":[1]},"
         "{\"name\":\"b\",\"kind\":\"window\"}]",
         "tenant/a@4{\"uids\":[1]} window/b@0{} "},
        {"{\"kind\":\"window\",\"name\":\"b\",\"ops\":1}", "window/b@0{\"ops\":1} "},
        {"[{\"kind\":\"tenant\",\"name\":\"a\",\"memory_bytes\":\"4GiB\",\"uids\":[\"5-6\"]}]",
         "tenant/a@0{\"memory_bytes\":4294967296,\"uids\":[\"5-6\"]} "},
        {"[{\"kind\":\"window\",\"name\":\"a\"},{\"kind\":\"tenant\",\"name\":\"a\"}]",
         "window/a@0{} tenant/a@0{} "},
    };
    char read[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(manifest(cases[i].text, read) == 0, "%s: %s", cases[i].text, err.text);
        ck_assert_str_eq(read, cases[i].read);
    }
}
END_TEST

START_TEST(a_manifest_takes_what_get_and_list_print)
{
    const struct {
        const char *text, *read;
    } cases[] = {
        {"{\"format_version\":1,\"kind\":\"tenant\",\"name\":\"a\",\"revision\":4,\"mrs\":0}",
         "tenant/a@4{\"mrs\":0} "},
        {"{\"format_version\":1,\"pools\":[{\"kind\":\"pool\",\"name\":\"a\",\"revision\":4}]}",
         "pool/a@4{} "},
        {"{\"format_version\":1,\"windows\":[{\"name\":\"a\"}],\"tenants\":[{\"name\":\"b\"}]}",
         "window/a@0{} tenant/b@0{} "},
        {"{\"format_version\":1,\"kind\":\"node\",\"id\":\"n\",\"revision\":9,\"incarnation\":3,"
         "\"state\":\"live\",\"expires_in_ms\":5,\"endpoints\":[],\"labels\":{\"a\":\"b\"},"
         "\"cordoned\":false,\"applied\":{\"why\":\"\"}}",
         "node/n@9{\"labels\":{\"a\":\"b\"},\"cordoned\":false} "},
        {"{\"kind\":\"token\",\"name\":\"t\",\"revision\":2,\"scope\":\"reader\"}",
         "token/t@2{\"scope\":\"reader\"} "},
    };
    char read[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(manifest(cases[i].text, read) == 0, "%s: %s", cases[i].text, err.text);
        ck_assert_str_eq(read, cases[i].read);
    }
}
END_TEST

/* Whatever the metaserver says of a node, only what can be set of it goes back. */
START_TEST(a_manifest_takes_all_that_is_printed_of_a_node)
{
    static const char answer[] =
        "{\"id\":\"n\",\"revision\":9,\"incarnation\":3,\"state\":\"live\",\"expires_in_ms\":5,"
        "\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"dc\"],\"mtu\":4096}],"
        "\"labels\":{\"a\":\"b\"},\"cordoned\":true,\"draining\":true,\"grace_ms\":7,"
        "\"reason\":\"r\",\"applied\":{\"revision\":9,\"seen\":9,\"behind\":false,\"sessions\":2,"
        "\"why\":\"w\"},\"fabric\":{\"state\":\"failing\",\"for_ms\":4,\"tried\":2,\"failing\":"
        "[{\"node\":\"m\",\"error\":\"RETRY_EXC_ERR\",\"for_ms\":4}],\"tried_by\":1,"
        "\"failed_by\":0}}";
    struct ctl_node node;
    struct base_text printed;
    char read[512];
    ck_assert_msg(ctl_decode_node(answer, sizeof answer - 1, &node, &err) == 0, "%s", err.text);
    node.set_revision = 9; /* which is asked for apart */
    base_text_init(&printed, CTL_BODY_BYTES);
    ctl_node_json(&printed, &node);
    ck_assert_ptr_nonnull(strstr(base_text_str(&printed), "\"fabric\":{\"state\":\"failing\""));
    ck_assert_msg(manifest(base_text_str(&printed), read) == 0, "%s: %s", base_text_str(&printed),
                  err.text);
    ck_assert_str_eq(read, "node/n@9{\"labels\":{\"a\":\"b\"},\"cordoned\":true,\"draining\":true,"
                           "\"grace_ms\":7,\"reason\":\"r\"} ");
    base_text_fini(&printed);
}
END_TEST

START_TEST(what_is_no_manifest_says_where)
{
    const struct {
        const char *text, *says;
    } wrong[] = {
        {"[{\"kind\":\"window\",\"name\":\"b\"},{\"kind\":\"planet\",\"name\":\"c\"}]",
         "[1]: there is no kind \"planet\": say tenant, window, node or pool"},
        {"[{\"kind\":\"window\"}]", "[0] has no name"},
        {"[{\"name\":\"b\"}]", "[0] has no kind, which is tenant, window, node or pool"},
        {"{\"tenents\":[{\"name\":\"b\"}]}",
         "tenents is no list of a kind that can be set: tenants,"},
        {"[5]", "[0] is no object"},
        {"{}", "the object has no kind"},
        {"{\"id\":\"n\",\"endpoints\":[]}", "the object has no kind"},
        {"{\"name\":\"b\",\"pools\":[\"own\"]}", "the object has no kind"},
        {"{\"name\":\"b\",\"labels\":[\"x\"]}", "the object has no kind"},
        {"5", "not JSON"},
        {"", "it is empty"},
        {"kind: tenant\nname: a\nsessions: 16MB\n", "sessions is a decimal number"},
        {"kind: tenant\nname: a\n---\nkind: planet\nname: b\n", "document 2: there is no kind"},
        {"[", "not JSON"},
        {"[{\"kind\":\"pool\",\"name\":\"b\"},{\"kind\":\"pool\",\"name\":\"b\"}]",
         "[1]: pool b is there twice"},
        {"{\"tenants\":[{\"kind\":\"window\",\"name\":\"b\"}]}", "tenants[0] is a window"},
        {"{\"tenants\":[],\"events\":[]}", "events is no list"},
        {"{\"format_version\":2,\"tenants\":[]}", "format_version"},
        {"[{\"kind\":\"pool\",\"name\":\"b\",\"revision\":\"4\"}]", "[0]: revision must be"},
        {"[{\"kind\":\"token\",\"name\":\"b\"}]", "rdmactl token create"},
        {"[{\"kind\":\"tenant\",\"name\":\"b\",\"memory_bytes\":\"much\"}]",
         "[0]: memory_bytes must be a size such as 4GiB"},
    };
    char read[512];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(manifest(wrong[i].text, read) == -EINVAL, "%s", wrong[i].text);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", err.text,
                      wrong[i].says);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(settings_are_read_page_by_page_and_kept_as_they_were)                                        \
    T(each_key_has_a_line_of_help_that_fits_a_terminal)                                            \
    T(set_changes_what_is_named_and_keeps_the_rest)                                                \
    T(what_cannot_be_set_says_what_can)                                                            \
    T(events_say_what_has_changed)                                                                 \
    T(a_manifest_is_objects_with_kind_and_name)                                                    \
    T(a_manifest_takes_what_get_and_list_print)                                                    \
    T(a_manifest_takes_all_that_is_printed_of_a_node)                                              \
    T(what_is_no_manifest_says_where)
KEDGE_CHECK_MAIN("ctl.settings", TESTS)
