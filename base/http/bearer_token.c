/* SPDX-License-Identifier: Apache-2.0 */
/* What a client shows for itself. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/client.h"

/* 0; -EINVAL: what cannot be in a header, or is none. */
static int check_token(const char *token, size_t length)
{
    if (length == 0 || length >= HTTP_TOKEN_BYTES)
        return -EINVAL;
    for (size_t i = 0; i < length; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return -EINVAL;
    return 0;
}

int http_token_read(const char *path, char out[HTTP_TOKEN_BYTES], struct base_errbuf *err)
{
    char text[HTTP_TOKEN_BYTES + 2];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 || fstat(fd, &st) != 0 ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
    ssize_t length = error == 0 ? read(fd, text, sizeof text) : 0;
    if (length < 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    if (error != 0)
        return base_err(err, -error, "the token in %.200s cannot be read: %s", path,
                        error == EINVAL ? "it is no regular file" : strerror(error));
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    if (check_token(text, (size_t)length) != 0)
        return base_err(err, -EINVAL,
                        "%.200s holds no token: put there what `rdmactl token create` shows, and "
                        "nothing else",
                        path);
    memcpy(out, text, (size_t)length);
    out[length] = '\0';
    return 0;
}

int http_token_private(const char *path, struct base_errbuf *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return base_err(err, -EACCES,
                        "others may read the token in %.200s, or write it: chmod 600 it, and "
                        "replace the token if somebody may have seen it",
                        path);
    return 0; /* what cannot be read says so when it is read */
}

int http_token_check(const char *token)
{
    return check_token(token, strlen(token));
}

/* libcurl connects to localhost by loopback, whatever a resolver says. */
static bool is_loopback(const char *host)
{
    const size_t length = strlen(host);
    char text[INET6_ADDRSTRLEN] = "";
    struct in_addr v4;
    struct in6_addr v6;
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (host[0] != '[' || length < 3 || length - 2 >= sizeof text)
        return false;
    memcpy(text, host + 1, length - 2);
    return inet_pton(AF_INET6, text, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
}

/* *tls: its scheme is https; *loopback: its host is this one. Both false of what is no URL. */
static void look_at_url(const char *url, bool *tls, bool *loopback)
{
    char *scheme = NULL, *host = NULL;
    CURLU *parts = curl_url();
    const bool known = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                       curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                       curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    *tls = known && strcasecmp(scheme, "https") == 0;
    *loopback = known && is_loopback(host);
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(parts);
}

bool http_url_is_private(const char *url)
{
    bool tls, loopback;
    look_at_url(url, &tls, &loopback);
    return tls || loopback;
}

bool http_url_is_loopback(const char *url)
{
    bool tls, loopback;
    look_at_url(url, &tls, &loopback);
    return loopback;
}
