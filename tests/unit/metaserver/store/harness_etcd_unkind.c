/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd_unkind.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct unkind_connection {
    struct unkind *unkind;
    int client, server;
};

static const char unkind_timed_out[] =
    "HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n"
    "{\"error\":\"etcdserver: request timed out\",\"message\":\"etcdserver: request timed out\","
    "\"code\":14}";
/* As 3.6 has it. */
static const char unkind_no_leader[] =
    "HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n"
    "{\"code\":14,\"message\":\"etcdserver: no leader\",\"details\":[]}";
static const char unkind_too_many[] =
    "HTTP/1.0 429 Too Many Requests\r\nContent-Type: application/json\r\n\r\n"
    "{\"error\":\"etcdserver: too many requests\",\"message\":\"etcdserver: too many requests\","
    "\"code\":8}";
static const char unkind_lost_leader[] =
    "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":"
    "\"etcdserver: no leader\",\"http_status\":\"Unavailable\"}}\n";

/* Whether this fault happens now. */
static bool unkind_does(struct unkind *u, enum unkind_fault fault)
{
    pthread_mutex_lock(&u->lock);
    const bool hit = base_prng_below(&u->random, 100) < u->percent;
    pthread_mutex_unlock(&u->lock);
    if ((u->faults & fault) == 0 || !hit)
        return false;
    u->faulted++;
    return true;
}

static bool unkind_send(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

static int unkind_connect(const struct unkind *u)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)u->target),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The whole request, in HTTP/1.0: so that the answer ends with the connection, and is in no chunks.
 * NULL: there is none. */
static char *unkind_read_request(struct unkind_connection *c, size_t *length)
{
    size_t room = 1 << 16, used = 0, whole = 0;
    char *bytes = malloc(room + 1);
    while (bytes != NULL && (whole == 0 || used < whole)) {
        if (used == room)
            bytes = realloc(bytes, 2 * room + 1), room *= 2;
        const ssize_t n = recv(c->client, bytes + used, room - used, 0);
        if (n <= 0) {
            free(bytes);
            return NULL;
        }
        used += (size_t)n;
        bytes[used] = '\0';
        const char *end = strstr(bytes, "\r\n\r\n");
        const char *body = strcasestr(bytes, "content-length:");
        if (whole == 0 && end != NULL && body != NULL)
            whole = (size_t)(end - bytes) + 4 + strtoul(body + 15, NULL, 10);
    }
    char *version = strstr(bytes, " HTTP/1.1\r\n");
    if (version != NULL)
        version[8] = '0';
    *length = used;
    return bytes;
}

/* Byte by byte as it comes, with faults between lines. */
static void unkind_pass_stream(struct unkind_connection *c)
{
    struct unkind *u = c->unkind;
    static _Thread_local char line[1 << 20];
    size_t used = 0;
    bool head = true, silent = false;
    while (!u->over) {
        struct pollfd fds[2] = {{.fd = c->server, .events = POLLIN},
                                {.fd = c->client, .events = POLLIN}};
        char byte;
        poll(fds, 2, 50);
        if (fds[1].revents != 0 && recv(c->client, &byte, 1, MSG_DONTWAIT) <= 0)
            return;
        if (fds[0].revents == 0)
            continue;
        const ssize_t n = recv(c->server, line + used, sizeof line - 1 - used, 0);
        if (n <= 0)
            return;
        used += (size_t)n;
        line[used] = '\0';
        const char *end = head ? strstr(line, "\r\n\r\n") : strchr(line, '\n');
        while (end != NULL) {
            const size_t length = (size_t)(end - line) + (head ? 4 : 1);
            const bool event = !head && strstr(line, "\"events\"") != NULL;
            const bool drops = event && unkind_does(u, UNKIND_DROP);
            silent |= event && unkind_does(u, UNKIND_SILENT);
            if (event && !silent && unkind_does(u, UNKIND_CUT)) {
                unkind_send(c->client, line, length / 2);
                return;
            }
            if (event && !silent && unkind_does(u, UNKIND_ERROR)) {
                unkind_send(c->client, unkind_lost_leader, sizeof unkind_lost_leader - 1);
                return;
            }
            if (!silent && !drops && !unkind_send(c->client, line, length))
                return;
            if (event && !silent && unkind_does(u, UNKIND_REPEAT))
                unkind_send(c->client, line, length);
            memmove(line, line + length, used - length + 1);
            used -= length;
            head = false;
            end = strchr(line, '\n');
        }
        if (used == sizeof line - 1)
            return;
    }
}

static void unkind_pass_answer(struct unkind_connection *c)
{
    char bytes[16384];
    ssize_t n;
    const bool loses = unkind_does(c->unkind, UNKIND_LOSE);
    const bool denies = !loses && unkind_does(c->unkind, UNKIND_DENY);
    if (denies)
        unkind_send(c->client, unkind_timed_out, sizeof unkind_timed_out - 1);
    while ((n = recv(c->server, bytes, sizeof bytes, 0)) > 0)
        if (!loses && !denies && !unkind_send(c->client, bytes, (size_t)n))
            break;
}

