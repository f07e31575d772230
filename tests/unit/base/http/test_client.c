/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/http/client.h"

static struct harness h;
static struct http_client *client;
static char url[128];

struct outcome {
    int calls;
    int status;
    size_t body_length;
    char body[2048];
    char type[64];
    char why[256];
    uint32_t retry_after_s;
};

static void done(void *user, const struct http_answer *a)
{
    struct outcome *o = user;
    o->calls++;
    o->status = a->status;
    o->body_length = a->body_length;
    snprintf(o->body, sizeof o->body, "%s", a->body);
    snprintf(o->type, sizeof o->type, "%s", a->content_type);
    snprintf(o->why, sizeof o->why, "%s", a->why);
    o->retry_after_s = a->retry_after_s;
}

static void start(struct http_server_config config)
{
    harness_start(&h, config);
    ck_assert_int_eq(http_client_new(&client), 0);
}

static void stop(void)
{
    http_client_free(client);
    if (h.server != NULL)
        harness_stop(&h);
}

static const char *at(const char *path)
{
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s",
             h.server != NULL ? http_server_port(h.server) : 1, path);
    return url;
}

/* Drives both until `calls` callbacks came or 5 s passed. */
static void drive(const int *counter, int calls)
{
    uint64_t begin = base_clock_ns();
    struct pollfd p[2] = {
        {.fd = http_client_fd(client), .events = POLLIN},
        {.fd = h.server != NULL ? http_server_fd(h.server) : -1, .events = POLLIN}};
    while (*counter < calls && base_clock_ns() - begin < 5 * BASE_NS_PER_S) {
        poll(p, 2, 100);
        if (p[0].revents != 0)
            http_client_run(client);
        if (h.server != NULL && p[1].revents != 0)
            http_server_run(h.server);
    }
}

static void call(const struct http_call *c, struct outcome *o)
{
    memset(o, 0, sizeof *o);
    ck_assert_int_eq(http_client_call(client, c, done, o, NULL), 0);
    ck_assert_int_eq(o->calls, 0);
    drive(&o->calls, 1);
    ck_assert_int_eq(o->calls, 1);
}

START_TEST(a_call_brings_method_headers_and_body_there_and_the_answer_back)
{
    struct outcome o;
    start((struct http_server_config){0});
    call(&(struct http_call){.url = at("/a?name=b"),
                             .method = "DELETE",
                             .headers = (const char *const[]){"X-Test: v", NULL}},
         &o);
    ck_assert_int_eq(o.status, 200);
    ck_assert_str_eq(o.body, "{DELETE /a name=b header=v peer=127. local=0}");
    ck_assert_str_eq(o.type, "application/json");
    call(
        &(struct http_call){.url = at("/echo"), .method = "PUT", .body = "hello", .body_length = 5},
        &o);
    ck_assert_str_eq(o.body, "hello");
    call(&(struct http_call){.url = at("/echo"), .method = "POST"}, &o);
    ck_assert_int_eq(o.status, 200);
    ck_assert_uint_eq(o.body_length, 0);
    call(&(struct http_call){.url = at("/a"), .method = "HEAD"}, &o);
    ck_assert_int_eq(o.status, 200);
    call(&(struct http_call){.url = at("/error")}, &o);
    ck_assert_int_eq(o.status, 409);
    ck_assert_str_eq(o.type, "application/problem+json");
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.accepted, 1); /* the connection was kept */
    stop();
}
END_TEST

START_TEST(many_calls_are_under_way_at_once_and_one_above_the_bound_is_refused)
{
    static struct outcome all[HTTP_CALLS_MAX];
    struct outcome more = {0};
    start((struct http_server_config){0});
    memset(all, 0, sizeof all);
    for (int i = 0; i < HTTP_CALLS_MAX; i++)
        ck_assert_int_eq(
            http_client_call(client, &(struct http_call){.url = at("/a")}, done, &all[i], NULL), 0);
    ck_assert_int_eq(
        http_client_call(client, &(struct http_call){.url = at("/a")}, done, &more, NULL), -EAGAIN);
    for (int i = 0; i < HTTP_CALLS_MAX; i++) {
        drive(&all[i].calls, 1);
        ck_assert_int_eq(all[i].calls, 1);
        ck_assert_int_eq(all[i].status, 200);
    }
    ck_assert_int_eq(more.calls, 0);
    stop();
}
END_TEST

