/* SPDX-License-Identifier: Apache-2.0 */
/* Which windows are noted as without effect. */
#include "../check_main.h"

#include <stdio.h>

#include "ctl/window_notes.h"

enum { MOST = 32 };
static struct ctl_window window[MOST];
static size_t count;
static struct base_text out;

/* As the metaserver says one: its name, and its members behind that. */
static struct ctl_window *add(const char *kind, const char *name, const char *members)
{
    char json[512];
    struct ctl_resource resource;
    struct base_errbuf err;
    const struct resource_table *table = resource_table_find(kind);
    ck_assert_uint_lt(count, MOST);
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"revision\":1,%s}", name, members);
    ck_assert_msg(ctl_decode_resource(table, json, strlen(json), &resource, &err) == 0, "%s",
                  err.text);
    const bool is_one = ctl_window_of(table, &resource, &window[count]);
    ctl_resource_fini(&resource);
    return is_one ? &window[count++] : NULL;
}
#define DEVICE "\"scope\":\"device\","
#define EACH   "\"scope\":\"destination\","

static void notes(const char *text)
{
    base_text_init(&out, 1 << 16);
    ctl_window_notes(window, count, &out);
    ck_assert_str_eq(base_text_str(&out), text);
    base_text_fini(&out);
}

static void setup(void)
{
    count = 0;
}

START_TEST(a_window_that_is_wider_than_what_it_is_within_is_noted)
{
    setup();
    add("window", "all", DEVICE "\"bytes\":1048576,\"ops\":0");
    struct ctl_window *each = add("window", "each", EACH "\"bytes\":4194304,\"ops\":9");
    notes(""); /* nothing of this was set just now */
    each->is_new = true;
    notes("note: window each: bytes=4MiB has no effect as long as window all (device) has "
          "bytes=1MiB: the narrower one holds\n");
    each->bytes = 1048576; /* the same is no contradiction */
    notes("");
    each->bytes = 0;
    notes("");
}
END_TEST

START_TEST(a_window_that_makes_others_useless_is_noted_of_them)
{
    setup();
    struct ctl_window *all = add("window", "all", DEVICE "\"bytes\":0,\"ops\":4");
    add("window", "one", EACH "\"node\":\"n1\",\"bytes\":4096,\"ops\":8");
    add("tenant", "web", "\"uids\":[],\"window_bytes\":0,\"window_ops\":5");
    ck_assert_ptr_null(add("tenant", "db", "\"uids\":[],\"window_bytes\":0,\"window_ops\":0"));
    all->is_new = true;
    notes("note: window one: ops=8 has no effect as long as window all (device) has ops=4: the "
          "narrower one holds\n"
          "note: tenant web: window_ops=5 has no effect as long as window all (device) has ops=4: "
          "the narrower one holds\n");
}
END_TEST

START_TEST(of_several_the_narrowest_is_named)
{
    setup();
    add("window", "all", DEVICE "\"bytes\":0,\"ops\":6");
    add("window", "each", EACH "\"bytes\":0,\"ops\":5");
    add("window", "of-web", "\"scope\":\"tenant\",\"tenant\":\"web\",\"bytes\":0,\"ops\":1");
    add("window", "n1", EACH "\"node\":\"n1\",\"bytes\":0,\"ops\":7")->is_new = true;
    notes("note: window n1: ops=7 has no effect as long as window each (each destination) has "
          "ops=5: the narrower one holds\n");
}
END_TEST

START_TEST(windows_of_different_things_do_not_concern_each_other)
{
    setup();
    add("window", "n1", EACH "\"node\":\"n1\",\"bytes\":0,\"ops\":1")->is_new = true;
    add("window", "n2", EACH "\"node\":\"n2\",\"bytes\":0,\"ops\":2")->is_new = true;
    add("window", "g", EACH "\"gid\":\"fd00::1\",\"bytes\":0,\"ops\":3")->is_new = true;
    add("window", "n2-fast", EACH "\"node\":\"n2\",\"pool\":\"fast\",\"bytes\":0,\"ops\":1")
        ->is_new = true; /* which others' workers do not see */
    add("window", "each", EACH "\"bytes\":0,\"ops\":4")->is_new = true;
    add("window", "web", "\"scope\":\"tenant\",\"tenant\":\"web\",\"bytes\":0,\"ops\":5")->is_new =
        true;
    add("window", "db", "\"scope\":\"tenant\",\"tenant\":\"db\",\"bytes\":0,\"ops\":6")->is_new =
        true;
    add("window", "all", DEVICE "\"bytes\":0,\"ops\":7")->is_new = true;
    notes("");
}
END_TEST

START_TEST(a_window_of_one_pool_is_within_that_of_all)
{
    setup();
    add("window", "n2", EACH "\"node\":\"n2\",\"bytes\":0,\"ops\":2");
    add("window", "n2-fast", EACH "\"node\":\"n2\",\"pool\":\"fast\",\"bytes\":0,\"ops\":3")
        ->is_new = true;
    notes("note: window n2-fast: ops=3 has no effect as long as window n2 (destination) has ops=2: "
          "the narrower one holds\n");
}
END_TEST

START_TEST(a_tenants_own_window_and_one_of_that_tenant_are_of_the_same)
{
    setup();
    add("tenant", "web", "\"uids\":[],\"window_bytes\":1024,\"window_ops\":0")->is_new = true;
    add("window", "w", "\"scope\":\"tenant\",\"tenant\":\"web\",\"bytes\":2048,\"ops\":0");
    notes("note: window w: bytes=2KiB has no effect as long as tenant web (tenant) has "
          "window_bytes=1KiB: the narrower one holds\n");
}
END_TEST

START_TEST(a_window_that_bounds_nothing_is_noted)
{
    setup();
    add("window", "w", DEVICE "\"bytes\":0,\"ops\":0")->is_new = true;
    add("window", "old", DEVICE "\"bytes\":0,\"ops\":0");
    notes("note: window w bounds nothing: it has neither bytes nor ops\n");
}
END_TEST

START_TEST(there_is_an_end_of_notes)
{
    char name[8];
    setup();
    add("window", "all", DEVICE "\"bytes\":0,\"ops\":1")->is_new = true;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add("window", name, EACH "\"bytes\":0,\"ops\":2");
    }
    base_text_init(&out, 1 << 16);
    ctl_window_notes(window, count, &out);
    size_t lines = 0;
    for (const char *at = base_text_str(&out); *at != '\0'; at++)
        lines += *at == '\n';
    ck_assert_uint_eq(lines, 9);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "note: and 12 more of windows"));
    base_text_fini(&out);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_window_that_is_wider_than_what_it_is_within_is_noted)                                      \
    T(a_window_that_makes_others_useless_is_noted_of_them)                                         \
    T(of_several_the_narrowest_is_named)                                                           \
    T(windows_of_different_things_do_not_concern_each_other)                                       \
    T(a_window_of_one_pool_is_within_that_of_all)                                                  \
    T(a_tenants_own_window_and_one_of_that_tenant_are_of_the_same)                                 \
    T(a_window_that_bounds_nothing_is_noted)                                                       \
    T(there_is_an_end_of_notes)
KEDGE_CHECK_MAIN("ctl window notes", TESTS)
