/* SPDX-License-Identifier: Apache-2.0 */
/* What the REST interface's document says of fields that are only shown. */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "ctl/shown.h"
#include "schema/resources.h"

static struct ctl_shown shown;
static struct base_errbuf err;

static int find(const char *kind, const char *path)
{
    err.text[0] = '\0';
    return ctl_shown_find(kind, path, &shown, &err);
}

static const struct ctl_shown_member *find_member(const char *name)
{
    for (size_t i = 0; i < shown.members; i++)
        if (strcmp(shown.member[i].name, name) == 0)
            return &shown.member[i];
    return NULL;
}

/* And of what is set there is each field. */
START_TEST(each_kind_has_members_and_each_member_a_type)
{
    size_t i = 0;
    for (const char *kind; (kind = ctl_shown_kind(i)) != NULL; i++) {
        const struct resource_table *t = resource_table_find(kind);
        ck_assert_msg(find(kind, "") == 0, "%s: %s", kind, err.text);
        ck_assert_str_eq(shown.self.name, kind);
        ck_assert_uint_gt(shown.members, 2);
        ck_assert_uint_lt(shown.members, CTL_SHOWN_MEMBERS);
        for (size_t k = 0; t != NULL && k < t->fields; k++)
            ck_assert_msg(find_member(t->field[k].name) != NULL, "%s.%s", kind, t->field[k].name);
        for (size_t k = 0; k < shown.members; k++) {
            const struct ctl_shown_member *m = &shown.member[k];
            ck_assert_msg(m->type[0] != '\0' && strstr(m->type, "any") == NULL, "%s.%s: %s", kind,
                          m->name, m->type);
            ck_assert_msg(strchr(m->help, '\n') == NULL, "%s.%s: %s", kind, m->name, m->help);
        }
    }
    ck_assert_uint_eq(i, 8);
}
END_TEST

START_TEST(a_member_is_described_with_what_it_refers_to)
{
    ck_assert_int_eq(find("pool", "revision"), 0);
    ck_assert_str_eq(shown.self.type, "integer");
    ck_assert_str_eq(shown.self.help, "Of its last change"); /* its own, and not what it is of */
    ck_assert_int_eq(find("node", "state"), 0);
    ck_assert_str_eq(shown.self.type, "live, waiting, expired or absent");
    ck_assert_ptr_nonnull(strstr(shown.self.help, "waiting: known from before a restart"));
    ck_assert_int_eq(find("worker", "uid"), 0);
    ck_assert_str_eq(shown.self.range, "0 to 4294967294");
    ck_assert_int_eq(find("node", "grace_ms"), 0);
    ck_assert_ptr_nonnull(strstr(shown.self.help, "With draining"));
}
END_TEST

START_TEST(members_of_members_are_found_also_of_those_of_lists)
{
    ck_assert_int_eq(find("node", "fabric"), 0);
    ck_assert_str_eq(shown.self.type, "object");
    ck_assert_ptr_nonnull(find_member("tried_by"));
    ck_assert_int_eq(find("node", "fabric.failing"), 0);
    ck_assert_str_eq(shown.self.type, "list of object");
    ck_assert_int_eq(find("node", "fabric.failing.error"), 0);
    ck_assert_str_eq(shown.self.type, "timeout, unreachable, refused or device");
    ck_assert_int_eq(find("node", "endpoints.mtu"), 0);
    ck_assert_str_eq(shown.self.type, "256, 512, 1024, 2048 or 4096");
    ck_assert_int_eq(find("tenant", "uids"), 0);
    ck_assert_str_eq(shown.self.type, "list of integer or text");
    ck_assert_int_eq(find("region", "access"), 0);
    ck_assert_str_eq(shown.self.type, "list of read, write or atomic");
}
END_TEST

START_TEST(what_there_is_not_is_not_found)
{
    static const char *const wrong[][2] = {
        {"planet", ""},
        {"", ""},
        {"node", "x"},
        {"node", "fabric.x"},
        {"node", "id.x"},
        {"node", ".id"},
        {"node", "fabric..state"},
        {"lease", "Lease"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(find(wrong[i][0], wrong[i][1]) == -ENOENT, "%s.%s", wrong[i][0], wrong[i][1]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_kind_has_members_and_each_member_a_type)                                                \
    T(a_member_is_described_with_what_it_refers_to)                                                \
    T(members_of_members_are_found_also_of_those_of_lists)                                         \
    T(what_there_is_not_is_not_found)
KEDGE_CHECK_MAIN("ctl shown", TESTS)
