/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../../check_main.h"
#include "control/lease_ids.h"

START_TEST(ids_are_read_as_they_are_written)
{
    struct agent_worker_id id;
    uint32_t number = 0;
    char text[AGENT_ID_BYTES];
    ck_assert(agent_worker_id_parse("12-0f01ab34", &id, NULL));
    ck_assert_uint_eq(id.session, 12);
    ck_assert_uint_eq(id.serial, 0x0f01ab34);
    ck_assert_str_eq(agent_worker_id_format(&id, text), "12-0f01ab34");
    ck_assert(agent_worker_id_parse("4294967295-ffffffff-4294967295", &id, &number));
    ck_assert_uint_eq(id.session, UINT32_MAX);
    ck_assert_uint_eq(number, UINT32_MAX);
}
END_TEST

START_TEST(what_is_no_id_is_refused)
{
    static const char *const wrong[] = {
        "",
        "-",
        "12",
        "12-",
        "-0f01ab34",
        "12-0f01ab3",
        "12-0f01ab3g",
        "12-0f01ab345",
        "12-0f01ab34-",
        "12-0f01ab34-0",
        "12-0f01ab34-4294967296",
        "12-0f01ab34-1-1",
        "4294967296-0f01ab34-1",
        " 12-0f01ab34-1",
        "000000000000000000000000000000000000012-0f01ab34-1",
    };
    struct agent_worker_id id;
    uint32_t number;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!agent_worker_id_parse(wrong[i], &id, &number), "%s", wrong[i]);
        ck_assert_msg(!agent_worker_id_parse(wrong[i], &id, NULL), "%s", wrong[i]);
    }
    ck_assert(!agent_worker_id_parse("12-0f01ab34", &id, &number)); /* a worker's */
    ck_assert(!agent_worker_id_parse("12-0f01ab34-1", &id, NULL));  /* a lease's */
}
END_TEST

START_TEST(cursors_are_read_as_they_are_written_and_no_others)
{
    static const char *const wrong[] = {
        "", "MQ", "!", "MS4y=", "LjI", "MS4", "MS4yLjM", "NDI5NDk2NzI5Ni4w", "MS4yAA"};
    struct agent_cursor at = {.session = UINT32_MAX, .place = UINT32_MAX}, again;
    char text[AGENT_CURSOR_BYTES];
    ck_assert(agent_cursor_parse(agent_cursor_format(&at, text), &again));
    ck_assert_uint_eq(again.session, UINT32_MAX);
    ck_assert_uint_eq(again.place, UINT32_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!agent_cursor_parse(wrong[i], &again), "%s", wrong[i]);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(ids_are_read_as_they_are_written)                                                            \
    X(what_is_no_id_is_refused)                                                                    \
    X(cursors_are_read_as_they_are_written_and_no_others)
KEDGE_CHECK_MAIN("agent.control.lease_ids", TESTS)