START_TEST(failures_have_an_errno_and_a_reason)
{
    struct outcome o;
    start((struct http_server_config){0});
    call(&(struct http_call){.url = "http://127.0.0.1:1/"}, &o);
    ck_assert_int_eq(o.status, -ECONNREFUSED);
    ck_assert_uint_gt(strlen(o.why), 0);
    call(&(struct http_call){.url = "http://no-such-host.invalid/"}, &o);
    ck_assert_int_eq(o.status, -EHOSTUNREACH);
    call(&(struct http_call){.url = "file:///etc/passwd"}, &o);
    ck_assert_int_eq(o.status, -EINVAL);
    call(&(struct http_call){.url = "nonsense://x"}, &o);
    ck_assert_int_eq(o.status, -EINVAL);
    call(&(struct http_call){.url = at("/big"), .max_response_bytes = 1000}, &o);
    ck_assert_int_eq(o.status, -EMSGSIZE);
    call(&(struct http_call){.url = at("/defer"), .timeout_ms = 100}, &o);
    ck_assert_int_eq(o.status, -ETIMEDOUT);
    call(&(struct http_call){.url = "http://x/", .unix_path = "/tmp/no-such-socket"}, &o);
    ck_assert_int_eq(o.status, -ECONNREFUSED);
    http_reply_error(h.deferred[0], -EIO, NULL);
    stop();
}
END_TEST

/* Whatever is no number of seconds says nothing. */
START_TEST(an_answer_says_when_to_come_again)
{
    static const struct {
        const char *path;
        uint32_t s;
    } cases[] = {{"/later", 7}, {"/later?name=0", 0},  {"/later?name=soon", 0},
                 {"/a", 0},     {"/later?name=-5", 0}, {"/later?name=3600", 3600}};
    struct outcome o;
    start((struct http_server_config){0});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call(&(struct http_call){.url = at(cases[i].path)}, &o);
        ck_assert_int_eq(o.status, i == 3 ? 200 : 429);
        ck_assert_uint_eq(o.retry_after_s, cases[i].s);
    }
    stop();
}
END_TEST

START_TEST(headers_and_methods_that_would_forge_a_request_are_refused)
{
    start((struct http_server_config){0});
    struct http_call c = {.url = at("/a"), .headers = (const char *const[]){"X: a\r\nY: b", NULL}};
    struct outcome o = {0};
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -EINVAL);
    c.headers = (const char *const[]){"no colon", NULL};
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -EINVAL);
    c.headers = NULL;
    c.method = "GET / HTTP/1.1\r\nX:";
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -EINVAL);
    c.method = "";
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -EINVAL);
    c = (struct http_call){0};
    ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -EINVAL);
    ck_assert_int_eq(o.calls, 0);
    stop();
}
END_TEST

/* A file of that content; its name. */
static const char *file_of(const char *text, size_t length)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/kedge-token-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
    return path;
}

