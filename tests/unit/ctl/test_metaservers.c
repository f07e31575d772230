/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers say of each other and of themselves, whoever they are. */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/metaservers.h"

static struct ctl_metaserver found[CTL_METASERVERS_MAX];
static struct ctl_metaserver_state self;
static struct base_errbuf err;
static size_t count;

static int decode(const char *body)
{
    return ctl_decode_metaservers(body, strlen(body), found, &count, &self, &err);
}

START_TEST(members_and_the_state_of_who_answers_are_read)
{
    ck_assert_int_eq(
        decode("{\"metaservers\":[{\"name\":\"a\",\"self\":true,\"version\":\"1\"},"
               "{\"name\":\"b\",\"self\":false,\"url\":\"https://b:1\"},{}],"
               "\"store\":{\"kind\":\"etcd\",\"prefix\":\"/k/\",\"id\":\"5a\","
               "\"shared\":true,\"revision\":7,\"behind\":true,"
               "\"heard_ms_ago\":0,\"errors\":2,\"error\":\"why\",\"warning\":\"do\"},"
               "\"table\":{\"slots\":64,\"live\":3,\"awaited\":9,\"generation\":\"ab\"},"
               "\"nodes\":{\"live\":4},\"agents\":5,\"followers\":6}"),
        0);
    ck_assert_uint_eq(count, 2);
    ck_assert(found[0].self && strcmp(found[0].name, "a") == 0 && found[0].url[0] == '\0');
    ck_assert(!found[1].self && strcmp(found[1].url, "https://b:1") == 0);
    ck_assert(self.shared && self.behind && self.says_heard && self.revision == 7);
    ck_assert(self.errors == 2 && self.used == 3 && self.live == 4 && self.agents == 5);
    ck_assert_uint_eq(self.awaited, 9);
    ck_assert_str_eq(self.kind, "etcd");
    ck_assert_str_eq(self.prefix, "/k/");
    ck_assert_str_eq(self.id, "5a");
    ck_assert(self.followers == 6 && self.max_endpoints == 0 && strcmp(self.error, "why") == 0);
    ck_assert_str_eq(self.warning, "do");
}
END_TEST

START_TEST(an_answer_that_is_none_is_refused)
{
    ck_assert_int_eq(decode("[]"), -EBADMSG);
    ck_assert_int_eq(decode("{\"metaservers\":[]}"), -EBADMSG);
    ck_assert_int_eq(decode("{\"metaservers\":3,\"store\":{}}"), -EBADMSG);
    ck_assert_int_eq(decode("{\"metaservers\":[7,null],\"store\":{\"revision\":-1}}"), 0);
    ck_assert(count == 0 && self.revision == 0);
}
END_TEST

START_TEST(no_more_are_read_than_there_is_room_for_and_nothing_unprintable)
{
    char body[8192];
    size_t used = (size_t)snprintf(body, sizeof body, "{\"store\":{},\"metaservers\":[{}");
    for (int i = 0; i < 2 * CTL_METASERVERS_MAX; i++)
        used += (size_t)snprintf(body + used, sizeof body - used, ",{\"name\":\"a\\u001b[1m\"}");
    snprintf(body + used, sizeof body - used, "]}");
    ck_assert_int_eq(decode(body), 0);
    ck_assert_uint_eq(count, CTL_METASERVERS_MAX);
    ck_assert_ptr_eq(strchr(found[0].name, '\x1b'), NULL);
}
END_TEST

START_TEST(json_has_who_it_is_and_how_it_says_it_is)
{
    static const char body[] = "{\"metaservers\":[],\"store\":{\"revision\":9}}";
    const struct ctl_metaserver m = {.name = "a", .url = "http://a"};
    struct base_text text;
    base_text_init(&text, 4096);
    ck_assert_int_eq(ctl_metaserver_json(&m, body, strlen(body), NULL, &text, &err), 0);
    ck_assert_ptr_ne(strstr(base_text_str(&text), "\"revision\":9"), NULL);
    ck_assert_ptr_ne(strstr(base_text_str(&text), "\"answers\":true"), NULL);
    ck_assert_ptr_eq(strstr(base_text_str(&text), "metaservers"), NULL);
    base_text_reset(&text);
    ck_assert_int_eq(ctl_metaserver_json(&m, NULL, 0, "gone", &text, &err), 0);
    ck_assert_ptr_ne(strstr(base_text_str(&text), "\"error\":\"gone\""), NULL);
    ck_assert_ptr_ne(strstr(base_text_str(&text), "\"answers\":false"), NULL);
    base_text_fini(&text);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(members_and_the_state_of_who_answers_are_read)                                               \
    X(an_answer_that_is_none_is_refused)                                                           \
    X(no_more_are_read_than_there_is_room_for_and_nothing_unprintable)                             \
    X(json_has_who_it_is_and_how_it_says_it_is)
KEDGE_CHECK_MAIN("ctl.metaservers", TESTS)
