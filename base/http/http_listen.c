/* SPDX-License-Identifier: Apache-2.0 */
#include "http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/http/listen_setting.h"
#include "base/text.h"

enum { BACKLOG = 512 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* "a.b.c.d:port", "localhost:port" or "[v6]:port". */
static int parse_address(const char *text, union address *address, socklen_t *length)
{
    char host[INET6_ADDRSTRLEN];
    uint64_t port;
    const char *colon = strrchr(text, ':');
    if (colon == NULL || base_parse_u64(colon + 1, 0, 65535, &port) != 0)
        return -EINVAL;
    size_t n = (size_t)(colon - text);
    int bracketed = n >= 2 && text[0] == '[' && colon[-1] == ']';
    if (bracketed) {
        text++;
        n -= 2;
    }
    if (n == 0 || n >= sizeof host)
        return -EINVAL;
    memcpy(host, text, n);
    host[n] = '\0';
    memset(address, 0, sizeof *address);
    if (bracketed) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        *length = sizeof address->v6;
        return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 ? 0 : -EINVAL;
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    *length = sizeof address->v4;
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    return inet_pton(AF_INET, numeric, &address->v4.sin_addr) == 1 ? 0 : -EINVAL;
}

/* "cannot listen on 127.0.0.1:7480: address in use (another kedge-metad? change `listen`)" */
static int explain_error(const struct http_server_config *config, const char *where, int error,
                         struct base_errbuf *err)
{
    const char *program = config->program != NULL ? config->program : "program";
    const char *setting = config->setting != NULL ? config->setting : "the address";
    switch (error) {
    case EADDRINUSE:
        return base_err(err, -error,
                        "cannot listen on %s: address in use (another %s? stop it, or change %s)",
                        where, program, setting);
    case EADDRNOTAVAIL:
        return base_err(
            err, -error,
            "cannot listen on %s: no interface of this host has that address (change %s)", where,
            setting);
    case EACCES:
    case EPERM:
        return base_err(err, -error, "cannot listen on %s: permission denied (change %s)", where,
                        setting);
    case EINVAL:
        return base_err(err, -error,
                        "cannot listen on \"%s\": it must look like 127.0.0.1:7480 or "
                        "[::1]:7480 (change %s)",
                        where, setting);
    case ENOENT:
        return base_err(err, -error,
                        "cannot listen on %s: its directory is missing (create it, or change %s)",
                        where, setting);
    case EEXIST:
        return base_err(err, -error,
                        "cannot listen on %s: a file that is no socket is there (remove it, or "
                        "change %s)",
                        where, setting);
    case ENAMETOOLONG:
        return base_err(err, -error,
                        "cannot listen on %s: a socket's path has at most 107 bytes (change %s)",
                        where, setting);
    default:
        return base_err(err, -error, "cannot listen on %s: %s", where, strerror(error));
    }
}

int http_listen_check(const char *listen, const char *setting, struct base_errbuf *err)
{
    const struct http_server_config config = {.setting = setting};
    union address address;
    socklen_t length;
    if (parse_address(listen, &address, &length) != 0)
        return explain_error(&config, listen, EINVAL, err);
    if (address.any.sa_family == AF_INET6)
        address.v6.sin6_port = 0; /* any: whether this one is taken is seen at the start */
    else
        address.v4.sin_port = 0;
    int sock = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error = sock < 0 || bind(sock, &address.any, length) != 0 ? errno : 0;
    if (sock >= 0)
        close(sock);
    return error == 0 ? 0 : explain_error(&config, listen, error, err);
}

int http_listen_tcp(const struct http_server_config *config, int *fd, uint16_t *port,
                    struct base_errbuf *err)
{
    union address address;
    socklen_t length;
    int on = 1, sock = -1, error = 0;
    if (parse_address(config->listen, &address, &length) != 0)
        return explain_error(config, config->listen, EINVAL, err);
    sock = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return explain_error(config, config->listen, errno, err);
    if (setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(sock, &address.any, length) != 0 || listen(sock, BACKLOG) != 0 ||
        getsockname(sock, &address.any, &length) != 0)
        error = errno;
    if (error != 0) {
        close(sock);
        return explain_error(config, config->listen, error, err);
    }
    *fd = sock;
    *port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
    return 0;
}

/* Removes a socket file that refuses connections. 0, or the errno why the path cannot be used. */
static int clear_stale(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st) != 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISSOCK(st.st_mode))
        return EEXIST;
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return errno;
    int refused = connect(sock, (const struct sockaddr *)address, sizeof *address) != 0 ? errno : 0;
    close(sock);
    if (refused != ECONNREFUSED)
        return refused == EACCES || refused == EPERM ? refused : EADDRINUSE;
    return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : errno;
}

int http_listen_unix(const struct http_server_config *config, int *fd, struct base_errbuf *err)
{
    const char *path = config->unix_path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return explain_error(config, path, ENAMETOOLONG, err);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int error = clear_stale(&address);
    if (error != 0)
        return explain_error(config, path, error, err);
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return explain_error(config, path, errno, err);
    if (bind(sock, (struct sockaddr *)&address, sizeof address) != 0) {
        error = errno;
        goto close_socket;
    }
    (void)base_fds_refuse(sock); /* where the kernel can; it is its user's alone */
    /* Nobody can connect before listen(), so nobody sees the mode that the umask left. */
    if (chmod(path, config->unix_mode != 0 ? config->unix_mode : 0600) != 0 ||
        listen(sock, BACKLOG) != 0) {
        error = errno;
        goto remove_file;
    }
    *fd = sock;
    return 0;
remove_file:
    unlink(path);
close_socket:
    close(sock);
    return explain_error(config, path, error, err);
}
