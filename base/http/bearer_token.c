/* SPDX-License-Identifier: Apache-2.0 */
/* What a client shows for itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
