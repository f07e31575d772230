/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come piece by piece: at the server with raw clients, and at our own client. */
#include "harness.h"

#include <poll.h>

#include "base/http/client.h"

static struct harness h;
static char out[HARNESS_ANSWER_BYTES];
static const char *const lines[] = {"one\n", "\n", "two\nthr", "ee\n", "four\n"};
enum { LINES = sizeof lines / sizeof lines[0] };

#define REQUEST "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"

static void begin(unsigned told, unsigned count, struct http_server_config config)
{
    harness_start(&h, config);
    h.pieces = lines;
    h.told = told;
    h.count = count;
}

static int open_stream(void)
{
    int fd = harness_connect(&h);
    harness_send(&h, fd, REQUEST, strlen(REQUEST));
    return fd;
}

static void tell(void)
{
    h.told++;
    http_stream_wake(h.stream);
}

START_TEST(pieces_come_when_they_are_there_and_the_connection_stays)
{
    size_t length;
    struct http_server_stats stats;
    begin(1, 3, (struct http_server_config){0});
    int fd = open_stream();
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_ptr_nonnull(strstr(out, "Transfer-Encoding: chunked\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "Content-Type: application/jsonl\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "\r\n\r\n4\r\none\n\r\n"));
    ck_assert_int_eq(h.reply_status, 0);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.streams, 1);
    tell();
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_str_eq(out, "1\r\n\n\r\n");
    ck_assert_uint_eq(h.over, 0);
    tell();
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_str_eq(out, "7\r\ntwo\nthr\r\n0\r\n\r\n");
    ck_assert_uint_eq(h.over, 1);
    harness_send(&h, fd, REQUEST, strlen(REQUEST));
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_ptr_nonnull(strstr(out, "7\r\ntwo\nthr\r\n0\r\n\r\n"));
    ck_assert_uint_eq(h.over, 2);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.streams, 0);
    ck_assert_uint_eq(stats.accepted, 1);
    close(fd);
    harness_stop(&h);
}
END_TEST

