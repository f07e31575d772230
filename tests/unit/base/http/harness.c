/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

/* ---- the clock */

uint64_t harness_clock_ns;

/* Of all that is linked with the test, but for what shared libraries call. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    if (harness_clock_ns == 0)
        return (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec = (time_t)(harness_clock_ns / BASE_NS_PER_S);
    t->tv_nsec = (long)(harness_clock_ns % BASE_NS_PER_S);
    return 0;
}

void harness_stop_clock(void)
{
    harness_clock_ns = base_clock_ns();
}

/* ---- the server's handler */

/* One of those that read a stream: each begins at the first piece. */
struct harness_reader {
    struct harness *h;
    unsigned at;
};

static int next_piece(void *data, const char **bytes, size_t *length)
{
    struct harness_reader *r = data;
    if (r->at == r->h->count)
        return -ECANCELED;
    if (r->at >= r->h->told)
        return 0;
    *bytes = r->h->pieces[r->at++];
    *length = r->h->piece_bytes != 0 ? r->h->piece_bytes : strlen(*bytes);
    return 0;
}

static void end_stream(void *data)
{
    struct harness_reader *r = data;
    r->h->over++;
    free(r);
}

static enum http_verdict begin_stream(struct harness *h, struct http_request *r)
{
    struct harness_reader *reader = calloc(1, sizeof *reader);
    struct http_response response = {.status = 200, .content_type = "application/jsonl"};
    const struct http_stream stream = {next_piece, end_stream, reader};
    ck_assert_ptr_nonnull(reader);
    reader->h = h;
    h->streams++;
    h->stream = r;
    if (http_query(r, "bad") != NULL)
        response.status = 99;
    h->reply_status = http_stream(r, &response, &stream);
    return HTTP_REPLIED;
}

static void add_query(void *user, const char *name, const char *value)
{
    char *text = user;
    const size_t used = strlen(text);
    snprintf(text + used, 1024 - used, "[%s=%s]", name, value);
}

enum http_verdict harness_handle(void *user, struct http_request *r)
{
    struct harness *h = user;
    static char big[3 << 20];
    char text[1024];
    struct http_response response = {.status = 200, .body = text};
    h->handled++;
    h->body_length = r->body_length;
    if (strcmp(r->path, "/defer") == 0) {
        ck_assert_uint_lt(h->deferred_count, HARNESS_DEFERRED_MAX);
        h->deferred[h->deferred_count++] = r;
        return HTTP_DEFER;
    }
    if (strcmp(r->path, "/stream") == 0)
        return begin_stream(h, r);
    if (strcmp(r->path, "/tell") == 0) { /* one more piece, from inside a handler */
        h->told++;
        http_stream_wake(h->stream);
    }
    if (strcmp(r->path, "/dear") == 0) /* with a clock that stands still */
        harness_clock_ns += HARNESS_DEAR_MS * BASE_NS_PER_MS;
    if (strcmp(r->path, "/wake") == 0 && h->deferred_count > 0)
        http_reply_error(h->deferred[--h->deferred_count], -EBUSY, "woken");
    if (strcmp(r->path, "/none") == 0)
        return HTTP_REPLIED;
    if (strcmp(r->path, "/error") == 0) {
        http_reply_error(r, -ESTALE, "incarnation 3 is lower than the known 5");
        return HTTP_REPLIED;
    }
    const char *name = http_query(r, "name"), *header = http_header(r, "x-test");
    snprintf(text, sizeof text, "{%s %s name=%s header=%s peer=%.4s local=%d}", r->method, r->path,
             name != NULL ? name : "(none)", header != NULL ? header : "(none)", r->peer, r->local);
    response.body_length = strlen(text);
    response.headers[0] = (struct http_header){"X-Answer", "yes"};
    if (strcmp(r->path, "/bearer") == 0) {
        const char *authorization = http_header(r, "Authorization");
        response.body = authorization != NULL ? authorization : "(none)";
        response.body_length = strlen(response.body);
    } else if (strcmp(r->path, "/echo") == 0) {
        response.body = r->body;
        response.body_length = r->body_length;
        response.content_type = "text/plain";
    } else if (strcmp(r->path, "/queries") == 0) {
        text[0] = '\0';
        http_queries(r, add_query, text);
        response.body_length = strlen(text);
    } else if (strcmp(r->path, "/big") == 0) {
        memset(big, 'b', sizeof big);
        response.body = big;
        response.body_length = sizeof big;
    } else if (strcmp(r->path, "/who") == 0) {
        const struct http_certificate *c = r->certificate;
        char ip[INET6_ADDRSTRLEN] = "";
        if (c != NULL && c->ips > 0)
            inet_ntop(AF_INET6, c->ip[0], ip, sizeof ip);
        snprintf(text, sizeof text, "%s|%s|%u %s|exposed=%d", c != NULL ? c->name : "(none)",
                 c != NULL ? c->uri : "", c != NULL ? c->ips : 0, ip, r->exposed);
        response.body_length = strlen(text);
    } else if (strcmp(r->path, "/later") == 0) {
        response.status = 429;
        response.headers[0] = (struct http_header){"Retry-After", name != NULL ? name : "7"};
    } else if (strcmp(r->path, "/bad-header") == 0) {
        response.headers[0].value = "a\r\nSet-Cookie: forged";
    } else if (strcmp(r->path, "/bad-status") == 0) {
        response.status = 99;
    }
    h->reply_status = http_reply(r, &response);
    return HTTP_REPLIED;
}

