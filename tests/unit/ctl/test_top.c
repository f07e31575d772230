/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/top.h"

static struct base_errbuf err;

static void add(struct ctl_top_look *look, const char *json)
{
    ck_assert_msg(ctl_top_add(look, json, &err) == 0, "%s", err.text);
}

#define WORKER(id, node, tenant, operations, bytes)                                                \
    "{\"id\":\"" node ":" id "\",\"node\":\"" node "\",\"tenant\":\"" tenant                       \
    "\",\"arena_bytes\":100,\"leases\":2,\"operations\":" #operations                              \
    ",\"operation_bytes\":" #bytes "}"

START_TEST(what_was_done_meanwhile_is_added_up)
{
    struct ctl_top_look first = {.worker = NULL}, second = {.worker = NULL};
    size_t count;
    add(&first, WORKER("1-a", "n1", "web", 10, 1000));
    add(&first, WORKER("2-a", "n2", "web", 5, 50));
    add(&first, WORKER("3-a", "n2", "db", 7, 70)); /* it ends */
    add(&second, WORKER("2-a", "n2", "web", 25, 250));
    add(&second, WORKER("4-a", "n2", "db", 4, 40)); /* it begins */
    add(&second, WORKER("1-a", "n1", "web", 10, 1000));
    struct ctl_top_sum *sums = ctl_top_sums(&first, &second, true, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(sums[0].name, "n1");
    ck_assert_uint_eq(sums[0].operations + sums[0].bytes, 0);
    ck_assert_uint_eq(sums[0].sessions, 1);
    ck_assert_str_eq(sums[1].name, "n2");
    ck_assert_uint_eq(sums[1].operations, 24);
    ck_assert_uint_eq(sums[1].bytes, 240);
    ck_assert_uint_eq(sums[1].sessions, 2);
    ck_assert_uint_eq(sums[1].arena_bytes, 200);
    ck_assert_uint_eq(sums[1].leases, 4);
    free(sums);
    sums = ctl_top_sums(&first, &second, false, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(sums[0].name, "db");
    ck_assert_uint_eq(sums[0].operations, 4);
    ck_assert_str_eq(sums[1].name, "web");
    ck_assert_uint_eq(sums[1].operations, 20);
    free(sums);
    ctl_top_look_fini(&first);
    ctl_top_look_fini(&second);
}
END_TEST

START_TEST(an_agent_that_does_not_count_is_not_counted)
{
    struct ctl_top_look first = {.worker = NULL}, second = {.worker = NULL};
    size_t count;
    add(&second, "{\"id\":\"n:1\",\"node\":\"n\",\"tenant\":\"t\"}");
    add(&second, "{\"id\":\"n:2\",\"node\":\"n\",\"tenant\":\"t\",\"operations\":-4,"
                 "\"operation_bytes\":\"x\"}");
    struct ctl_top_sum *sums = ctl_top_sums(&first, &second, true, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(sums[0].uncounted, 2);
    ck_assert_uint_eq(sums[0].operations, 0);
    free(sums);
    ctl_top_look_fini(&second);
    sums = ctl_top_sums(&first, &second, true, &count);
    ck_assert_uint_eq(count, 0);
    free(sums);
}
END_TEST

START_TEST(what_is_no_worker_is_refused)
{
    struct ctl_top_look look = {.worker = NULL};
    ck_assert_int_eq(ctl_top_add(&look, "[]", &err), -EBADMSG);
    ck_assert_int_eq(ctl_top_add(&look, "{\"id\":5}", &err), -EBADMSG);
    ck_assert_uint_eq(look.count, 0);
    for (int i = 0; i < 1000; i++)
        add(&look, WORKER("1-a", "n1", "web", 10, 1000));
    ck_assert_uint_eq(look.count, 1000);
    ctl_top_look_fini(&look);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(what_was_done_meanwhile_is_added_up)                                                         \
    X(an_agent_that_does_not_count_is_not_counted)                                                 \
    X(what_is_no_worker_is_refused)
KEDGE_CHECK_MAIN("ctl.top", TESTS)
