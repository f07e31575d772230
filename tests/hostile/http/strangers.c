/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host that have no token, or one that may only read, against a metaserver on
 * loopback, and one that has one beside them. For tests/e2e/strangers.sh; not installed.
 *
 * hold PORT CONNECTIONS SECONDS: connections that say nothing, or half a request; again when closed
 * flood PORT CONNECTIONS RATE SECONDS [TOKEN_FILE]: so many requests a second in all, pipelined, of
 * many addresses; with a token for what takes long
 * ask PORT REQUESTS TOKEN_FILE: one after the other on one connection; prints what they
 * took */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { CONNECTIONS_MAX = 4096, ONE_ADDRESS_MAX = 1024, PIPELINED = 16, STEP_MS = 2 };

static char get[640] = "GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct attacker {
    uint16_t port;
    uint32_t connections, opened;
    int epoll;
    int fd[CONNECTIONS_MAX];
    uint64_t sent, closed;
};

static struct attacker attacker;

/* Of 127.0.0.0/8, another address each time. -1: not now. */
static int dial(uint16_t port, uint32_t from, bool blocks)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in self = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + from)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&self, sizeof self) == 0 &&
        (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

static void open_one(struct attacker *a, uint32_t i)
{
    /* Few are of the address that everybody on this host has, many of many. */
    const uint32_t from = a->connections > ONE_ADDRESS_MAX ? a->opened % 250 : 0;
    a->fd[i] = dial(a->port, from, false);
    a->opened++;
    if (a->fd[i] < 0)
        return;
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = i};
    epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->fd[i], &e);
}

static void close_one(struct attacker *a, uint32_t i)
{
    if (a->fd[i] >= 0)
        close(a->fd[i]);
    a->fd[i] = -1;
    a->closed++;
}

/* Reads what came, and opens anew what was closed. */
static void look(struct attacker *a, int wait_ms)
{
    static char scrap[1 << 16];
    struct epoll_event events[256];
    const int n = epoll_wait(a->epoll, events, 256, wait_ms);
    for (int i = 0; i < n; i++) {
        const uint32_t at = events[i].data.u32;
        ssize_t got = recv(a->fd[at], scrap, sizeof scrap, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            close_one(a, at);
    }
    for (uint32_t i = 0, opened = 0; i < a->connections && opened < 64; i++)
        if (a->fd[i] < 0) {
            open_one(a, i);
            opened++;
        }
}

static void begin(struct attacker *a, uint64_t port, uint64_t connections)
{
    a->port = (uint16_t)port;
    a->connections = (uint32_t)connections;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        a->fd[i] = -1;
}

static void hold(struct attacker *a, uint64_t end_ns)
{
    uint64_t half = 0;
    while (base_clock_ns() < end_ns) {
        look(a, STEP_MS);
        for (uint32_t i = 0; i < a->connections; i += 3, half++)
            if (half % 64 == 0 && a->fd[i] >= 0)
                (void)send(a->fd[i], get, 5, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void flood(struct attacker *a, uint64_t rate, uint64_t end_ns)
{
    static char burst[sizeof get * PIPELINED];
    const size_t each = strlen(get), all = each * PIPELINED;
    const uint64_t begin_ns = base_clock_ns();
    for (int i = 0; i < PIPELINED; i++)
        memcpy(burst + (size_t)i * each, get, each);
    uint32_t at = 0;
    for (uint64_t now; (now = base_clock_ns()) < end_ns;) {
        const uint64_t due = (now - begin_ns) / 1000 * rate / 1000000;
        for (uint32_t tries = 0; a->sent < due && tries < a->connections; tries++) {
            at = (at + 1) % a->connections;
            if (a->fd[at] >= 0 &&
                send(a->fd[at], burst, all, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)all)
                a->sent += PIPELINED;
        }
        look(a, a->sent < due ? 0 : 1);
    }
}

/* ---- who has a token */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Status of one request; 0: its connection was closed, or nothing came for 10 s. */
static int exchange(int fd, const char *request)
{
    char answer[8192];
    size_t length = 0;
    int status = 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n =
            poll(&p, 1, 10000) == 1 ? recv(fd, answer + length, sizeof answer - 1 - length, 0) : 0;
        if (n <= 0)
            return 0;
        length += (size_t)n;
        answer[length] = '\0';
        const char *end = strstr(answer, "\r\n\r\n"), *size = strcasestr(answer, "content-length:");
        if (end != NULL && size != NULL &&
            length >= (size_t)(end + 4 - answer) + strtoul(size + 15, NULL, 10))
            return sscanf(answer, "HTTP/1.1 %d", &status) == 1 ? status : 0;
    }
}

static bool read_token(const char *path, char token[512])
{
    FILE *f = fopen(path, "re");
    const bool is_there = f != NULL && fgets(token, 512, f) != NULL;
    if (f != NULL)
        fclose(f);
    if (is_there)
        token[strcspn(token, "\n")] = '\0';
    return is_there;
}

static int ask(uint16_t port, uint64_t requests, const char *path)
{
    char token[512] = "", request[1024];
    uint64_t *ns = calloc(requests, sizeof *ns), failed = 0;
    if (ns == NULL || !read_token(path, token))
        return EXIT_FAILURE;
    snprintf(request, sizeof request,
             "GET /v1/nodes/node-a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
             token);
    int fd = dial(port, 0, true);
    for (uint64_t i = 0; i < requests; i++) {
        const uint64_t then = base_clock_ns();
        const int status = fd < 0 ? 0 : exchange(fd, request);
        ns[i] = base_clock_ns() - then;
        failed += status != 200;
        if (status == 0) {
            close(fd);
            fd = dial(port, 0, true);
        }
        usleep(1000); /* as who asks now and then, and not as fast as it goes */
    }
    qsort(ns, requests, sizeof *ns, compare);
    printf("requests %llu failed %llu p50_us %.0f p90_us %.0f p99_us %.0f max_us %.0f\n",
           (unsigned long long)requests, (unsigned long long)failed,
           (double)ns[requests / 2] / 1000, (double)ns[requests * 9 / 10] / 1000,
           (double)ns[requests * 99 / 100] / 1000, (double)ns[requests - 1] / 1000);
    free(ns);
    close(fd);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    uint64_t n[5] = {0};
    for (int i = 2; i < argc && i < 6; i++)
        (void)base_parse_u64(argv[i], 0, UINT32_MAX, &n[i - 2]);
    if (argc == 5 && strcmp(argv[1], "ask") == 0)
        return ask((uint16_t)n[0], n[1], argv[4]);
    if (argc < 5 || n[1] > CONNECTIONS_MAX)
        return 2;
    char token[512];
    if (argc == 7 && !read_token(argv[6], token))
        return EXIT_FAILURE;
    if (argc == 7)
        snprintf(get, sizeof get,
                 "GET /v1/nodes?label=x%%3Dy HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                 "%s\r\n\r\n",
                 token);
    begin(&attacker, n[0], n[1]);
    const uint64_t now = base_clock_ns();
    if (strcmp(argv[1], "hold") == 0)
        hold(&attacker, now + n[2] * BASE_NS_PER_S);
    else if (argc >= 6 && strcmp(argv[1], "flood") == 0)
        flood(&attacker, n[2], now + n[3] * BASE_NS_PER_S);
    else
        return 2;
    printf("sent %llu opened %u closed %llu\n", (unsigned long long)attacker.sent, attacker.opened,
           (unsigned long long)attacker.closed);
    return EXIT_SUCCESS;
}
