/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over TCP between two probes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "peer.h"

enum { CONNECT_MS = 5000, NAME_BYTES = 256 };

void probe_peer_trust(struct peer_link *l)
{
    l->line_ms = PEER_PATIENCE_MS;
}

static uint64_t end_of_line(const struct peer_link *l)
{
    return base_clock_ns() + l->line_ms * BASE_NS_PER_MS;
}

/* 0, or -ETIMEDOUT at that time. */
static int await_link(const struct peer_link *l, short events, uint64_t end_ns)
{
    struct pollfd p = {.fd = l->fd, .events = events};
    for (;;) {
        const uint64_t now = base_clock_ns();
        if (now >= end_ns)
            return -ETIMEDOUT;
        const int n = poll(&p, 1, (int)((end_ns - now) / BASE_NS_PER_MS) + 1);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

int probe_peer_say(struct peer_link *l, const char *format, ...)
{
    char line[PEER_LINE];
    va_list args;
    const uint64_t end_ns = end_of_line(l);
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (length < 0 || length >= (int)sizeof line - 1)
        return -EBADMSG;
    line[length++] = '\n';
    for (int sent = 0; sent < length;) {
        const int status = await_link(l, POLLOUT, end_ns);
        if (status != 0)
            return status;
        ssize_t n = send(l->fd, line + sent, (size_t)(length - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        sent += n > 0 ? (int)n : 0;
    }
    return 0;
}

int probe_peer_hear(struct peer_link *l, char line[PEER_LINE])
{
    const uint64_t end_ns = end_of_line(l);
    for (;;) {
        char *end = memchr(l->buffer, '\n', l->used);
        if (end != NULL) {
            size_t length = (size_t)(end - l->buffer);
            memcpy(line, l->buffer, length);
            line[length] = '\0';
            l->used -= length + 1;
            memmove(l->buffer, end + 1, l->used);
            return strlen(line) == length ? 0 : -EBADMSG;
        }
        if (l->used == sizeof l->buffer)
            return -EBADMSG;
        const int status = await_link(l, POLLIN, end_ns);
        if (status != 0)
            return status;
        ssize_t n = recv(l->fd, l->buffer + l->used, sizeof l->buffer - l->used, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return n == 0 ? -ECONNRESET : -errno;
        l->used += (size_t)n;
    }
}

void probe_peer_close(struct peer_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* HOST:PORT, where HOST may be in brackets. */
static int split_address(const char *address, char host[NAME_BYTES], char port[16])
{
    const char *colon = strrchr(address, ':');
    size_t length = colon != NULL ? (size_t)(colon - address) : 0;
    if (length == 0 || length >= NAME_BYTES || strlen(colon + 1) >= 16)
        return -EINVAL;
    if (address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    memcpy(host, address, length);
    host[length] = '\0';
    snprintf(port, 16, "%s", colon + 1);
    return 0;
}

static int look_up(const char *address, int flags, struct addrinfo **out, struct base_errbuf *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char host[NAME_BYTES], port[16];
    if (split_address(address, host, port) != 0)
        return base_err(err, -EINVAL, "\"%.100s\" must look like HOST:PORT", address);
    int status = getaddrinfo(host, port, &hints, out);
    return status == 0 ? 0
                       : base_err(err, -EHOSTUNREACH, "\"%.100s\" is no address: %s", address,
                                  gai_strerror(status));
}

int probe_peer_listen(const char *address, uint16_t *port, struct base_errbuf *err)
{
    struct addrinfo *list;
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    char text[16];
    const int on = 1;
    int status = look_up(address, AI_PASSIVE, &list, err);
    if (status != 0)
        return status;
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &length) != 0 ||
        getnameinfo((struct sockaddr *)&bound, length, NULL, 0, text, sizeof text,
                    NI_NUMERICSERV) != 0) {
        status =
            base_err(err, -errno, "\"%.100s\" cannot be listened on: %s", address, strerror(errno));
        if (fd >= 0)
            close(fd);
    } else {
        uint64_t number = 0;
        (void)base_parse_u64(text, 0, UINT16_MAX, &number);
        *port = (uint16_t)number;
    }
    freeaddrinfo(list);
    return status == 0 ? fd : status;
}

int probe_peer_accept(int listener, uint64_t wait_ms, struct peer_link *out)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    if (poll(&p, 1, (int)wait_ms) != 1)
        return -ETIMEDOUT;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    *out = (struct peer_link){.fd = fd, .line_ms = PEER_WORD_MS};
    return 0;
}

static int connect_one(const struct addrinfo *a)
{
    struct pollfd p = {.events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    p.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p.fd < 0)
        return -errno;
    if (connect(p.fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)
        error = errno;
    else if (poll(&p, 1, CONNECT_MS) != 1)
        error = ETIMEDOUT;
    else if (getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if (error == 0)
        return p.fd;
    close(p.fd);
    return -error;
}

int probe_peer_dial(const char *address, struct peer_link *out, struct base_errbuf *err)
{
    struct addrinfo *list;
    int status = look_up(address, 0, &list, err), fd = -EHOSTUNREACH;
    if (status != 0)
        return status;
    for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_one(a);
    freeaddrinfo(list);
    if (fd < 0)
        return base_err(err, fd, "nobody serves at %.100s: %s", address, strerror(-fd));
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    *out = (struct peer_link){.fd = fd, .line_ms = PEER_PATIENCE_MS};
    return 0;
}

/* ---- what an end says of itself */

void probe_peer_write_end(const struct peer_end *e, char line[PEER_LINE])
{
    char gid[BASE_GID_TEXT];
    snprintf(line, PEER_LINE,
             "end %d %s %u %u %d %d %u %u %u %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIx64
             " %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu32,
             PEER_VERSION, base_gid_format(e->gid, gid), e->lid, (unsigned)e->mtu, e->rc, e->dc,
             e->service_level, e->traffic_class, e->pkey, e->qpn, e->dctn[0], e->dctn[1],
             e->dc_key[0], e->dc_key[1], e->addr, e->bytes, e->rkey);
}

int probe_peer_read_end(const char *line, struct peer_end *out)
{
    struct peer_end e = {.lid = 0};
    char gid[64];
    unsigned version, lid, mtu, rc, dc;
    if (strlen(line) >= PEER_LINE ||
        sscanf(line,
               "end %9u %63s %6u %2u %1u %1u %3u %3u %6u %" SCNu32 " %" SCNu32 " %" SCNu32
               " %16" SCNx64 " %16" SCNx64 " %16" SCNx64 " %" SCNu64 " %" SCNu32,
               &version, gid, &lid, &mtu, &rc, &dc, &e.service_level, &e.traffic_class, &e.pkey,
               &e.qpn, &e.dctn[0], &e.dctn[1], &e.dc_key[0], &e.dc_key[1], &e.addr, &e.bytes,
               &e.rkey) != 17 ||
        version != PEER_VERSION || base_gid_parse(gid, e.gid) != 0 || lid > UINT16_MAX ||
        mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 || e.qpn > 0xffffff || e.dctn[0] > 0xffffff ||
        e.dctn[1] > 0xffffff)
        return -EBADMSG;
    e.lid = (uint16_t)lid;
    e.mtu = (enum ibv_mtu)mtu;
    e.rc = rc != 0;
    e.dc = dc != 0;
    *out = e;
    return 0;
}
