/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous clients, those who are known, and those who are trusted: who has what. */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>

static struct harness h;
static char out[HARNESS_ANSWER_BYTES];

static const char keep[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
static const char defer[] = "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n";

static struct http_server_stats stats_now(void)
{
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    return stats;
}

/* "Authorization: ID" is one who is known; one with a '!' is trusted. */
static struct http_who identify(void *user, const struct http_request *request)
{
    const char *text = http_header(request, "Authorization");
    (void)user;
    if (text == NULL || strcmp(text, "wrong") == 0)
        return (struct http_who){.rank = HTTP_ANONYMOUS};
    return (struct http_who){.rank = text[0] == '!' ? HTTP_TRUSTED : HTTP_KNOWN,
                             .id = (uint64_t)(unsigned char)text[strlen(text) - 1]};
}

static int ask_path(int fd, const char *path, const char *who)
{
    char request[128];
    size_t length;
    int status = 0;
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n", path,
             who != NULL ? "Authorization: " : "", who != NULL ? who : "",
             who != NULL ? "\r\n" : "");
    harness_send(&h, fd, request, strlen(request));
    harness_receive(&h, fd, out, &length, 50);
    return sscanf(out, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

static int ask_as(int fd, const char *who)
{
    return ask_path(fd, "/a", who);
}

static bool is_closed(int fd)
{
    char byte;
    harness_run(&h, 1);
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

START_TEST(anonymous_clients_who_hold_connections_make_room_and_nobody_else_does)
{
    enum { HELD = 40 };
    int held[HELD], agent, late;
    harness_start(
        &h, (struct http_server_config){.connections = 16, .anonymous = 4, .identify = identify});
    agent = harness_connect(&h);
    ck_assert_int_eq(ask_as(agent, "!a"), 200);
    for (int i = 0; i < HELD; i++) { /* of one address, and of others */
        char from[16];
        snprintf(from, sizeof from, "127.0.0.%d", 1 + i % 8);
        harness_from = from;
        held[i] = harness_connect(&h);
        harness_send(&h, held[i], "GET", i % 3);
        harness_run(&h, 1);
    }
    harness_from = NULL;
    struct http_server_stats stats = stats_now();
    ck_assert_uint_eq(stats.ranked[HTTP_ANONYMOUS], 4);
    ck_assert_uint_eq(stats.ranked[HTTP_TRUSTED], 1);
    ck_assert_uint_eq(stats.dropped, HELD - 4);
    ck_assert_uint_eq(stats.refused, 0);
    ck_assert(is_closed(held[0]) && is_closed(held[HELD - 5]) && !is_closed(held[HELD - 4]));
    late = harness_connect(&h); /* one that starts meanwhile */
    ck_assert_int_eq(ask_as(late, "!b"), 200);
    ck_assert_int_eq(ask_as(agent, "!a"), 200);
    for (int i = 0; i < HELD; i++)
        close(held[i]);
    close(agent);
    close(late);
    harness_run(&h, 10);
    stats = stats_now();
    ck_assert_uint_eq(stats.open, 0);
    for (int rank = 0; rank < HTTP_RANKS; rank++)
        ck_assert_uint_eq(stats.ranked[rank], 0);
    harness_stop(&h);
}
END_TEST

START_TEST(what_an_anonymous_client_asks_is_not_counted_against_who_is_known_at_its_address)
{
    int anonymous, agent;
    harness_start(&h, (struct http_server_config){.connections = 16,
                                                  .anonymous = 4,
                                                  .requests_per_second = 1,
                                                  .requests_burst = 5,
                                                  .identify = identify});
    harness_stop_clock();
    agent = harness_connect(&h);
    anonymous = harness_connect(&h);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(ask_as(anonymous, i % 2 == 0 ? NULL : "wrong"), 200);
    ck_assert_int_eq(ask_as(anonymous, "wrong"), 429);
    ck_assert_int_eq(ask_as(agent, "!a"), 200);
    ck_assert_int_eq(ask_as(anonymous, "b"), 200); /* and it is one no more */
    ck_assert_int_eq(ask_as(agent, "!a"), 200);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ask_as(anonymous, "b"), 200);
    ck_assert_int_eq(ask_as(anonymous, "b"), 429); /* but has a rate too */
    ck_assert_int_eq(ask_as(agent, "!a"), 200);
    close(anonymous);
    close(agent);
    harness_stop(&h);
}
END_TEST

/* How many are answered before one is told 429, and by then so long has passed. */
static int ask_dear(int fd, const char *who)
{
    int answered = 0, status;
    while ((status = ask_path(fd, "/dear", who)) == 200)
        ck_assert_int_lt(++answered, 100);
    ck_assert_int_eq(status, 429);
    ck_assert_ptr_nonnull(strstr(out, "too much of the server's time"));
    return answered;
}

START_TEST(who_asks_for_what_takes_long_is_told_to_wait_and_who_is_trusted_is_not)
{
    harness_start(&h, (struct http_server_config){.connections = 16,
                                                  .percent_per_id = 10,
                                                  .percent_known = 20,
                                                  .identify = identify});
    harness_stop_clock();
    int a = harness_connect(&h), b = harness_connect(&h), agent = harness_connect(&h);
    ck_assert_int_eq(ask_dear(a, "a"), 2); /* 10 % of 2 s, and the one that goes beyond it */
    ck_assert_ptr_nonnull(strstr(out, "with this token"));
    ck_assert_ptr_nonnull(strstr(out, "Retry-After: 2\r\n"));
    ck_assert_int_eq(ask_as(a, "a"), 429); /* whatever it asks for then */
    ck_assert_int_eq(ask_as(b, "b"), 200);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(ask_path(agent, "/dear", "!t"), 200);
    ck_assert_uint_eq(stats_now().over_time, 2);
    ck_assert_int_eq(ask_as(a, "a"), 200); /* it was 10 s */
    /* Each within its own, and all together beyond theirs. */
    ck_assert_int_eq(ask_path(a, "/dear", "a"), 200);
    ck_assert_int_eq(ask_path(a, "/dear", "c"), 200);
    ck_assert_int_eq(ask_path(a, "/dear", "d"), 200);
    ck_assert_int_eq(ask_as(b, "b"), 429);
    ck_assert_ptr_nonnull(strstr(out, "with tokens of this scope"));
    ck_assert_int_eq(ask_as(agent, "!t"), 200);
    harness_clock_ns += 10 * BASE_NS_PER_S;
    ck_assert_int_eq(ask_as(b, "b"), 200);
    close(a);
    close(b);
    close(agent);
    harness_stop(&h);
}
END_TEST

START_TEST(all_anonymous_clients_together_have_a_rate_and_are_closed_after_a_few_429)
{
    unsigned answered = 0, limited = 0;
    harness_start(&h, (struct http_server_config){.connections = 16,
                                                  .requests_per_second = 100,
                                                  .anonymous_per_second = 5,
                                                  .identify = identify});
    harness_stop_clock();
    for (int i = 0; i < 20; i++) {
        char from[16];
        snprintf(from, sizeof from, "127.0.0.%d", 1 + i);
        harness_from = from;
        int fd = harness_connect(&h), status = 200, running = 0;
        while (running < 4 && (status = ask_as(fd, NULL)) != 0) {
            answered += status == 200;
            limited += status == 429;
            running = status == 429 ? running + 1 : 0;
        }
        ck_assert_int_eq(running, 3);
        close(fd);
    }
    harness_from = NULL;
    ck_assert_uint_eq(answered, 5);
    ck_assert_uint_eq(limited, 20 * 3);
    harness_clock_ns += BASE_NS_PER_S;
    int late = harness_connect(&h);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(ask_as(late, NULL), 200);
    ck_assert_int_eq(ask_as(late, NULL), 429);
    close(late);
    int agent = harness_connect(&h);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(ask_as(agent, "!a"), 200);
    close(agent);
    harness_stop(&h);
}
END_TEST

START_TEST(one_who_is_known_has_so_many_connections_and_all_of_them_leave_half)
{
    int fd[12], n = 0;
    harness_start(
        &h, (struct http_server_config){
                .connections = 8, .anonymous = 2, .connections_per_id = 3, .identify = identify});
    for (; n < 3; n++)
        ck_assert_int_eq(ask_as(fd[n] = harness_connect(&h), "a"), 200);
    ck_assert_int_eq(ask_as(fd[n++] = harness_connect(&h), "a"), 429);
    ck_assert(is_closed(fd[n - 1]));
    ck_assert_int_eq(ask_as(fd[0], "a"), 200); /* the others are as they were */
    ck_assert_int_eq(ask_as(fd[n++] = harness_connect(&h), "b"), 200);
    ck_assert_int_eq(ask_as(fd[n++] = harness_connect(&h), "c"), 503);
    ck_assert(is_closed(fd[n - 1]));
    ck_assert_int_eq(ask_as(fd[n++] = harness_connect(&h), "!d"), 200);
    ck_assert_int_eq(ask_as(fd[n++] = harness_connect(&h), "!e"), 200);
    while (n > 0)
        close(fd[--n]);
    harness_stop(&h);
}
END_TEST

START_TEST(a_request_that_is_being_dealt_with_does_not_make_room)
{
    size_t length;
    harness_start(
        &h, (struct http_server_config){.connections = 8, .anonymous = 1, .identify = identify});
    int first = harness_connect(&h);
    harness_send(&h, first, defer, strlen(defer));
    harness_run(&h, 10);
    ck_assert_uint_eq(h.deferred_count, 1);
    ck_assert_int_eq(harness_ask(&h, keep, out), 503);
    struct http_response r = {.status = 200, .body = "{\"late\":1}", .body_length = 10};
    ck_assert_int_eq(http_reply(h.deferred[0], &r), 0);
    harness_receive(&h, first, out, &length, 40);
    ck_assert_ptr_nonnull(strstr(out, "{\"late\":1}"));
    close(first);
    harness_stop(&h);
}
END_TEST

START_TEST(bodies_of_anonymous_clients_leave_room_for_those_of_others)
{
    enum { BODY = 1 << 16, SLOW = 8 };
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n";
    static char body[BODY];
    char request[256];
    size_t length;
    int fd[SLOW], agent;
    harness_start(&h, (struct http_server_config){.body_bytes = BODY,
                                                  .bodies_bytes = SLOW * BODY,
                                                  .connections = 64,
                                                  .anonymous = 32,
                                                  .identify = identify});
    for (int i = 0; i < SLOW; i++) {
        char from[16];
        snprintf(from, sizeof from, "127.0.0.%d", 1 + i);
        harness_from = from;
        fd[i] = harness_connect(&h);
        harness_send(&h, fd[i], head, strlen(head));
        harness_send(&h, fd[i], body, BODY / 2 + 8192);
    }
    harness_from = NULL;
    agent = harness_connect(&h);
    snprintf(request, sizeof request,
             "POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: !a\r\nContent-Length: %d\r\n\r\n",
             BODY);
    harness_send(&h, agent, request, strlen(request));
    harness_send(&h, agent, body, BODY);
    harness_receive(&h, agent, out, &length, 100);
    ck_assert_msg(strstr(out, "HTTP/1.1 200 ") != NULL, "%.100s", out);
    for (int i = 0; i < SLOW; i++)
        close(fd[i]);
    close(agent);
    harness_stop(&h);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(anonymous_clients_who_hold_connections_make_room_and_nobody_else_does)                       \
    T(what_an_anonymous_client_asks_is_not_counted_against_who_is_known_at_its_address)            \
    T(who_asks_for_what_takes_long_is_told_to_wait_and_who_is_trusted_is_not)                      \
    T(all_anonymous_clients_together_have_a_rate_and_are_closed_after_a_few_429)                   \
    T(one_who_is_known_has_so_many_connections_and_all_of_them_leave_half)                         \
    T(a_request_that_is_being_dealt_with_does_not_make_room)                                       \
    T(bodies_of_anonymous_clients_leave_room_for_those_of_others)
KEDGE_CHECK_MAIN("http admission", TESTS)
