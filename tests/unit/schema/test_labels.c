/* SPDX-License-Identifier: Apache-2.0 */
/* Labels: their order, their bounds, and what they select. */
#include "schema/labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../check_main.h"

static struct resource_labels of(const char *text)
{
    struct resource_labels l = {.text = ""};
    if (text[0] != '\0')
        ck_assert_int_eq(resource_labels_parse(text, &l), 0);
    return l;
}

START_TEST(labels_are_kept_by_key)
{
    struct resource_labels l = of("zone=b,arch=x86");
    ck_assert_str_eq(l.text, "arch=x86,zone=b");
    ck_assert_int_eq(resource_labels_add(&l, "example.com/rack", "r-7_a"), 0);
    ck_assert_int_eq(resource_labels_add(&l, "aa", ""), 0);
    ck_assert_int_eq(resource_labels_add(&l, "zz", "1"), 0);
    ck_assert_str_eq(l.text, "aa=,arch=x86,example.com/rack=r-7_a,zone=b,zz=1");
    ck_assert_int_eq(resource_labels_add(&l, "zone", "c"), -EEXIST);
}
END_TEST

START_TEST(what_is_no_label_is_refused)
{
    char long_key[RESOURCE_LABEL_CHARS + 2];
    static const char *const keys[] = {"", "-a", "a-", "a b", "a=b", "a,b", "\xc3\xa4", "a\n"};
    static const char *const values[] = {"-", "a/b", "a,b", "a=", " ", "b."};
    static const char *const lists[] = {"", "a", ",a=1", "a=1,", "a=1,,b=2", "a=1,a=2", "=1"};
    struct resource_labels l = of("x=y");
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    ck_assert_int_eq(resource_labels_add(&l, long_key, "v"), -EINVAL);
    ck_assert_int_eq(resource_labels_add(&l, long_key + 1, "v"), 0);
    ck_assert_int_eq(resource_labels_add(&l, "v", long_key), -EINVAL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(resource_labels_add(&l, keys[i], "v") == -EINVAL, "%s", keys[i]);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        ck_assert_msg(resource_labels_add(&l, "k", values[i]) == -EINVAL, "%s", values[i]);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        ck_assert_msg(resource_labels_parse(lists[i], &l) < 0, "%s", lists[i]);
}
END_TEST

START_TEST(there_is_room_for_so_many_and_no_more)
{
    struct resource_labels l = {.text = ""};
    char key[RESOURCE_LABEL_CHARS + 1];
    for (int i = 0; i < RESOURCE_LABELS_MAX; i++) {
        snprintf(key, sizeof key, "k%02d", i);
        ck_assert_int_eq(resource_labels_add(&l, key, "v"), 0);
    }
    ck_assert_int_eq(resource_labels_add(&l, "more", "v"), -ENOSPC);
    l.text[0] = '\0';
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    int n = 0, status = 0;
    for (; n < RESOURCE_LABELS_MAX && status == 0; n++) {
        key[0] = (char)('z' - n);
        status = resource_labels_add(&l, key, key);
    }
    ck_assert_int_eq(status, -ENOSPC);
    ck_assert_uint_lt(strlen(l.text), sizeof l.text);
    ck_assert_int_eq(n, 5); /* four of 127 bytes fit */
}
END_TEST

START_TEST(a_selector_wants_all_that_it_names)
{
    const struct {
        const char *has, *wants;
        bool matches;
    } cases[] = {{"", "", true},
                 {"a=1", "", true},
                 {"", "a=1", false},
                 {"a=1,b=2,c=3", "b=2", true},
                 {"a=1,b=2,c=3", "a=1,c=3", true},
                 {"a=1,b=2,c=3", "c=3,d=4", false},
                 {"a=1,b=2", "b=1", false},
                 {"b=2", "a=1,b=2", false},
                 {"a=", "a=", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resource_labels has = of(cases[i].has), wants = of(cases[i].wants);
        ck_assert_msg(resource_labels_match(&has, &wants) == cases[i].matches, "%s: %s",
                      cases[i].has, cases[i].wants);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(labels_are_kept_by_key)                                                                      \
    T(what_is_no_label_is_refused)                                                                 \
    T(there_is_room_for_so_many_and_no_more)                                                       \
    T(a_selector_wants_all_that_it_names)
KEDGE_CHECK_MAIN("labels", TESTS)
