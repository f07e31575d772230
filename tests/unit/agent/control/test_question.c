/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers ask of workers and leases. */
#include "../../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/question.h"

#define ID "\"id\":\"0123456789abcdef\""

static struct agent_question q;
static struct base_errbuf why;

static int decode(const char *text)
{
    ck_assert(agent_line_is_question(text, strlen(text)));
    return agent_question_decode(text, strlen(text), &q, &why);
}

START_TEST(a_line_that_asks_for_a_renewal_is_neither_a_question_nor_a_document)
{
    static const char renew[] = "{\"renew\":true}", soon[] = "{\"renew\":\"soon\"}",
                      ask[] = "{\"ask\":{}}", other[] = "{\"ren";
    ck_assert(agent_line_is_renewal(renew, sizeof renew - 1));
    ck_assert(!agent_renewal_is_of_many(renew, sizeof renew - 1));
    ck_assert(agent_line_is_renewal(soon, sizeof soon - 1));
    ck_assert(agent_renewal_is_of_many(soon, sizeof soon - 1));
    ck_assert(!agent_line_is_question(renew, sizeof renew - 1));
    ck_assert(!agent_line_is_renewal(ask, sizeof ask - 1));
    ck_assert(!agent_line_is_renewal(other, sizeof other - 1));
}
END_TEST

START_TEST(a_page_one_of_it_and_revoking_are_understood)
{
    ck_assert_int_eq(decode("{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"workers\","
                            "\"tenant\":\"we\\\"b\",\"worker\":\"1-00000001\",\"cursor\":\"MS4w\","
                            "\"limit\":500}}"),
                     0);
    ck_assert_str_eq(q.id, "0123456789abcdef");
    ck_assert(!q.revoke && q.of == AGENT_QUESTION_WORKERS && !q.force);
    ck_assert_str_eq(q.tenant, "we\"b");
    ck_assert_str_eq(q.worker, "1-00000001");
    ck_assert_str_eq(q.cursor, "MS4w");
    ck_assert_str_eq(q.limit, "500");
    ck_assert_str_eq(q.item, "");
    ck_assert_int_eq(decode("{\"ask\":{" ID ",\"method\":\"DELETE\",\"resource\":\"leases\","
                            "\"item\":\"1-00000001-7\",\"force\":true}}"),
                     0);
    ck_assert(q.revoke && q.of == AGENT_QUESTION_LEASES && q.force);
    ck_assert_str_eq(q.item, "1-00000001-7");
    ck_assert_str_eq(q.limit, "");
    ck_assert_int_eq(decode("{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"status\"}}"), 0);
    ck_assert(!q.revoke && q.of == AGENT_QUESTION_STATUS);
}
END_TEST

START_TEST(a_configuration_is_no_question)
{
    const char *text = "{\"revision\":1,\"ask\":{}}";
    ck_assert(!agent_line_is_question(text, strlen(text)));
    ck_assert(!agent_line_is_question("{\"ask\":", 6));
    ck_assert(!agent_line_is_question("", 0));
}
END_TEST

START_TEST(what_is_not_understood_is_refused_and_says_to_whom)
{
    static const struct {
        const char *text;
        bool id;
    } wrong[] = {
        {"{\"ask\":", false},
        {"{\"ask\":7}", false},
        {"{\"ask\":{}}", false},
        {"{\"ask\":{\"id\":\"../../../tokens/x\"}}", false},
        {"{\"ask\":{\"id\":\"0123456789ABCDEF\",\"method\":\"GET\",\"resource\":\"leases\"}}",
         false},
        {"{\"ask\":{" ID "," ID ",\"method\":\"GET\",\"resource\":\"leases\"}}", false},
        {"{\"ask\":{" ID "}}", true},
        {"{\"ask\":{" ID ",\"method\":\"PUT\",\"resource\":\"leases\"}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"tokens\"}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"leases\",\"limit\":0}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"leases\",\"limit\":\"5\"}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"leases\",\"force\":1}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"leases\",\"item\":\"\"}}", true},
        {"{\"ask\":{" ID ",\"method\":\"GET\",\"resource\":\"leases\",\"item\":"
         "\"012345678901234567890123456789012345678901234567\"}}",
         true},
        {"{\"ask\":{" ID ",\"method\":\"DELETE\",\"resource\":\"leases\",\"younger_ms\":5}}", true},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why.text[0] = '\0';
        ck_assert_msg(decode(wrong[i].text) == -EINVAL, "%s", wrong[i].text);
        ck_assert_msg((q.id[0] != '\0') == wrong[i].id, "%s", wrong[i].text);
        ck_assert(why.text[0] != '\0');
    }
    ck_assert_ptr_nonnull(strstr(why.text, "younger_ms"));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_line_that_asks_for_a_renewal_is_neither_a_question_nor_a_document)                         \
    T(a_page_one_of_it_and_revoking_are_understood)                                                \
    T(a_configuration_is_no_question)                                                              \
    T(what_is_not_understood_is_refused_and_says_to_whom)
KEDGE_CHECK_MAIN("agent.control.question", TESTS)