START_TEST(a_token_is_shown_as_a_bearer_shows_it)
{
    static const struct {
        const char *text;
        const char *shown; /* NULL: it is none */
    } cases[] = {{"kedge_a_b", "Bearer kedge_a_b"},
                 {"kedge_a_b\n", "Bearer kedge_a_b"},
                 {"x \t\r\n\n", "Bearer x"},
                 {"", NULL},
                 {"\n", NULL},
                 {"a b", NULL},
                 {"a\r\nX-Forged: 1", NULL},
                 {"\xc3\xa4", NULL}};
    struct outcome o;
    struct base_errbuf err;
    char longest[HTTP_TOKEN_BYTES + 2], token[HTTP_TOKEN_BYTES];
    start((struct http_server_config){0});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = file_of(cases[i].text, strlen(cases[i].text));
        struct http_call c = {.url = at("/bearer"), .token_file = path};
        if (cases[i].shown != NULL) {
            call(&c, &o);
            ck_assert_str_eq(o.body, cases[i].shown);
            c.token_file = "";
            c.token = cases[i].shown + strlen("Bearer ");
            call(&c, &o);
            ck_assert_str_eq(o.body, cases[i].shown);
        } else {
            ck_assert_int_eq(http_client_call(client, &c, done, &o, NULL), -ENOKEY);
            ck_assert_int_eq(http_token_read(path, token, &err), -EINVAL);
            ck_assert_ptr_nonnull(strstr(err.text, "holds no token"));
            ck_assert_ptr_null(strstr(err.text, "Forged"));
        }
        unlink(path);
    }
    struct http_call none = {.url = at("/bearer"), .token_file = ""};
    call(&none, &o);
    ck_assert_str_eq(o.body, "(none)");
    memset(longest, 'x', sizeof longest);
    for (size_t length = HTTP_TOKEN_BYTES - 1; length < HTTP_TOKEN_BYTES + 2; length++) {
        const char *path = file_of(longest, length);
        ck_assert_int_eq(http_token_read(path, token, &err),
                         length < HTTP_TOKEN_BYTES ? 0 : -EINVAL);
        unlink(path);
    }
    ck_assert_int_eq(http_token_read("/tmp", token, &err), -EINVAL);
    ck_assert_int_eq(http_token_read("/nonexistent", token, &err), -ENOENT);
    stop();
}
END_TEST

START_TEST(a_cancelled_call_is_never_told_and_a_freed_client_tells_all_others_once)
{
    struct outcome o[3] = {0};
    uint64_t id[3];
    start((struct http_server_config){0});
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            http_client_call(client, &(struct http_call){.url = at("/defer")}, done, &o[i], &id[i]),
            0);
    for (int i = 0; i < 50 && h.deferred_count < 3; i++) {
        http_client_run(client);
        harness_run(&h, 10);
    }
    ck_assert_uint_eq(h.deferred_count, 3);
    ck_assert_int_eq(http_client_cancel(client, id[1]), 0);
    ck_assert_int_eq(http_client_cancel(client, id[1]), -ENOENT);
    ck_assert_int_eq(http_client_cancel(client, 999), -ENOENT);
    http_client_run(client);
    ck_assert(!http_client_gone(h.deferred[0]));
    http_client_free(client);
    ck_assert_int_eq(o[0].calls, 1);
    ck_assert_int_eq(o[0].status, -ECANCELED);
    ck_assert_int_eq(o[1].calls, 0);
    ck_assert_int_eq(o[2].calls, 1);
    harness_stop(&h);
    ck_assert_uint_eq(h.abandoned, 3);
}
END_TEST

/* Starts the next call from inside the callback of the last. */
struct chain {
    int left;
    int calls;
};

static void next_of_chain(void *user, const struct http_answer *a)
{
    struct chain *c = user;
    ck_assert_int_eq(a->status, 200);
    c->calls++;
    if (--c->left > 0)
        ck_assert_int_eq(
            http_client_call(client, &(struct http_call){.url = at("/a")}, next_of_chain, c, NULL),
            0);
}

START_TEST(a_callback_may_start_another_call)
{
    struct chain c = {.left = 20};
    start((struct http_server_config){0});
    ck_assert_int_eq(
        http_client_call(client, &(struct http_call){.url = at("/a")}, next_of_chain, &c, NULL), 0);
    drive(&c.calls, 20);
    ck_assert_int_eq(c.calls, 20);
    stop();
}
END_TEST

struct stream {
    struct outcome end; /* first: done() gets this */
    size_t bytes;
    uint64_t cancel; /* from inside on_data */
    size_t stop_at;
};

static int take(void *user, int status, const char *bytes, size_t length)
{
    struct stream *s = user;
    ck_assert_int_eq(status, 200);
    ck_assert_int_eq(bytes[0], 'b');
    s->bytes += length;
    if (s->cancel != 0)
        ck_assert_int_eq(http_client_cancel(client, s->cancel), 0);
    return s->stop_at != 0 && s->bytes >= s->stop_at;
}

