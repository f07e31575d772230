/* SPDX-License-Identifier: Apache-2.0 */
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int write_whole(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -ENOSPC;
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

int agentd_state_file_write(int dir, const char *name, const void *bytes, size_t length)
{
    char fresh[64];
    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", name) >= sizeof fresh)
        return -ENAMETOOLONG;
    int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int status = write_whole(fd, bytes, length);
    if (close(fd) != 0 && status == 0)
        status = -errno;
    if (status == 0 && renameat(dir, fresh, dir, name) != 0)
        status = -errno;
    if (status == 0 && fsync(dir) != 0)
        status = -errno;
    return status;
}

int agentd_state_file_read(int dir, const char *name, void *bytes, size_t capacity, size_t *length)
{
    char beyond;
    int status = 0;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    *length = 0;
    for (ssize_t n = 1; n > 0 && status == 0;) {
        n = *length < capacity ? read(fd, (char *)bytes + *length, capacity - *length)
                               : read(fd, &beyond, 1);
        if (n < 0)
            status = -errno;
        else if (n > 0 && *length == capacity)
            status = -EFBIG;
        else
            *length += (size_t)n;
    }
    close(fd);
    return status;
}
