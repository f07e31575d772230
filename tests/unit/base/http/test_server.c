/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <stdlib.h>
#include <sys/stat.h>

static struct harness h;
static char out[HARNESS_ANSWER_BYTES];

#define ASK(line) harness_ask(&h, line " HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out)

START_TEST(the_handler_sees_method_path_query_and_headers)
{
    harness_start(&h, (struct http_server_config){0});
    ck_assert_int_eq(harness_ask(&h,
                                 "DELETE /v1/no%64es/fe80%3A%3A1?x=1&name=a%20b+c%2Fd HTTP/1.1\r\n"
                                 "X-Test: value\r\n" HARNESS_CLOSE "\r\n",
                                 out),
                     200);
    ck_assert_ptr_nonnull(strstr(out, "{DELETE /v1/nodes/fe80::1 name=a b c/d header=value "
                                      "peer=127. local=0}"));
    ck_assert_ptr_nonnull(strstr(out, "Content-Type: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "X-Answer: yes\r\n"));
    ck_assert_int_eq(ASK("GET /?name"), 200);
    ck_assert_ptr_nonnull(strstr(out, " name= header=(none)"));
    ck_assert_int_eq(ASK("GET /"), 200);
    ck_assert_ptr_nonnull(strstr(out, " name=(none) "));
    harness_stop(&h);
}
END_TEST

START_TEST(all_query_parameters_are_told_as_they_came)
{
    harness_start(&h, (struct http_server_config){0});
    ck_assert_int_eq(ASK("GET /queries?b=1&a=2%263&B&&b=&=x"), 200);
    ck_assert_ptr_nonnull(strstr(out, "\r\n\r\n[b=1][a=2&3][B=][b=][=x]"));
    ck_assert_int_eq(ASK("GET /queries?"), 200);
    ck_assert_ptr_null(strchr(out, '['));
    harness_stop(&h);
}
END_TEST

START_TEST(bodies_arrive_whole)
{
    harness_start(&h, (struct http_server_config){0});
    ck_assert_int_eq(
        harness_ask(&h, "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n" HARNESS_CLOSE "\r\nhello",
                    out),
        200);
    ck_assert_ptr_nonnull(strstr(out, "\r\n\r\nhello"));
    ck_assert_ptr_nonnull(strstr(out, "text/plain"));
    ck_assert_uint_eq(h.body_length, 5);
    harness_stop(&h);
}
END_TEST

START_TEST(a_connection_is_kept_for_the_next_request)
{
    size_t length;
    harness_start(&h, (struct http_server_config){0});
    int fd = harness_connect(&h);
    for (int i = 0; i < 3; i++) {
        static const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        harness_send(&h, fd, request, strlen(request));
        ck_assert(!harness_receive(&h, fd, out, &length, 50));
        ck_assert_ptr_nonnull(strstr(out, "{GET /a "));
    }
    /* Two at once: answered in order. */
    static const char two[] =
        "GET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n";
    harness_send(&h, fd, two, strlen(two));
    harness_receive(&h, fd, out, &length, 50);
    char *first = strstr(out, "{GET /b ");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(strstr(first, "{GET /c "));
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.accepted, 1);
    ck_assert_uint_eq(stats.requests, 5);
    close(fd);
    harness_run(&h, 10);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.open, 0);
    harness_stop(&h);
}
END_TEST

START_TEST(malformed_uris_get_a_problem_and_never_reach_the_handler)
{
    harness_start(&h, (struct http_server_config){0});
    ck_assert_int_eq(ASK("GET /a%00b"), 400);
    ck_assert_ptr_nonnull(strstr(out, "Content-Type: application/problem+json\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "\"status\":400,\"detail\":\"the URI is malformed\"}"));
    ck_assert_int_eq(ASK("GET /a%2Fb"), 400);
    ck_assert_int_eq(ASK("GET /a%2"), 400);
    ck_assert_int_eq(ASK("GET /a%zz"), 400);
    ck_assert_int_eq(ASK("GET /?name=%00"), 400);
    ck_assert_int_eq(ASK("GET /?name=%"), 400);
    ck_assert_uint_eq(h.handled, 0);
    harness_stop(&h);
}
END_TEST

