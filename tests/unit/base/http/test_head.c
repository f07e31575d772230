/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that two readers could understand in two ways, or that libmicrohttpd takes leniently: what
 * comes back, and that what is behind one that is refused is never taken for a request. */
#include "base/http/library.h"
#include "base/problem.h"
#include "harness.h"

static struct harness h;
static char out[HARNESS_ANSWER_BYTES];

struct raw {
    int status;
    int handled; /* requests that reached the handler, the one behind it included */
    size_t length;
    const char *bytes;
    bool page; /* libmicrohttpd answers it with a page of its own */
};
#define RAW(status, handled, text)                                                                 \
    {                                                                                              \
        status, handled, sizeof(text) - 1, text, false                                             \
    }
#define PAGE(status, text)                                                                         \
    {                                                                                              \
        status, 0, sizeof(text) - 1, text, true                                                    \
    }
#define H "Host: x\r\n"
/* What a proxy takes for a body, or for somebody else's request. */
#define NEXT "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

static const struct raw raws[] = {
    /* As it has to be: the request behind it is one. */
    RAW(200, 2, "GET / HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(200, 2, "GET / HTTP/1.1\r\nhOST: x\r\nX-A:\r\nX-B: \t a b\t \r\n\r\n" NEXT),
    RAW(200, 2, "POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello" NEXT),
    RAW(200, 2, "GET /?a=1&b=%20 HTTP/1.1\r\n" H "Cookie: a=b; c=\"d\"\r\nX-A: 1\r\n\r\n" NEXT),
    RAW(200, 2, "\r\nGET / HTTP/1.1\r\n" H "\r\n" NEXT),
    /* The body's length. */
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5 \r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5a\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5\t\r\n\r\nhello" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length: \xb5\r\n\r\nhello" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: +5\r\n\r\nhello" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\nContent-Length: 5\r\n\r\nhello" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "Content-Length: +0\r\n\r\n" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: +5\r\n\r\nhello" NEXT),
    RAW(413, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n" NEXT),
    RAW(413, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551621\r\n\r\nhello" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
        "0\r\n\r\n" NEXT),
    RAW(411, 0, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    RAW(411, 0,
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: CHUNKED\r\n\r\n"
        "ffffffffffffffff\r\nhello" NEXT),
    RAW(411, 0,
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
        "fffffffffffffffff\r\nhello" NEXT),
    RAW(501, 0, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n" NEXT),
    RAW(501, 0, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" NEXT),
    RAW(501, 0, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT),
    RAW(501, 0, "GET / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"
        "0\r\n\r\n" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" NEXT),
    RAW(400, 0, "POST / HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\nhello" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "Content\tLength: 5\r\n\r\n" NEXT),
    RAW(417, 0, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nExpect: 200-ok\r\n\r\nhello" NEXT),
    /* Lines. */
    RAW(400, 0, "GET / HTTP/1.1\n" H "\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x\nX-A: 1\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\nHost: x\n\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\nContent-Length: 40\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\rContent-Length: 40\r\n\r\n" NEXT),
    PAGE(400, "GET / HTTP/1.1\r\r\n" H "\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\0b\r\n\r\n" NEXT),
    RAW(400, 0,
        "POST / HTTP/1.1\r\n" H "Content-Length: 5\0"
        "9\r\n\r\nhello" NEXT),
    PAGE(400, "GET / HTTP/1.1\r\n" H "X\0-A: a\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x\0\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\x01\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\r\n b\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H "X-A: a\r\n\tTransfer-Encoding: chunked\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n Host: x\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\n" H ": a\r\n\r\n" NEXT),
    PAGE(400, "GET / HTTP/1.1\r\n" H "no colon\r\n\r\n" NEXT),
    /* The first line. */
    RAW(400, 0, "GET  / HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(400, 0, "GET / a HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(400, 0, "GET /\0a HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(400, 0, "G(T / HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(400, 0, "GET a HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(505, 0, "GET / HTTP/1.2\r\n" H "\r\n" NEXT),
    PAGE(505, "GET / HTTP/2.0\r\n" H "\r\n" NEXT),
    PAGE(505, "GET / HTTP/0.9\r\n" H "\r\n" NEXT),
    PAGE(400, "GET /\r\n\r\n" NEXT),
    PAGE(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    /* Host. */
    RAW(400, 0, "GET / HTTP/1.1\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost:\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x y\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x:y\r\n\r\n" NEXT),
    RAW(400, 0, "GET / HTTP/1.1\r\nHost: x@y\r\n\r\n" NEXT),
    RAW(400, 0,
        "GET / HTTP/1.1\r\n" H "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" NEXT),
    RAW(200, 1, "GET / HTTP/1.0\r\n\r\n" NEXT),
    /* An absolute URI. */
    RAW(200, 2, "GET http://x/ HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(200, 2, "GET HTTPS://X:80 HTTP/1.1\r\nHost: x:80\r\n\r\n" NEXT),
    RAW(400, 0, "GET http://y/ HTTP/1.1\r\n" H "\r\n" NEXT),
    RAW(400, 0, "GET ftp://x/ HTTP/1.1\r\n" H "\r\n" NEXT),
    /* A malformed URI does not hide what makes the head dangerous. */
    RAW(400, 0, "POST /%zz HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
};

static int status_of(const char *answer)
{
    int status = 0;
    return sscanf(answer, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

/* Whoever is refused gets one answer, and that is a problem. */
static void check_refusal(const struct raw *raw)
{
    unsigned answers = 0;
    for (const char *p = out; (p = strstr(p, "HTTP/1.1 ")) != NULL; p++)
        answers += p[9] >= '1' && p[9] <= '5';
    ck_assert_msg(answers == 1, "%.80s: not one answer: %s", raw->bytes, out);
    ck_assert_msg(raw->page || strstr(out, "Content-Type: " BASE_PROBLEM_TYPE "\r\n") != NULL,
                  "%.80s: no problem: %s", raw->bytes, out);
    ck_assert_msg(strcasestr(out, "\r\nConnection: close\r\n") != NULL, "%.80s: %s", raw->bytes,
                  out);
}

static void check(const struct raw *raw, bool bytewise)
{
    size_t length;
    const unsigned before = h.handled;
    int fd =
        h.config.unix_path != NULL ? harness_connect_unix(h.config.unix_path) : harness_connect(&h);
    for (size_t at = 0; at < raw->length; at += bytewise ? 1 : raw->length)
        harness_send(&h, fd, raw->bytes + at, bytewise ? 1 : raw->length);
    /* One that is refused is closed at once; one that is taken stands until it is left alone. */
    bool closed = harness_receive(&h, fd, out, &length, raw->handled > 1 ? 30 : 3000);
    const int handled = (int)(h.handled - before);
    ck_assert_msg(status_of(out) == raw->status, "%.80s: %d, not %d: %s", raw->bytes,
                  status_of(out), raw->status, out);
    ck_assert_msg(handled == raw->handled, "%.80s: %d reached the handler", raw->bytes, handled);
    ck_assert_msg(closed == (raw->handled < 2), "%.80s: is left open", raw->bytes);
    if (raw->status != 200)
        check_refusal(raw);
    close(fd);
    harness_run(&h, 1);
}

START_TEST(what_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_a_request)
{
    harness_start(&h, (struct http_server_config){.request_timeout_ms = 60000});
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++)
        check(&raws[i], false);
    harness_stop(&h);
}
END_TEST

START_TEST(likewise_when_it_comes_byte_by_byte)
{
    harness_start(&h, (struct http_server_config){.request_timeout_ms = 60000});
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++)
        check(&raws[i], true);
    harness_stop(&h);
}
END_TEST

START_TEST(likewise_on_a_unix_socket)
{
    char directory[] = "/tmp/kedge-http-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s", directory);
    harness_start(&h, (struct http_server_config){.unix_path = path, .request_timeout_ms = 60000});
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++)
        check(&raws[i], false);
    harness_stop(&h);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* Cookies, which nobody here reads, libmicrohttpd copies. */
START_TEST(what_has_no_room_is_answered_once)
{
    static char request[20000];
    harness_start(
        &h, (struct http_server_config){.header_bytes = 16 << 10, .request_timeout_ms = 60000});
    for (size_t length = 3000; length < 15900; length += 300) {
        int n = snprintf(request, sizeof request, "GET / HTTP/1.1\r\n" H "Cookie: a=");
        memset(request + n, 'x', length);
        n += (int)length;
        n += snprintf(request + n, sizeof request - (size_t)n, "\r\n\r\n" NEXT);
        check(&(struct raw){length < 4096 ? 200 : 431, length < 4096 ? 2 : 0, (size_t)n, request,
                            false},
              false);
    }
    harness_stop(&h);
}
END_TEST

/* As many bytes of head as the server takes, in pieces of any size: its strings stay in place. */
START_TEST(a_large_head_that_is_right_is_taken_in_whatever_pieces_it_comes)
{
    static char head[12000];
    size_t length, n = (size_t)snprintf(head, sizeof head, "GET /a?b=1 HTTP/1.1\r\n" H);
    for (int i = 0; n < 9000; i++)
        n += (size_t)snprintf(head + n, sizeof head - n, "X-%d: %.*s\r\n", i, i % 60,
                              "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrs");
    n += (size_t)snprintf(head + n, sizeof head - n, "\r\n");
    harness_start(&h, (struct http_server_config){.request_timeout_ms = 60000});
    for (size_t piece = 17; piece < n; piece = piece * 3 + 1) {
        int fd = harness_connect(&h);
        for (size_t at = 0; at < n; at += piece)
            harness_send(&h, fd, head + at, piece < n - at ? piece : n - at);
        harness_receive(&h, fd, out, &length, 30);
        ck_assert_msg(status_of(out) == 200, "%zu: %s", piece, out);
        close(fd);
    }
    harness_stop(&h);
}
END_TEST

START_TEST(a_uri_that_is_too_long_or_has_too_many_parameters_is_414_at_once)
{
    static char request[20000];
    harness_start(
        &h, (struct http_server_config){.header_bytes = 16 << 10, .request_timeout_ms = 60000});
    for (int parameters = 60; parameters <= 1000; parameters += 47) {
        size_t n = (size_t)snprintf(request, sizeof request, "GET /?a=1");
        for (int i = 1; i < parameters; i++)
            n += (size_t)snprintf(request + n, sizeof request - n, "&a=1");
        snprintf(request + n, sizeof request - n, " HTTP/1.1\r\n" HARNESS_CLOSE "\r\n");
        ck_assert_int_eq(harness_ask(&h, request, out), parameters <= 64 ? 200 : 414);
        ck_assert_ptr_nonnull(strstr(out, parameters <= 64 ? "200" : "application/problem+json"));
    }
    for (size_t length = 4000; length < 15000; length += 500) {
        size_t n = (size_t)snprintf(request, sizeof request, "GET /?a=");
        memset(request + n, 'x', length);
        snprintf(request + n + length, sizeof request - n - length,
                 " HTTP/1.1\r\n" HARNESS_CLOSE "\r\n");
        ck_assert_int_eq(harness_ask(&h, request, out), length < 4080 ? 200 : 414);
    }
    harness_stop(&h);
}
END_TEST

/* A page of another site, for whose name a resolver gives our address, reaches us in a browser that
 * runs on this host. */
START_TEST(another_version_of_the_library_than_was_tested_is_warned_of)
{
    static const char *const others[] = {"0.9.7", "0.9.74", "0.9.76", "0.9.75.1", "1.0.1", ""};
    ck_assert_ptr_null(http_library_warning("0.9.75"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(http_library_warning(others[i]) != NULL, "\"%s\"", others[i]);
    /* Or the tests above would fail. */
    ck_assert_ptr_null(http_library_warning(http_library_version()));
}
END_TEST

START_TEST(on_loopback_names_and_origins_of_others_are_403)
{
    static const struct {
        int status;
        const char *host, *origin;
    } cases[] = {
        {200, "localhost", NULL},
        {200, "LocalHost:7480", NULL},
        {200, "127.0.0.1:7480", NULL},
        {200, "[::1]:7480", NULL},
        {200, "kedge.example.com", NULL},
        {200, "meta-2:443", NULL},
        {403, "evil.example.com", NULL},
        {403, "kedge.example.com.evil.example.com", NULL},
        {403, "localhost.evil.example.com", NULL},
        {403, "127.0.0.1.evil.example.com", NULL},
        {200, "localhost:7480", "http://localhost:7480"},
        {200, "localhost:7480", "https://kedge.example.com"},
        {403, "localhost:7480", "http://localhost:3000"},
        {403, "localhost:7480", "http://evil.example.com"},
        {403, "localhost:7480", "null"},
        {403, "localhost:7480", ""},
    };
    char request[256], origin[128];
    harness_start(&h, (struct http_server_config){.hosts = "kedge.example.com, meta-2"});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(origin, sizeof origin, "Origin: %s\r\n",
                 cases[i].origin != NULL ? cases[i].origin : "");
        snprintf(request, sizeof request,
                 "GET / HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n%s\r\n", cases[i].host,
                 cases[i].origin != NULL ? origin : "");
        ck_assert_msg(harness_ask(&h, request, out) == cases[i].status, "%s: %s", request, out);
    }
    harness_stop(&h);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_a_request)                  \
    T(likewise_when_it_comes_byte_by_byte)                                                         \
    T(likewise_on_a_unix_socket)                                                                   \
    T(what_has_no_room_is_answered_once)                                                           \
    T(a_large_head_that_is_right_is_taken_in_whatever_pieces_it_comes)                             \
    T(a_uri_that_is_too_long_or_has_too_many_parameters_is_414_at_once)                            \
    T(another_version_of_the_library_than_was_tested_is_warned_of)                                 \
    T(on_loopback_names_and_origins_of_others_are_403)
KEDGE_CHECK_MAIN("base.http.head", TESTS)
