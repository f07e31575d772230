/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/rows.h"

static struct base_errbuf err;

static void add_rows(struct ctl_rows *rows, const char *const *json, size_t count)
{
    static const char *const heading[] = {"NAME"};
    ctl_rows_init(rows, NULL);
    ctl_rows_head(rows, heading, 1);
    for (size_t i = 0; i < count; i++) {
        char id[8];
        snprintf(id, sizeof id, "%zu", i);
        ctl_rows_add(rows, id, json[i], (const char *const[]){id});
    }
    ck_assert_int_eq(rows->error, 0);
}

/* The ids in the order that sorting gives: "201". */
static const char *sort(const char *const *json, size_t count, const char *by)
{
    static char ids[32];
    struct ctl_rows rows;
    add_rows(&rows, json, count);
    ck_assert_msg(ctl_rows_sort(&rows, by, &err) == 0, "%s", err.text);
    ids[0] = '\0';
    for (size_t i = 0; i < rows.count; i++) {
        ck_assert_str_eq(rows.row[i].id, rows.row[i].cell[0]);
        strncat(ids, rows.row[i].id, sizeof ids - strlen(ids) - 1);
    }
    ctl_rows_fini(&rows);
    return ids;
}

static const char *const mixed[] = {
    "{\"n\":10,\"t\":\"b\",\"in\":{\"s\":\"z\"},\"l\":[1,2]}",
    "{\"n\":9,\"t\":\"a\",\"in\":{\"s\":\"y\"},\"l\":[]}",
    "{\"n\":1.5,\"in\":{},\"l\":[1]}",
    "{\"n\":9,\"t\":\"c\",\"in\":{\"s\":\"x\"},\"l\":[1,2,3]}",
};

START_TEST(rows_are_sorted_by_what_their_members_are)
{
    ck_assert_str_eq(sort(mixed, 4, "n"), "2130");
    ck_assert_str_eq(sort(mixed, 4, "-n"), "0312");
    ck_assert_str_eq(sort(mixed, 4, "t"), "1032");
    ck_assert_str_eq(sort(mixed, 4, "-t"), "3012"); /* what has none is last either way */
    ck_assert_str_eq(sort(mixed, 4, "in.s"), "3102");
    ck_assert_str_eq(sort(mixed, 4, "l"), "1203");
    ck_assert_str_eq(sort(mixed, 0, "whatever"), "");
}
END_TEST

START_TEST(a_member_that_no_row_has_is_refused)
{
    static const char *const paths[] = {"",
                                        "-",
                                        "n.x",
                                        "in.s.x",
                                        ".in",
                                        "x",
                                        "a-name-of-much-more-than-sixty-four-characters-that-"
                                        "nothing-has-ever-been-called"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct ctl_rows rows;
        add_rows(&rows, mixed, 4);
        ck_assert_msg(ctl_rows_sort(&rows, paths[i], &err) == -EINVAL, "%s", paths[i]);
        ctl_rows_fini(&rows);
    }
    ck_assert_ptr_nonnull(strstr(err.text, "no row has"));
    ck_assert_ptr_nonnull(strstr(err.text, "but n, t, in, l"));
}
END_TEST

START_TEST(many_rows_are_kept)
{
    struct ctl_rows rows;
    ctl_rows_init(&rows, NULL);
    ctl_rows_head(&rows, (const char *const[]){"A", "B"}, 2);
    for (int i = 0; i < 1000; i++) {
        char json[32];
        snprintf(json, sizeof json, "{\"n\":%d}", i);
        ctl_rows_add(&rows, "x", json, (const char *const[]){"a", NULL});
    }
    ck_assert_uint_eq(rows.count, 1000);
    ck_assert_str_eq(rows.row[999].cell[1], "");
    ck_assert_int_eq(ctl_rows_sort(&rows, "-n", &err), 0);
    ck_assert_str_eq(rows.row[0].json, "{\"n\":999}");
    ctl_rows_fini(&rows);
}
END_TEST

START_TEST(time_that_goes_by_is_no_change)
{
    static const char *const same[][2] = {
        {"{\"a\":1,\"age_ms\":5}", "{\"age_ms\":9,\"a\":1}"},
        {"{\"expires_in_ms\":5,\"x\":[{\"for_ms\":1}]}", "{\"x\":[{\"for_ms\":2}]}"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char *a = ctl_row_steady(same[i][0]), *b = ctl_row_steady(same[i][1]);
        ck_assert_str_eq(a, b);
        free(a);
        free(b);
    }
    char *a = ctl_row_steady("{\"grace_ms\":5}");
    ck_assert_str_eq(a, "{\"grace_ms\":5}");
    free(a);
    ck_assert_ptr_null(ctl_row_steady("[1]"));
    ck_assert_ptr_null(ctl_row_steady("nonsense"));
}
END_TEST

#define TESTS(X)                                                                                   \
    X(rows_are_sorted_by_what_their_members_are)                                                   \
    X(a_member_that_no_row_has_is_refused)                                                         \
    X(many_rows_are_kept)                                                                          \
    X(time_that_goes_by_is_no_change)
KEDGE_CHECK_MAIN("ctl.rows", TESTS)
