/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/secret_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_existing(const char *path, struct base_errbuf *err)
{
    return base_err(err, -EEXIST,
                    "%.200s is there already, and is not overwritten: name another file, or take "
                    "that one away",
                    path);
}

int ctl_secret_out_open(struct ctl_secret_out *out, const char *path, struct base_errbuf *err)
{
    struct stat there;
    *out = (struct ctl_secret_out){.path = path, .fd = -1};
    if (lstat(path, &there) == 0)
        return refuse_existing(path, err);
    if (snprintf(out->temporary, sizeof out->temporary, "%s.XXXXXX", path) >=
        (int)sizeof out->temporary)
        return base_err(err, -EINVAL, "--secret-out: the path is too long");
    out->fd = mkostemp(out->temporary, O_CLOEXEC); /* whose mode is 0600, whatever the umask */
    if (out->fd >= 0)
        return 0;
    const int status = -errno;
    out->temporary[0] = '\0';
    return base_err(err, status == -EACCES || status == -EPERM ? status : -EINVAL,
                    "%.200s cannot be made: %s", path, strerror(-status));
}

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        text += written;
        bytes -= (size_t)written;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

int ctl_secret_out_keep(struct ctl_secret_out *out, const char *secret, struct base_errbuf *err)
{
    int status = write_all(out->fd, secret, strlen(secret));
    if (status == 0)
        status = write_all(out->fd, "\n", 1);
    /* A link, since that fails where a file of this name has come meanwhile; a rename would replace
     * it. */
    if (status == 0 && link(out->temporary, out->path) != 0)
        status = -errno;
    if (status == -EEXIST)
        return refuse_existing(out->path, err);
    return status == 0 ? 0
                       : base_err(err, status, "%.200s cannot be written: %s", out->path,
                                  strerror(-status));
}

void ctl_secret_out_close(struct ctl_secret_out *out)
{
    if (out->temporary[0] != '\0')
        (void)unlink(out->temporary);
    if (out->fd >= 0)
        (void)close(out->fd);
    *out = (struct ctl_secret_out){.fd = -1};
}