START_TEST(a_stream_comes_in_pieces_and_can_be_ended_from_inside)
{
    struct stream whole = {0}, stopped = {.stop_at = 1000}, cancelled = {0};
    start((struct http_server_config){0});
    struct http_call c = {
        .url = at("/big"), .on_data = take, .timeout_ms = UINT32_MAX, .max_response_bytes = 10};
    ck_assert_int_eq(http_client_call(client, &c, done, &whole, NULL), 0);
    drive(&whole.end.calls, 1);
    ck_assert_int_eq(whole.end.status, 200);
    ck_assert_uint_eq(whole.bytes, 3 << 20);
    ck_assert_uint_eq(whole.end.body_length, 0);
    ck_assert_int_eq(http_client_call(client, &c, done, &stopped, NULL), 0);
    drive(&stopped.end.calls, 1);
    ck_assert_int_eq(stopped.end.status, -ECANCELED);
    ck_assert_uint_lt(stopped.bytes, 3 << 20);
    ck_assert_int_eq(http_client_call(client, &c, done, &cancelled, &cancelled.cancel), 0);
    for (int i = 0; i < 50; i++) {
        http_client_run(client);
        harness_run(&h, 2);
    }
    ck_assert_int_eq(cancelled.end.calls, 0);
    ck_assert_uint_gt(cancelled.bytes, 0);
    ck_assert_uint_lt(cancelled.bytes, 3 << 20);
    stop();
}
END_TEST

static _Atomic bool server_stops;

static void *serve(void *arg)
{
    (void)arg;
    while (!atomic_load(&server_stops))
        harness_run(&h, 5);
    return NULL;
}

START_TEST(the_waiting_call_returns_the_answer_or_a_sentence)
{
    char path[64];
    struct http_result result;
    struct base_errbuf err = {""};
    pthread_t thread;
    snprintf(path, sizeof path, "/tmp/kedge-call-%d", (int)getpid());
    harness_start(&h, (struct http_server_config){.unix_path = path});
    atomic_store(&server_stops, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    struct http_call c = {.url = "http://kedge/a", .unix_path = path};
    ck_assert_int_eq(http_call(&c, &result, &err), 0);
    ck_assert_int_eq(result.status, 200);
    ck_assert_str_eq(result.body, "{GET /a name=(none) header=(none) peer=unix local=1}");
    ck_assert_str_eq(result.content_type, "application/json");
    ck_assert_uint_eq(result.body_length, strlen(result.body));
    http_result_fini(&result);
    c = (struct http_call){.url = "http://127.0.0.1:1/v1/nodes"};
    ck_assert_int_eq(http_call(&c, &result, &err), -ECONNREFUSED);
    ck_assert_ptr_nonnull(strstr(err.text, "GET http://127.0.0.1:1/v1/nodes failed: "));
    c.on_data = take;
    ck_assert_int_eq(http_call(&c, &result, NULL), -EINVAL);
    atomic_store(&server_stops, true);
    pthread_join(thread, NULL);
    harness_stop(&h);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_call_brings_method_headers_and_body_there_and_the_answer_back)                             \
    T(many_calls_are_under_way_at_once_and_one_above_the_bound_is_refused)                         \
    T(failures_have_an_errno_and_a_reason)                                                         \
    T(an_answer_says_when_to_come_again)                                                           \
    T(headers_and_methods_that_would_forge_a_request_are_refused)                                  \
    T(a_token_is_shown_as_a_bearer_shows_it)                                                       \
    T(a_cancelled_call_is_never_told_and_a_freed_client_tells_all_others_once)                     \
    T(a_callback_may_start_another_call)                                                           \
    T(a_stream_comes_in_pieces_and_can_be_ended_from_inside)                                       \
    T(the_waiting_call_returns_the_answer_or_a_sentence)
KEDGE_CHECK_MAIN("http client", TESTS)