static void abandon_request(void *user, struct http_request *r)
{
    struct harness *h = user;
    (void)r;
    h->abandoned++;
}

void harness_start(struct harness *h, struct http_server_config config)
{
    struct base_errbuf err = {""};
    memset(h, 0, sizeof *h);
    harness_clock_ns = 0;
    if (config.listen == NULL && config.unix_path == NULL)
        config.listen = "127.0.0.1:0";
    config.handle = harness_handle;
    config.abandon = abandon_request;
    config.user = h;
    h->config = config;
    ck_assert_msg(http_server_new(&config, &h->server, &err) == 0, "%s", err.text);
}

void harness_stop(struct harness *h)
{
    http_server_free(h->server);
    h->server = NULL;
}

void harness_run(struct harness *h, int wait_ms)
{
    struct pollfd p = {.fd = http_server_fd(h->server), .events = POLLIN};
    for (int i = 0; i < 64 && poll(&p, 1, wait_ms) > 0; i++)
        http_server_run(h->server);
}

/* ---- clients */

const char *harness_from;

int harness_connect(struct harness *h)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(http_server_port(h->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (harness_from != NULL) {
        ck_assert_int_eq(inet_pton(AF_INET, harness_from, &from.sin_addr), 1);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    }
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

int harness_connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void harness_send(struct harness *h, int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return;
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
        harness_run(h, 1);
    }
}

/* Whatever has said it. */
static void check_problem(const char *answer)
{
    int status = 0;
    if (strstr(answer, "application/problem+json") == NULL)
        return;
    ck_assert_msg(strstr(answer, "{\"type\":\"urn:kedge:problem:") != NULL, "%s", answer);
    ck_assert(sscanf(answer, "HTTP/1.1 %d ", &status) == 1);
    if (status != 429 && status != 503)
        ck_assert_msg(strstr(answer, "Retry-After:") == NULL, "%s", answer);
}

bool harness_receive(struct harness *h, int fd, char *out, size_t *length, int silence_ms)
{
    char chunk[65536];
    struct pollfd p[2] = {
        {.fd = fd, .events = POLLIN},
        {.fd = h->server != NULL ? http_server_fd(h->server) : -1, .events = POLLIN}};
    *length = 0;
    out[0] = '\0';
    for (int silent_ms = 0; silent_ms < silence_ms;) {
        if (poll(p, 2, 1) == 0) {
            silent_ms++;
            continue;
        }
        if (h->server != NULL)
            http_server_run(h->server);
        ssize_t n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            check_problem(out);
            return true;
        }
        if (n < 0)
            continue;
        silent_ms = 0;
        if (*length < HARNESS_ANSWER_BYTES - 1) {
            size_t room = HARNESS_ANSWER_BYTES - 1 - *length;
            size_t kept = (size_t)n < room ? (size_t)n : room;
            memcpy(out + *length, chunk, kept);
            out[*length + kept] = '\0';
        }
        *length += (size_t)n;
    }
    return false;
}

int harness_ask(struct harness *h, const char *request, char *out)
{
    size_t length;
    int status = 0, fd = harness_connect(h);
    harness_send(h, fd, request, strlen(request));
    harness_receive(h, fd, out, &length, 3000);
    close(fd);
    harness_run(h, 1);
    return sscanf(out, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}
