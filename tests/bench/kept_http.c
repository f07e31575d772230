/* SPDX-License-Identifier: Apache-2.0 */
#include "kept_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 8192, PATIENCE_S = 20 };

int perf_http_open(const char *url, int *fd, struct base_errbuf *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int yes = 1;
    char address[64];
    unsigned port;
    if (sscanf(url, "http://%63[0-9.]:%u", address, &port) != 2 ||
        inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return base_err(err, -EINVAL, "%s is no http://ADDRESS:PORT", url);
    at.sin_port = htons((uint16_t)port);
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        connect(*fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        const int status = base_err(err, -errno, "%s: %s", url, strerror(errno));
        if (*fd >= 0)
            close(*fd);
        return status;
    }
    return 0;
}

int perf_http_send(int fd, const char *method, const char *path, const char *body,
                   struct base_errbuf *err)
{
    char request[REQUEST_BYTES];
    char length[96] = "";
    if (body != NULL)
        snprintf(length, sizeof length, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                 strlen(body));
    const int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s",
                           method, path, length, body != NULL ? body : "");
    if (n < 0 || (size_t)n >= sizeof request)
        return base_err(err, -EMSGSIZE, "%s %s is too long", method, path);
    if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        return base_err(err, -EIO, "%s %s: %s", method, path, strerror(errno));
    return 0;
}

/* Where the body is, and how long; 0: the head is not all there. */
static size_t find_body(const char *bytes, size_t *length)
{
    const char *end = strstr(bytes, "\r\n\r\n"), *field = strcasestr(bytes, "\r\ncontent-length:");
    if (end == NULL)
        return 0;
    *length = field != NULL && field < end ? strtoull(field + 17, NULL, 10) : 0;
    return (size_t)(end + 4 - bytes);
}

int perf_http_receive(int fd, char bytes[PERF_HTTP_BYTES], char **out, struct base_errbuf *err)
{
    size_t used = 0, body = 0, length = 0;
    while (body == 0 || used < body + length) {
        const ssize_t n =
            used + 1 < PERF_HTTP_BYTES ? recv(fd, bytes + used, PERF_HTTP_BYTES - 1 - used, 0) : 0;
        if (n <= 0)
            return base_err(err, -EIO, "the metaserver's answer: %s",
                            n < 0 ? strerror(errno) : "it ends, or is too long");
        used += (size_t)n;
        bytes[used] = '\0';
        body = body != 0 ? body : find_body(bytes, &length);
    }
    if (strncmp(bytes, "HTTP/1.1 2", 10) != 0)
        return base_err(err, -EPROTO, "the metaserver answers: %.300s", bytes);
    *out = bytes + body;
    return 0;
}

int perf_http_call(int fd, const char *method, const char *path, const char *body,
                   char bytes[PERF_HTTP_BYTES], char **out, struct base_errbuf *err)
{
    const int status = perf_http_send(fd, method, path, body, err);
    return status != 0 ? status : perf_http_receive(fd, bytes, out, err);
}
