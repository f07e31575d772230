/* SPDX-License-Identifier: Apache-2.0 */
/* What `agent status` prints of what an agent says. */
#include "../check_main.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "ctl/commands.h"
#include "ctl/decode.h"

static char printed[1 << 16];

/* Standard output goes to a file meanwhile. */
static void show(const char *body)
{
    struct base_errbuf err = {""};
    const int file = memfd_create("out", 0), before = dup(STDOUT_FILENO);
    fflush(stdout);
    ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
    const int status = ctl_agent_status_print(body, strlen(body), &err);
    fflush(stdout);
    ck_assert_int_ge(dup2(before, STDOUT_FILENO), 0);
    close(before);
    const ssize_t n = pread(file, printed, sizeof printed - 1, 0);
    close(file);
    ck_assert_msg(status == 0, "%s", err.text);
    ck_assert_int_ge(n, 0);
    printed[n] = '\0';
}

static unsigned count_of(const char *text)
{
    unsigned count = 0;
    for (const char *at = printed; (at = strstr(at, text)) != NULL; at += strlen(text))
        count++;
    return count;
}

static void show_sessions(unsigned count)
{
    struct base_text t;
    base_text_init(&t, 1 << 24);
    base_text_printf(&t, "{\"node\":\"a\",\"sessions_list\":[");
    for (unsigned i = 0; i < count; i++)
        base_text_printf(&t,
                         "%s{\"id\":%u,\"pool\":\"own\",\"tenant\":\"web\",\"uid\":1000,"
                         "\"pid\":%u,\"arenas\":0}",
                         i > 0 ? "," : "", i, 40000 + i);
    base_text_printf(&t, "]}");
    ck_assert_int_eq(t.error, 0);
    show(base_text_str(&t));
    base_text_fini(&t);
}

START_TEST(sessions_are_the_rows_of_one_table)
{
    show_sessions(7);
    ck_assert_uint_eq(count_of("sessions_list"), 1);
    ck_assert_uint_eq(count_of("own  web"), 7);
    const char *head = strstr(printed, "ID POOL TENANT");
    ck_assert_ptr_nonnull(head);
    ck_assert_ptr_nonnull(strstr(head, "UID  PID\n")); /* none has an arena */
    ck_assert_ptr_nonnull(strstr(head, "40006"));
    ck_assert_uint_eq(count_of(" more: "), 0);
}
END_TEST

START_TEST(of_many_sessions_the_first_are_shown_and_where_all_are)
{
    show_sessions(200);
    ck_assert_uint_eq(count_of("own  web"), CTL_MAX_ITEMS);
    ck_assert_uint_eq(count_of("\nand 180 more: rdmactl worker list and -o json have all\n"), 1);
    show_sessions(65536); /* as many as an agent may have */
    ck_assert_uint_eq(count_of("\nand 65516 more: "), 1);
}
END_TEST

START_TEST(things_with_many_fields_stand_beside_each_other)
{
    struct base_text t;
    base_text_init(&t, 1 << 16);
    base_text_printf(&t, "{\"tenants\":[");
    for (unsigned i = 0; i < 23; i++)
        base_text_printf(&t, "%s{\"name\":\"t%02u\",\"vqps\":%u}", i > 0 ? "," : "", i, i + 1);
    base_text_printf(&t, "]}");
    show(base_text_str(&t));
    base_text_fini(&t);
    ck_assert_uint_eq(count_of("\ntenants t00 t01 t02 t03 t04\nvqps    1   2 "), 1);
    ck_assert_uint_eq(count_of("\nand 3 more: -o json has all\n"), 1);
}
END_TEST

START_TEST(a_row_has_one_name_for_all_pools_whichever_of_them_has_0)
{
    show("{\"pools\":[{\"name\":\"own\",\"dcis_rest_for_ms\":0,\"lane\":{\"slept_ms\":0}},"
         "{\"name\":\"batch\",\"dcis_rest_for_ms\":420,\"lane\":{\"slept_ms\":1500}}]}");
    ck_assert_uint_eq(count_of("\ndcis_rest_for 0   420ms\n"), 1);
    ck_assert_uint_eq(count_of("\nlane.slept    0   1500ms\n"), 1);
    ck_assert_uint_eq(count_of("_ms"), 0);
}
END_TEST

START_TEST(what_rests_is_shown_only_while_it_rests)
{
    show("{\"pools\":[{\"name\":\"own\",\"dcis\":8,\"dcis_resting\":8,"
         "\"dcis_rest_for_ms\":420}]}");
    ck_assert_uint_eq(count_of("\ndcis_resting  8"), 1);
    ck_assert_uint_eq(count_of("\ndcis_rest_for 420ms"), 1);
    show("{\"pools\":[{\"name\":\"own\",\"dcis\":8,\"dcis_resting\":0,"
         "\"dcis_rest_for_ms\":0}]}");
    ck_assert_uint_eq(count_of("\ndcis "), 1);
    ck_assert_uint_eq(count_of("rest"), 0);
}
END_TEST

START_TEST(what_an_agent_says_of_itself_stands_in_sections)
{
    show("{\"node\":\"a\",\"lane\":{\"passes\":7,\"failed\":0,\"x\":{\"y\":1}},\"uptime_ms\":60000,"
         "\"clock\":{\"lies\":0},\"newer\":{\"than\":\"this\"},\"pool\":{\"name\":\"own\"}}");
    ck_assert_msg(strncmp(printed, "Agent\n  node    a\n  uptime  60s\n", 31) == 0, "%s", printed);
    ck_assert_uint_eq(count_of("\n\nLanes\n  passes  7\n  x.y     1\n\n"), 1);
    ck_assert_uint_eq(count_of("\n\nnewer\n  than  this\n\n"), 1);
    ck_assert_uint_eq(count_of("Clock"), 0);
    ck_assert_uint_eq(count_of("own"), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_an_agent_says_of_itself_stands_in_sections)                                             \
    T(sessions_are_the_rows_of_one_table)                                                          \
    T(of_many_sessions_the_first_are_shown_and_where_all_are)                                      \
    T(things_with_many_fields_stand_beside_each_other)                                             \
    T(a_row_has_one_name_for_all_pools_whichever_of_them_has_0)                                    \
    T(what_rests_is_shown_only_while_it_rests)
KEDGE_CHECK_MAIN("agent_status", TESTS)