/* Passes on what the client sent, and what comes of it unless it is a fault that it does not. */
static void unkind_pass(struct unkind_connection *c, const char *request, size_t length)
{
    struct unkind *u = c->unkind;
    const bool stream = strncmp(request, "POST /v3/watch", 14) == 0;
    const bool write = !stream && strstr(request, "request_put") != NULL;
    const unsigned vanishes = write ? u->faults & (UNKIND_VANISH | UNKIND_HOLD) : 0;
    const bool late = !stream && unkind_does(u, UNKIND_LATE);
    u->requests++;
    u->streams += stream;
    if (vanishes != 0) {
        u->gone = true;
        shutdown(c->client, SHUT_RDWR);
    }
    u->waits |= write && (u->faults & UNKIND_WAIT) != 0;
    while (write && (u->faults & UNKIND_WAIT) != 0 && !u->lets_go && !u->over)
        usleep(1000);
    while ((vanishes & UNKIND_HOLD) != 0 && !u->lets_go && !u->over)
        usleep(1000);
    if (late) {
        shutdown(c->client, SHUT_RDWR);
        usleep(20000);
    }
    if (unkind_send(c->server, request, length)) {
        if (stream)
            unkind_pass_stream(c);
        else
            unkind_pass_answer(c);
    }
    if ((vanishes & UNKIND_HOLD) != 0)
        u->has_let_go = true;
}

/* What etcd answers. NULL: nothing. */
static char *unkind_ask(struct unkind_connection *c, const char *request, size_t length)
{
    size_t room = 1 << 20, used = 0;
    char *bytes = malloc(room);
    ssize_t n = 0;
    c->server = unkind_connect(c->unkind);
    if (bytes != NULL && unkind_send(c->server, request, length))
        while (used + 1 < room && (n = recv(c->server, bytes + used, room - used - 1, 0)) > 0)
            used += (size_t)n;
    close(c->server);
    bytes[used] = '\0';
    return bytes;
}

static bool unkind_answer_kept(struct unkind_connection *c, const char *answer)
{
    char head[128];
    const char *body = strstr(answer, "\r\n\r\n");
    if (body == NULL)
        return false;
    body += 4;
    const size_t length = strlen(body);
    snprintf(head, sizeof head, "HTTP/1.1 %.3s X\r\nContent-Length: %zu\r\n\r\n", answer + 9,
             length);
    return unkind_send(c->client, head, strlen(head)) && unkind_send(c->client, body, length);
}

/* One request after another. */
static void unkind_serve_kept(struct unkind_connection *c)
{
    struct unkind *u = c->unkind;
    bool goes_on = true;
    size_t length = 0;
    char *request;
    while (goes_on && (request = unkind_read_request(c, &length)) != NULL) {
        const unsigned write =
            strstr(request, "request_put") != NULL ? u->faults & (UNKIND_END | UNKIND_TWICE) : 0;
        char *answer = NULL;
        u->requests++;
        if (u->busy) {
            goes_on = unkind_answer_kept(c, unkind_too_many);
        } else {
            answer = unkind_ask(c, request, length);
            if (write & UNKIND_TWICE) {
                free(answer);
                answer = unkind_ask(c, request, length);
            }
            u->busy |= write != 0;
            u->faulted += write != 0;
            goes_on = !(write & UNKIND_END) && unkind_answer_kept(c, answer);
        }
        free(answer);
        free(request);
    }
}

/* What is said of a lease of which etcd was not asked. */
static bool unkind_lapses(struct unkind_connection *c, const char *request)
{
    static const char head[] = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
    const char *body = c->unkind->lapse;
    if (body == NULL || strncmp(request, "POST /v3/lease/keepalive", 24) != 0)
        return false;
    c->unkind->faulted++;
    if (unkind_send(c->client, head, sizeof head - 1))
        unkind_send(c->client, body, strlen(body));
    return true;
}

static void *unkind_serve(void *arg)
{
    struct unkind_connection *c = arg;
    struct unkind *u = c->unkind;
    size_t length = 0;
    if (u->keeps)
        unkind_serve_kept(c);
    char *request = u->keeps ? NULL : unkind_read_request(c, &length);
    const bool stream = request != NULL && strncmp(request, "POST /v3/watch", 14) == 0;
    if (request != NULL && ((!stream && unkind_does(u, UNKIND_REFUSE)) || u->gone)) {
        unkind_send(c->client, unkind_no_leader, sizeof unkind_no_leader - 1);
    } else if (request != NULL && !unkind_lapses(c, request) &&
               (c->server = unkind_connect(u)) >= 0) {
        unkind_pass(c, request, length);
        close(c->server);
    }
    free(request);
    close(c->client);
    free(c);
    u->under_way--;
    return NULL;
}

static void *unkind_listen(void *arg)
{
    struct unkind *u = arg;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (!u->over) {
        struct pollfd fd = {.fd = u->listener, .events = POLLIN};
        pthread_t thread;
        if (poll(&fd, 1, 20) != 1)
            continue;
        struct unkind_connection *c = calloc(1, sizeof *c);
        c->unkind = u;
        c->client = accept4(u->listener, NULL, NULL, SOCK_CLOEXEC);
        u->under_way++;
        if (c->client < 0 || pthread_create(&thread, &detached, unkind_serve, c) != 0)
            abort();
    }
    pthread_attr_destroy(&detached);
    return NULL;
}

void unkind_begin(struct unkind *u, int target, uint64_t seed)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    memset(u, 0, sizeof *u);
    u->target = target;
    u->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(u->listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(u->listener, 128), 0);
    ck_assert_int_eq(getsockname(u->listener, (struct sockaddr *)&a, &length), 0);
    u->port = ntohs(a.sin_port);
    snprintf(u->url, sizeof u->url, "http://127.0.0.1:%d", u->port);
    pthread_mutex_init(&u->lock, NULL);
    base_prng_seed(&u->random, seed);
    ck_assert_int_eq(pthread_create(&u->thread, NULL, unkind_listen, u), 0);
}

void unkind_end(struct unkind *u)
{
    u->over = true;
    pthread_join(u->thread, NULL);
    while (u->under_way > 0)
        usleep(1000);
    close(u->listener);
    pthread_mutex_destroy(&u->lock);
}