START_TEST(a_handler_wakes_a_stream_of_another_connection)
{
    size_t length;
    begin(0, 3, (struct http_server_config){0});
    int fd = open_stream();
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_int_eq(harness_ask(&h, "GET /tell HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    ck_assert(!harness_receive(&h, fd, out, &length, 50));
    ck_assert_str_eq(out, "4\r\none\n\r\n");
    close(fd);
    harness_stop(&h);
}
END_TEST

START_TEST(an_old_client_gets_it_unchunked_and_head_gets_none)
{
    begin(3, 3, (struct http_server_config){0});
    ck_assert_int_eq(harness_ask(&h, "GET /stream HTTP/1.0\r\nHost: x\r\n\r\n", out), 200);
    ck_assert_ptr_nonnull(strstr(out, "\r\n\r\none\n\ntwo\nthr"));
    ck_assert_uint_eq(h.over, 1);
    ck_assert_int_eq(harness_ask(&h, "HEAD /stream HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    ck_assert_ptr_null(strstr(out, "one"));
    ck_assert_uint_eq(h.over, 2);
    ck_assert_int_eq(harness_ask(&h, "GET /stream?bad HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out),
                     500);
    ck_assert_int_eq(h.reply_status, -EINVAL);
    ck_assert_uint_eq(h.over, 3);
    harness_stop(&h);
}
END_TEST

START_TEST(a_client_that_goes_is_noticed_with_the_next_piece)
{
    size_t length;
    begin(1, LINES, (struct http_server_config){0});
    int fd = open_stream();
    harness_receive(&h, fd, out, &length, 50);
    close(fd);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_le(h.over, 1);
        if (h.over == 0)
            tell();
        harness_run(&h, 50);
    }
    ck_assert_uint_eq(h.over, 1);
    harness_stop(&h);
}
END_TEST

START_TEST(a_client_that_takes_nothing_is_cut_off_and_holds_up_nobody)
{
    static char big[1 << 20];
    const char *const pieces[] = {big, big, big, big, big, big, big, big, big, big,
                                  big, big, big, big, big, big, big, big, big, big};
    struct http_server_stats stats;
    size_t length;
    memset(big, 'x', sizeof big);
    begin(20, 20, (struct http_server_config){.stream_timeout_ms = 300});
    harness_stop_clock();
    h.pieces = pieces;
    h.piece_bytes = sizeof big;
    int slow = open_stream(), fast = open_stream();
    harness_receive(&h, fast, out, &length, 250);
    ck_assert_uint_gt(length, 20 * sizeof big);
    ck_assert_uint_eq(h.streams, 2);
    harness_clock_ns = 0;
    uint64_t begun = base_clock_ns();
    while (h.over < 2 && base_clock_ns() - begun < 10 * BASE_NS_PER_S)
        harness_run(&h, 10);
    ck_assert_uint_eq(h.over, 2);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.open, 1);
    close(slow);
    close(fast);
    harness_stop(&h);
}
END_TEST

START_TEST(stopping_ends_streams_whether_they_sleep_or_not)
{
    size_t length;
    begin(1, LINES, (struct http_server_config){0});
    int first = open_stream(), second = open_stream(), late = harness_connect(&h);
    harness_receive(&h, first, out, &length, 50);
    harness_send(&h, late, REQUEST, strlen(REQUEST));
    tell();
    harness_stop(&h);
    ck_assert_uint_eq(h.over, h.streams);
    ck_assert(harness_receive(&h, first, out, &length, 500));
    ck_assert_ptr_nonnull(strstr(out, "0\r\n\r\n"));
    ck_assert(harness_receive(&h, second, out, &length, 500));
    close(first);
    close(second);
    close(late);
}
END_TEST

/* ---- our client */

struct outcome {
    int calls, status;
    char body[1024], why[128];
    char lines[1024];
    int stop_after; /* lines; 0: never */
    int count;
};

static void done(void *user, const struct http_answer *a)
{
    struct outcome *o = user;
    o->calls++;
    o->status = a->status;
    snprintf(o->body, sizeof o->body, "%s", a->body);
    snprintf(o->why, sizeof o->why, "%s", a->why);
}

static int on_line(void *user, const char *line, size_t length)
{
    struct outcome *o = user;
    size_t used = strlen(o->lines);
    ck_assert_uint_eq(strlen(line), length);
    snprintf(o->lines + used, sizeof o->lines - used, "[%s]", line);
    return ++o->count == o->stop_after;
}

/* One call, with one more piece told whenever nothing happens, until it ends. */
static struct outcome call(struct outcome o, struct http_call c, const char *path, bool telling)
{
    struct http_client *client;
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", http_server_port(h.server), path);
    c.url = url;
    c.on_line = on_line;
    c.timeout_ms = UINT32_MAX;
    ck_assert_int_eq(http_client_new(&client), 0);
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), 0);
    uint64_t begun = base_clock_ns();
    struct pollfd p[2] = {{.fd = http_client_fd(client), .events = POLLIN},
                          {.fd = http_server_fd(h.server), .events = POLLIN}};
    while (o.calls == 0 && base_clock_ns() - begun < 10 * BASE_NS_PER_S) {
        int ready = poll(p, 2, 30);
        http_client_run(client);
        http_server_run(h.server);
        if (ready == 0 && telling && h.told < h.count)
            tell();
    }
    ck_assert_int_eq(o.calls, 1);
    http_client_free(client);
    return o;
}

START_TEST(the_client_gets_whole_lines_however_they_were_cut)
{
    begin(0, LINES, (struct http_server_config){0});
    struct outcome o = call((struct outcome){0}, (struct http_call){0}, "/stream", true);
    ck_assert_int_eq(o.status, 200);
    ck_assert_str_eq(o.lines, "[one][][two][three][four]");
    ck_assert_str_eq(o.body, "");
    h.count = 3; /* ends within a line */
    o = call((struct outcome){0}, (struct http_call){0}, "/stream", false);
    ck_assert_str_eq(o.lines, "[one][][two]");
    ck_assert_str_eq(o.body, "");
    harness_stop(&h);
}
END_TEST

START_TEST(an_error_is_no_stream)
{
    begin(0, 1, (struct http_server_config){0});
    struct outcome o = call((struct outcome){0}, (struct http_call){0}, "/error", false);
    ck_assert_int_eq(o.status, 409);
    ck_assert_str_eq(o.lines, "");
    ck_assert_ptr_nonnull(strstr(o.body, "incarnation 3 is lower"));
    harness_stop(&h);
}
END_TEST

START_TEST(the_client_may_stop_and_bounds_lines_and_silence)
{
    begin(LINES, LINES, (struct http_server_config){0});
    struct outcome o =
        call((struct outcome){.stop_after = 2}, (struct http_call){0}, "/stream", false);
    ck_assert_int_eq(o.status, -ECANCELED);
    ck_assert_str_eq(o.lines, "[one][]");
    o = call((struct outcome){0}, (struct http_call){.max_response_bytes = 4}, "/stream", false);
    ck_assert_int_eq(o.status, -EMSGSIZE);
    ck_assert_str_eq(o.lines, "[one][][two]");
    h.told = 1;
    uint64_t begun = base_clock_ns();
    o = call((struct outcome){0}, (struct http_call){.silence_timeout_ms = 200}, "/stream", false);
    ck_assert_int_eq(o.status, -ETIMEDOUT);
    ck_assert_str_eq(o.why, "nothing came for too long");
    ck_assert_str_eq(o.lines, "[one]");
    ck_assert_uint_ge(base_clock_ns() - begun, 150 * BASE_NS_PER_MS); /* a loop's time is older */
    o = call((struct outcome){0}, (struct http_call){.silence_timeout_ms = 200}, "/defer", false);
    ck_assert_int_eq(o.status, -ETIMEDOUT);
    h.told = 0;
    o = call((struct outcome){0}, (struct http_call){.silence_timeout_ms = 1000}, "/stream", true);
    ck_assert_int_eq(o.status, 200);
    harness_stop(&h);
}
END_TEST

/* libmicrohttpd ends the program when it is stopped while a connection is suspended. */
START_TEST(what_comes_while_the_server_stops_is_not_deferred_any_more)
{
    static const char defer[] = "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char stream[] = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
    const char *const later[] = {defer, stream};
    for (int i = 0; i < 2; i++) {
        size_t length;
        h = (struct harness){.count = 1};
        harness_start(&h, (struct http_server_config){0});
        int waiting = harness_connect(&h), fresh = harness_connect(&h);
        harness_send(&h, waiting, defer, strlen(defer));
        harness_run(&h, 20);
        ck_assert_uint_eq(h.deferred_count, 1);
        ck_assert_int_eq((int)send(waiting, later[i], strlen(later[i]), 0), (int)strlen(later[i]));
        ck_assert_int_eq((int)send(fresh, later[i], strlen(later[i]), 0), (int)strlen(later[i]));
        harness_stop(&h);
        ck_assert_uint_eq(h.handled, 1);
        length = (size_t)recv(fresh, out, sizeof out - 1, 0);
        ck_assert_uint_lt(length, sizeof out);
        out[length] = '\0';
        ck_assert(length == 0 || strstr(out, "503") != NULL);
        close(waiting);
        close(fresh);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_comes_while_the_server_stops_is_not_deferred_any_more)                                  \
    T(pieces_come_when_they_are_there_and_the_connection_stays)                                    \
    T(a_handler_wakes_a_stream_of_another_connection)                                              \
    T(an_old_client_gets_it_unchunked_and_head_gets_none)                                          \
    T(a_client_that_goes_is_noticed_with_the_next_piece)                                           \
    T(a_client_that_takes_nothing_is_cut_off_and_holds_up_nobody)                                  \
    T(stopping_ends_streams_whether_they_sleep_or_not)                                             \
    T(the_client_gets_whole_lines_however_they_were_cut)                                           \
    T(an_error_is_no_stream)                                                                       \
    T(the_client_may_stop_and_bounds_lines_and_silence)
KEDGE_CHECK_MAIN("base http streams", TESTS)
