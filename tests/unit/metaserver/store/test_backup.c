/* SPDX-License-Identifier: Apache-2.0 */
/* A store as a text, and back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "metaserver/backup.h"

static struct base_errbuf err;
static struct meta_backup_counts n;
static struct meta_backup_restorer by;

static struct meta_store *make_store(void)
{
    struct meta_store *s = meta_store_memory(NULL);
    struct meta_store_node node = {
        .id = "a.b-1",
        .incarnation = UINT32_MAX,
        .fingerprint = {.identity = UINT32_MAX, .count = 1, .print = {{UINT32_MAX, 7}}},
        .endpoint_count = 2,
        .endpoint = {{{0xfd, [15] = 1}, 0}, {{0xfd, [15] = 2}, 65535}}};
    struct meta_store_change change = {.revision = 1,
                                       .time_ms = 5,
                                       .who = "token \"x\"\n",
                                       .kind = "token",
                                       .name = "t",
                                       .after = "{\"scope\":\"admin\"}",
                                       .resource = "{\"scope\":\"admin\",\"hash\":\"00\"}"};
    ck_assert_int_eq(meta_store_put(s, &node, &err), 0);
    const struct meta_store_name name = {.tenant = "t",
                                         .name = "kv/\"17\"",
                                         .node = "a.b-1",
                                         .incarnation = UINT32_MAX,
                                         .grant = "kedge1.x"};
    struct meta_store_outcome out;
    ck_assert_int_eq(meta_store_commit(s, &(struct meta_store_txn){.publish = &name}, &out), 0);
    node = (struct meta_store_node){.id = "gone", .incarnation = 3, .expired = true};
    ck_assert_int_eq(meta_store_put(s, &node, &err), 0);
    ck_assert_int_eq(meta_store_change(s, &change, &err), 0);
    change = (struct meta_store_change){.revision = 2,
                                        .time_ms = 6,
                                        .who = "me",
                                        .kind = "window",
                                        .name = "w",
                                        .before = "{}",
                                        .after = NULL};
    ck_assert_int_eq(meta_store_change(s, &change, &err), 0);
    return s;
}

static void write_out(struct meta_store *s, struct base_text *out)
{
    base_text_init(out, 1 << 20);
    ck_assert_msg(meta_backup_write(s, 1234567, out, &n, &err) == 0, "%s", err.text);
}

START_TEST(what_is_restored_is_what_was_backed_up)
{
    struct meta_store *from = make_store(), *to = meta_store_memory(NULL);
    struct base_text text, again;
    write_out(from, &text);
    ck_assert_uint_eq(n.nodes, 2);
    ck_assert_uint_eq(n.resources, 1);
    ck_assert_uint_eq(n.tokens, 1);
    ck_assert_uint_eq(n.changes, 2);
    ck_assert_ptr_null(strstr(base_text_str(&text), "kedge1")); /* no grant */
    by = (struct meta_backup_restorer){.who = "uid 5", .wall_ms = 1234568};
    ck_assert_msg(meta_backup_restore(to, text.data, text.length, &by, &n, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(by.revision, 1000003);
    ck_assert_uint_eq(n.revision, 2);
    ck_assert_uint_eq(n.nodes, 2);
    ck_assert_uint_eq(n.tokens, 1);
    ck_assert_uint_eq(n.time_ms, 1234567);
    write_out(to, &again);
    const char *own = strstr(base_text_str(&again), "{\"change\":1000003,");
    const char *last = strstr(base_text_str(&text), "{\"lines\":");
    ck_assert_ptr_nonnull(own); /* follows what there was, and nothing else but the sum does */
    ck_assert_int_eq(own - again.data, last - text.data);
    ck_assert_int_eq(memcmp(again.data, text.data, (size_t)(own - again.data)), 0);
    ck_assert_ptr_nonnull(strstr(own, "\"time_ms\":1234568,\"who\":\"uid 5\",\"kind\":\"restore\","
                                      "\"name\":\"store\",\"before\":null,"
                                      "\"after\":\"{\\\"revision\\\":2}\"}\n{\"lines\""));
    base_text_fini(&text);
    base_text_fini(&again);
    meta_store_close(from);
    meta_store_close(to);
}
END_TEST

static int refuse_name(void *user, const struct meta_store_name *name)
{
    (void)user, (void)name;
    return -EXDEV;
}

static int pass_resource(void *user, const struct meta_store_resource *resource)
{
    (void)user, (void)resource;
    return 0;
}

static int pass_change(void *user, const struct meta_store_change *change)
{
    (void)user, (void)change;
    return 0;
}

/* As the version before wrote them. */
START_TEST(names_of_regions_of_an_older_backup_are_passed_over)
{
    static const char older[] =
        "{\"backup\":\"kedge-metad\",\"format\":1,\"version\":\"0.1.0\",\"time_"
        "ms\":1234567}\n"
        "{\"region\":\"kv\",\"tenant\":\"t\",\"owner\":\"a\",\"incarnation\":5,"
        "\"grant\":\"kedge1.x\"}\n"
        "{\"region\":\"kv\",\"tenant\":\"t\",\"owner\":\"a\",\"incarnation\":5,"
        "\"grant\":\"kedge1.x\"}\n"
        "{\"change\":1,\"time_ms\":5,\"who\":\"me\",\"kind\":\"window\",\"name"
        "\":\"w\",\"before\":\"{}\",\"after\":null}\n"
        "{\"region\":\"kv\",\"tenant\":\"t\",\"owner\":\"a\",\"incarnation\":5,"
        "\"grant\":\"kedge1.x\"}\n"
        "{\"lines\":5,\"sha256\":\"46d61dfe664a7977ff2c581e1a52998c4c601f21b454"
        "2f6fe0af3c07d6bf9a80\"}\n";
    const struct meta_store_visitor visitor = {pass_resource, pass_change, NULL, refuse_name};
    struct meta_store *to = meta_store_memory(NULL);
    by = (struct meta_backup_restorer){.who = "uid 5", .wall_ms = 1234568};
    ck_assert_msg(meta_backup_restore(to, older, sizeof older - 1, &by, &n, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(n.changes, 1);
    ck_assert_int_eq(meta_store_load_resources(to, &visitor, &err), 0);
    meta_store_close(to);
}
END_TEST

/* Also above those that followed a former restore of the same backup, in the meantime. */
START_TEST(a_restores_revision_is_above_all_that_can_have_been_used)
{
    static const struct {
        uint64_t wall_ms, above, revision;
    } cases[] = {
        {1234567, 0, 1000002},       {1234567 + 50, 0, 1000052},  {1, 0, 1000002},
        {1234567, 1000001, 1000002}, {1234567, 1000002, 1000003}, {1234567, 7000000, 7000001},
    };
    struct meta_store *from = make_store();
    struct base_text text;
    write_out(from, &text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct meta_store *to = meta_store_memory(NULL);
        by = (struct meta_backup_restorer){
            .who = "x", .wall_ms = cases[i].wall_ms, .above = cases[i].above};
        ck_assert_int_eq(meta_backup_restore(to, text.data, text.length, &by, &n, &err), 0);
        ck_assert_uint_eq(by.revision, cases[i].revision);
        meta_store_close(to);
    }
    by = (struct meta_backup_restorer){.who = "x", .wall_ms = UINT64_C(1) << 60};
    struct meta_store *to = meta_store_memory(NULL);
    ck_assert_int_eq(meta_backup_restore(to, text.data, text.length, &by, &n, &err), -ERANGE);
    meta_store_close(to);
    base_text_fini(&text);
    meta_store_close(from);
}
END_TEST

START_TEST(what_is_not_whole_or_was_changed_is_refused_and_nothing_is_replaced)
{
    struct meta_store *from = make_store(), *to = meta_store_memory(NULL);
    struct base_text text, empty, after;
    write_out(from, &text);
    write_out(to, &empty);
    for (size_t length = 0; length < text.length; length++) {
        char *part = strndup(text.data, length);
        ck_assert_int_eq(meta_backup_restore(to, part, length, &by, &n, &err), -EBADMSG);
        free(part);
    }
    for (size_t at = 0; at < text.length; at++) {
        char *changed = strndup(text.data, text.length);
        changed[at] = (char)(changed[at] == '1' ? '2' : '1');
        ck_assert_msg(meta_backup_restore(to, changed, text.length, &by, &n, &err) < 0, "%zu", at);
        free(changed);
    }
    write_out(to, &after);
    ck_assert_str_eq(base_text_str(&after), base_text_str(&empty));
    base_text_fini(&text);
    base_text_fini(&empty);
    base_text_fini(&after);
    meta_store_close(from);
    meta_store_close(to);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(names_of_regions_of_an_older_backup_are_passed_over)                                         \
    T(what_is_restored_is_what_was_backed_up)                                                      \
    T(a_restores_revision_is_above_all_that_can_have_been_used)                                    \
    T(what_is_not_whole_or_was_changed_is_refused_and_nothing_is_replaced)
KEDGE_CHECK_MAIN("metaserver backup", TESTS)
