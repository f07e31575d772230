/* SPDX-License-Identifier: Apache-2.0 */
/* What rdmactl makes of an agent's workers and leases. */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/agent_items.h"

static struct base_errbuf err;

#define LEASE                                                                                      \
    "{\"id\":\"3-0000beef-2\",\"worker\":\"3-0000beef\",\"node\":\"a\",\"tenant\":"                \
    "\"we\\u001b\\u009bb\","                                                                       \
    "\"uid\":7,\"pid\":0,\"kind\":\"fenced\",\"arena\":1,\"offset\":4096,\"length\":2097152,"      \
    "\"access\":[\"read\",\"write\"],\"state\":\"live\",\"by_operator\":false,\"age_ms\":9999,"    \
    "\"period_ms\":10000,\"over_in_ms\":null,\"more\":{\"than\":\"we know\"}}"

#define TEXT64 "0123456789012345678901234567890123456789012345678901234567890123"

static int decode(const char *name, const char *text, struct ctl_agent_item_page *page)
{
    return ctl_decode_agent_items(ctl_agent_item_kind_find(name), text, strlen(text), page, &err);
}

START_TEST(leases_are_shown_with_units_and_kept_as_they_were)
{
    struct ctl_agent_item_page page;
    ck_assert_int_eq(decode("lease", "{\"leases\":[" LEASE "],\"next_cursor\":\"abc\"}", &page), 0);
    ck_assert_uint_eq(page.count, 1);
    ck_assert_str_eq(page.next, "abc");
    const char *const shown[] = {"3-0000beef-2", "we??b", "0",          "fenced",     "1",
                                 "4096",         "2MiB",  "read,write", "live",       "9.9s",
                                 "10s",          "-",     "7",          "3-0000beef", "a"};
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("lease");
    ck_assert_uint_eq(kind->columns, sizeof shown / sizeof shown[0]);
    for (size_t i = 0; i < kind->columns; i++)
        ck_assert_str_eq(page.item[0].cell[i], shown[i]);
    ck_assert(strstr(page.item[0].json, "\"more\":{\"than\":\"we know\"}") != NULL);
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(the_last_page_has_no_cursor)
{
    struct ctl_agent_item_page page;
    ck_assert_int_eq(decode("worker", "{\"workers\":[]}", &page), 0);
    ck_assert_uint_eq(page.count, 0);
    ck_assert_str_eq(page.next, "");
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(nodes_that_could_not_be_asked_are_named)
{
    struct ctl_agent_item_page page;
    ck_assert_int_eq(decode("lease",
                            "{\"leases\":[],\"unreachable\":[{\"node\":\"n\\u001b2\",\"why\":"
                            "\"it\\n\"},{\"node\":\"n3\",\"why\":\"late\"}]}",
                            &page),
                     0);
    ck_assert_uint_eq(page.gaps, 2);
    ck_assert_str_eq(page.gap[0].node, "n?2");
    ck_assert_str_eq(page.gap[0].why, "it?");
    ck_assert_str_eq(page.gap[1].json, "{\"node\":\"n3\",\"why\":\"late\"}");
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(what_is_no_page_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"leases\":{}}",
        "{\"workers\":[]}",
        "{\"leases\":[{\"tenant\":\"x\"}]}",
        "{\"leases\":[" LEASE ",3]}",
        "{\"leases\":[],\"next_cursor\":\"" TEXT64 TEXT64 TEXT64 TEXT64 TEXT64 TEXT64 TEXT64 TEXT64
        "\"}",
        "{\"leases\":[],\"unreachable\":[7]}",
        "{\"leases\":[" LEASE "],\"unreachable\":[{\"node\":\"n2\"}]}",
    };
    struct ctl_agent_item_page page;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(decode("lease", wrong[i], &page), -EBADMSG);
    ck_assert_ptr_null(ctl_agent_item_kind_find("window"));
}
END_TEST

START_TEST(cells_that_are_too_long_or_of_another_kind_are_cut)
{
    char words[8 * 60 + 1], text[1000];
    struct ctl_agent_item_page page;
    for (size_t i = 0; i < 60; i++)
        memcpy(words + 8 * i, "\"write\",", 9);
    snprintf(text, sizeof text, "{\"leases\":[{\"id\":\"x\",\"length\":true,\"access\":[%s7]}]}",
             words);
    ck_assert_int_eq(decode("lease", text, &page), 0);
    ck_assert_uint_eq(strlen(page.item[0].cell[7]), CTL_CELL_BYTES - 1);
    ck_assert_str_eq(page.item[0].cell[6], "-");
    ctl_agent_item_page_fini(&page);
}
END_TEST

#define WORKER(waits)                                                                              \
    "{\"workers\":[{\"id\":\"3-0000beef\",\"tenant\":\"web\",\"waits\":" waits "}]}"

static struct ctl_agent_item_page page_of(const char *text)
{
    struct ctl_agent_item_page page;
    ck_assert_int_eq(decode("worker", text, &page), 0);
    ck_assert_uint_eq(page.count, 1);
    return page;
}

static const char *waits_cell(const struct ctl_agent_item_page *page)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("worker");
    for (size_t i = 0; i < kind->columns; i++)
        if (strcmp(kind->column[i].field, "waits") == 0)
            return page->item[0].cell[i];
    ck_abort_msg("there is no such column");
}

START_TEST(what_a_worker_waits_for_is_said_in_a_word_and_in_a_sentence)
{
    struct ctl_agent_item_page page =
        page_of(WORKER("{\"destination_window\":3,\"ring_turn\":1,\"a\\u001bb\":2}"));
    ck_assert_str_eq(waits_cell(&page), "destination_window=3,ring_turn=1,a?b=2");
    ck_assert_str_eq(page.item[0].sentences,
                     "destination_window: 3 virtual queue pairs, of each: the window of the node "
                     "that it goes to is full\n"
                     "ring_turn: 1 ring slot: the lane has not come to it yet\n");
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(a_worker_that_waits_for_nothing_and_one_of_an_older_agent_have_no_sentence)
{
    static const char *const none[] = {WORKER("{}"), WORKER("null"), WORKER("[7]"),
                                       WORKER("\"x\"")};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct ctl_agent_item_page page = page_of(none[i]);
        ck_assert_str_eq(page.item[0].sentences, "");
        ctl_agent_item_page_fini(&page);
    }
    struct ctl_agent_item_page page = page_of(none[0]);
    ck_assert_str_eq(waits_cell(&page), "-");
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(however_much_a_worker_waits_for_its_cell_is_cut)
{
    char text[4096] = "{\"workers\":[{\"id\":\"x\",\"waits\":{";
    size_t used = strlen(text);
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"w%d\":1000000%03d",
                                 i > 0 ? "," : "", i, i);
    snprintf(text + used, sizeof text - used, "}}]}");
    struct ctl_agent_item_page page = page_of(text);
    ck_assert_uint_eq(strlen(waits_cell(&page)), CTL_CELL_BYTES - 1);
    ctl_agent_item_page_fini(&page);
}
END_TEST

START_TEST(what_revoking_came_to_is_told)
{
    const char *text = "{\"worker\":\"3-0000beef\",\"forced\":true,\"leases\":[" LEASE
                       "],\"over\":false,\"breaks\":\"much\"}";
    struct ctl_revoked r;
    ck_assert_int_eq(ctl_decode_revoked(text, strlen(text), &r, &err), 0);
    ck_assert(r.forced && !r.over);
    ck_assert_str_eq(r.breaks, "much");
    ck_assert_uint_eq(r.leases.count, 1);
    ctl_agent_item_page_fini(&r.leases);
    ck_assert_int_eq(ctl_decode_revoked("{}", 2, &r, &err), -EBADMSG);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(leases_are_shown_with_units_and_kept_as_they_were)                                           \
    X(the_last_page_has_no_cursor)                                                                 \
    X(nodes_that_could_not_be_asked_are_named)                                                     \
    X(what_is_no_page_is_refused)                                                                  \
    X(cells_that_are_too_long_or_of_another_kind_are_cut)                                          \
    X(what_a_worker_waits_for_is_said_in_a_word_and_in_a_sentence)                                 \
    X(a_worker_that_waits_for_nothing_and_one_of_an_older_agent_have_no_sentence)                  \
    X(however_much_a_worker_waits_for_its_cell_is_cut)                                             \
    X(what_revoking_came_to_is_told)
KEDGE_CHECK_MAIN("ctl.held", TESTS)