START_TEST(rubbish_in_any_place_neither_reaches_the_handler_nor_leaks)
{
    static const char *const rubbish[] = {
        "\r\n\r\n",
        "\x16\x03\x01\x02",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost x\r\n" HARNESS_CLOSE "\r\n",
        "GET / HTTP/1.1\r\n\r\n", /* no Host */
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n" HARNESS_CLOSE "\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n" HARNESS_CLOSE "\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5x\r\n" HARNESS_CLOSE "\r\nhello",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HARNESS_CLOSE "\r\nzz\r\n",
    };
    harness_start(&h,
                  (struct http_server_config){.request_timeout_ms = 100, .idle_timeout_ms = 100});
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        int status = harness_ask(&h, rubbish[i], out);
        ck_assert_msg(status == 0 || status >= 400, "%zu: %d", i, status);
    }
    ck_assert_uint_eq(h.handled, 0);
    ck_assert_int_eq(ASK("GET /"), 200);
    harness_stop(&h);
}
END_TEST

START_TEST(headers_without_end_are_cut_off_at_the_memory_bound)
{
    static char headers[1 << 20];
    harness_start(&h, (struct http_server_config){.header_bytes = 8192});
    size_t n = (size_t)snprintf(headers, sizeof headers, "GET / HTTP/1.1\r\nHost: x\r\n");
    while (n < sizeof headers - 64)
        n += (size_t)snprintf(headers + n, sizeof headers - n, "X-%zu: some value\r\n", n);
    int status = harness_ask(&h, headers, out);
    ck_assert_msg(status == 0 || status == 413 || status == 431, "%d", status);
    ck_assert_uint_eq(h.handled, 0);
    harness_stop(&h);
}
END_TEST

/* A request with a body of so many bytes. */
static int post(size_t bytes, const char *extra)
{
    size_t room = bytes + 512;
    char *request = malloc(room);
    ck_assert_ptr_nonnull(request);
    int n = snprintf(request, room,
                     "POST /echo HTTP/1.1\r\nContent-Length: %zu\r\n%s" HARNESS_CLOSE "\r\n", bytes,
                     extra);
    memset(request + n, 'x', bytes);
    request[(size_t)n + bytes] = '\0';
    int status = harness_ask(&h, request, out);
    free(request);
    return status;
}

START_TEST(a_body_at_the_bound_passes_and_one_byte_more_is_a_413_problem)
{
    harness_start(&h, (struct http_server_config){.body_bytes = 10000});
    ck_assert_int_eq(post(10000, ""), 200);
    ck_assert_uint_eq(h.body_length, 10000);
    ck_assert_int_eq(post(10001, ""), 413);
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    ck_assert_ptr_nonnull(strstr(out, "at most 10000 bytes"));
    ck_assert_int_eq(post(2 << 20, ""), 413);
    ck_assert_uint_eq(h.handled, 1);
    harness_stop(&h);
}
END_TEST

START_TEST(who_waits_for_100_continue_is_told_413_before_it_sends)
{
    harness_start(&h, (struct http_server_config){.body_bytes = 100});
    ck_assert_int_eq(harness_ask(&h,
                                 "POST /echo HTTP/1.1\r\nContent-Length: 101\r\n"
                                 "Expect: 100-continue\r\n" HARNESS_CLOSE "\r\n",
                                 out),
                     413);
    ck_assert_uint_eq(h.handled, 0);
    harness_stop(&h);
}
END_TEST

START_TEST(a_body_that_is_announced_as_huge_is_refused_before_it_comes)
{
    harness_start(&h, (struct http_server_config){.body_bytes = 100});
    ck_assert_int_eq(
        harness_ask(&h, "POST /echo HTTP/1.1\r\nContent-Length: 100000000\r\n" HARNESS_CLOSE "\r\n",
                    out),
        413);
    ck_assert_uint_eq(h.handled, 0);
    harness_stop(&h);
}
END_TEST

/* Without reading what it sends, whose chunks nobody counts. */
START_TEST(who_sends_chunks_is_told_411_and_cut_off)
{
    static char chunk[65536 + 16];
    size_t length;
    harness_start(&h, (struct http_server_config){.body_bytes = 1000});
    int fd = harness_connect(&h);
    static const char head[] =
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HARNESS_CLOSE "\r\n";
    harness_send(&h, fd, head, strlen(head));
    ck_assert(harness_receive(&h, fd, out, &length, 3000));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 411 "));
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    harness_send(&h, fd, chunk, sizeof chunk);
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.open, 0);
    ck_assert_uint_eq(h.handled, 0);
    close(fd);
    harness_stop(&h);
}
END_TEST

START_TEST(all_bodies_together_have_a_bound_that_answers_503)
{
    harness_start(&h, (struct http_server_config){.body_bytes = 1 << 20, .bodies_bytes = 1 << 17});
    ck_assert_int_eq(post(100000, ""), 200);
    ck_assert_int_eq(post(400000, ""), 503);
    ck_assert_ptr_nonnull(strstr(out, "Retry-After: 1\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    ck_assert_int_eq(post(100000, ""), 200); /* and nothing of it is left counted */
    harness_stop(&h);
}
END_TEST

START_TEST(one_address_cannot_take_all_the_room_for_bodies)
{
    enum { SLOW = 8, BODY = 1 << 16 };
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n";
    static char half[BODY / 2 + 8192]; /* for which all the room of a whole one is taken */
    int fd[SLOW];
    harness_start(&h, (struct http_server_config){.body_bytes = BODY, .bodies_bytes = SLOW * BODY});
    for (int i = 0; i < SLOW; i++) {
        fd[i] = harness_connect(&h);
        harness_send(&h, fd[i], head, strlen(head));
        harness_send(&h, fd[i], half, sizeof half);
    }
    ck_assert_int_eq(post(60000, ""), 503);
    harness_from = "127.0.0.2";
    ck_assert_int_eq(post(60000, ""), 200);
    harness_from = NULL;
    for (int i = 0; i < SLOW; i++)
        close(fd[i]);
    harness_run(&h, 20);
    ck_assert_int_eq(post(60000, ""), 200); /* and nothing of them is left counted */
    harness_stop(&h);
}
END_TEST

/* Many may wait for their answer: each takes the room of what it holds. */
START_TEST(requests_that_wait_take_no_more_room_than_their_bodies)
{
    enum { WAIT = 16, BODY = 1 << 13 }; /* one address has the room of one whole body, of four */
    static const char small[] = "POST /defer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
                                "some body";
    int fd[WAIT];
    harness_start(&h, (struct http_server_config){.body_bytes = BODY, .bodies_bytes = 4 * BODY});
    for (int i = 0; i < WAIT; i++) {
        fd[i] = harness_connect(&h);
        harness_send(&h, fd[i], small, sizeof small - 1);
        for (int k = 0; k < 500 && (int)h.deferred_count <= i; k++)
            harness_run(&h, 20);
    }
    ck_assert_uint_eq(h.deferred_count, WAIT);
    for (int i = 0; i < WAIT; i++) {
        ck_assert_str_eq(h.deferred[i]->body, "some body");
        http_reply_error(h.deferred[i], -EBUSY, "woken");
        close(fd[i]);
    }
    harness_run(&h, 20);
    harness_stop(&h);
}
END_TEST

START_TEST(a_request_that_is_not_whole_in_time_gets_408)
{
    size_t length;
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n";
    harness_start(&h, (struct http_server_config){.request_timeout_ms = 200});
    harness_stop_clock();
    int fd = harness_connect(&h);
    harness_send(&h, fd, head, strlen(head));
    for (int ms = 50; ms < 200; ms += 50) { /* a byte now and then buys no time */
        harness_clock_ns += 50 * BASE_NS_PER_MS;
        harness_send(&h, fd, "x", 1);
        ck_assert(!harness_receive(&h, fd, out, &length, 5));
        ck_assert_uint_eq(length, 0);
    }
    harness_clock_ns += 50 * BASE_NS_PER_MS;
    ck_assert(harness_receive(&h, fd, out, &length, 1000));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 408 "));
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    ck_assert_uint_eq(h.handled, 0);
    close(fd);
    harness_stop(&h);
}
END_TEST

START_TEST(idle_connections_are_closed_in_time_even_when_they_trickle)
{
    size_t length;
    harness_start(&h, (struct http_server_config){.idle_timeout_ms = 200});
    harness_stop_clock();
    int silent = harness_connect(&h), trickling = harness_connect(&h);
    harness_run(&h, 5);
    for (int ms = 50; ms < 200; ms += 50) {
        harness_clock_ns += 50 * BASE_NS_PER_MS;
        harness_send(&h, trickling, "G", 1);
        ck_assert(!harness_receive(&h, trickling, out, &length, 5));
    }
    harness_clock_ns += 50 * BASE_NS_PER_MS;
    ck_assert(harness_receive(&h, trickling, out, &length, 1000));
    ck_assert(harness_receive(&h, silent, out, &length, 1000));
    close(silent);
    close(trickling);
    harness_stop(&h);
}
END_TEST

START_TEST(a_client_that_does_not_take_its_answer_is_hung_up_on)
{
    static const char request[] = "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";
    harness_start(&h, (struct http_server_config){.idle_timeout_ms = 300});
    int fd = harness_connect(&h);
    harness_send(&h, fd, request, strlen(request));
    struct http_server_stats stats = {.open = 1};
    for (int i = 0; i < 40 && stats.open > 0; i++) {
        harness_run(&h, 50);
        http_server_stats(h.server, &stats);
    }
    ck_assert_uint_eq(stats.open, 0);
    close(fd);
    harness_stop(&h);
}
END_TEST

/* A Unix socket, whose buffer nobody fills up meanwhile: what is left in it at the end is what was
 * not read. */
START_TEST(of_what_a_refused_client_sends_a_little_is_read)
{
    static const char keep[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    char path[64], bytes[4096] = {0};
    struct http_server_stats stats;
    size_t length = 0;
    ssize_t n;
    snprintf(path, sizeof path, "/tmp/kedge-scraps-%d", (int)getpid());
    harness_start(&h, (struct http_server_config){.connections = 1, .unix_path = path});
    const int other = harness_connect_unix(path);
    harness_send(&h, other, keep, sizeof keep - 1);
    const int fd = harness_connect_unix(path);
    while ((n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL)) > 0)
        length += (size_t)n;
    ck_assert_uint_gt(length, 64 << 10);
    harness_run(&h, 20);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.refused, 1);
    n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(memcmp(bytes, "HTTP/1.1 503 ", 13), 0);
    ck_assert_int_eq(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, ECONNRESET); /* it was closed with unread bytes */
    close(fd);
    close(other);
    harness_stop(&h);
}
END_TEST

START_TEST(a_large_answer_arrives_whole)
{
    size_t length;
    static const char request[] = "GET /big HTTP/1.1\r\n" HARNESS_CLOSE "\r\n";
    harness_start(&h, (struct http_server_config){0});
    int fd = harness_connect(&h);
    harness_send(&h, fd, request, strlen(request));
    ck_assert(harness_receive(&h, fd, out, &length, 3000));
    ck_assert_uint_gt(length, 3 << 20);
    close(fd);
    harness_stop(&h);
}
END_TEST

START_TEST(errors_come_from_the_table_and_mistakes_of_a_handler_are_500)
{
    harness_start(&h, (struct http_server_config){0});
    ck_assert_int_eq(ASK("GET /error"), 409);
    ck_assert_ptr_nonnull(strstr(out, "{\"type\":\"urn:kedge:problem:conflict\","
                                      "\"title\":\"stale incarnation\",\"status\":409,"
                                      "\"detail\":\"incarnation 3 is lower than the known 5\"}"));
    ck_assert_int_eq(ASK("GET /none"), 500);
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    ck_assert_int_eq(ASK("GET /bad-header"), 500);
    ck_assert_int_eq(h.reply_status, -EINVAL);
    ck_assert_ptr_null(strstr(out, "forged"));
    ck_assert_int_eq(ASK("GET /bad-status"), 500);
    ck_assert_int_eq(ASK("HEAD /"), 200);
    ck_assert_ptr_null(strstr(out, "{HEAD"));
    harness_stop(&h);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_handler_sees_method_path_query_and_headers)                                              \
    T(all_query_parameters_are_told_as_they_came)                                                  \
    T(bodies_arrive_whole)                                                                         \
    T(a_connection_is_kept_for_the_next_request)                                                   \
    T(malformed_uris_get_a_problem_and_never_reach_the_handler)                                    \
    T(rubbish_in_any_place_neither_reaches_the_handler_nor_leaks)                                  \
    T(headers_without_end_are_cut_off_at_the_memory_bound)                                         \
    T(a_body_at_the_bound_passes_and_one_byte_more_is_a_413_problem)                               \
    T(who_waits_for_100_continue_is_told_413_before_it_sends)                                      \
    T(a_body_that_is_announced_as_huge_is_refused_before_it_comes)                                 \
    T(who_sends_chunks_is_told_411_and_cut_off)                                                    \
    T(all_bodies_together_have_a_bound_that_answers_503)                                           \
    T(requests_that_wait_take_no_more_room_than_their_bodies)                                      \
    T(one_address_cannot_take_all_the_room_for_bodies)                                             \
    T(a_request_that_is_not_whole_in_time_gets_408)                                                \
    T(idle_connections_are_closed_in_time_even_when_they_trickle)                                  \
    T(a_client_that_does_not_take_its_answer_is_hung_up_on)                                        \
    T(of_what_a_refused_client_sends_a_little_is_read)                                             \
    T(a_large_answer_arrives_whole)                                                                \
    T(errors_come_from_the_table_and_mistakes_of_a_handler_are_500)
KEDGE_CHECK_MAIN("http server", TESTS)
