/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LIFE_DIGITS = META_STORE_ETCD_LIFE_BYTES - 1 };

/* What is no life is none, and nor is what comes behind it: it takes somebody else's name from
 * nobody. */
static void read_former(int fd, char former[META_STORE_ETCD_FORMER_BYTES])
{
    const ssize_t got = pread(fd, former, META_STORE_ETCD_FORMER_BYTES - 1, 0);
    size_t good = 0;
    former[got > 0 ? got : 0] = '\0';
    while (strspn(former + good, "0123456789abcdef") == LIFE_DIGITS) {
        good += LIFE_DIGITS;
        if (former[good] != ' ')
            break;
        good++;
    }
    good -= good != 0 && former[good - 1] == ' ';
    former[good] = '\0';
}

/* Ours, and as many of those before it as there is room for. */
static int write_lives(int fd, const char *life, const char *former)
{
    char text[META_STORE_ETCD_FORMER_BYTES];
    const int length = snprintf(text, sizeof text, "%s%s%.*s", life, former[0] != '\0' ? " " : "",
                                (int)(sizeof text - META_STORE_ETCD_LIFE_BYTES - 1), former);
    const ssize_t written = pwrite(fd, text, length, 0);
    if (written < 0 || ftruncate(fd, length) != 0)
        return -errno;
    return written == length ? 0 : -ENOSPC;
}

/* The lock is this descriptor's, which stays open. */
static int lock_file(const char *path, int *out, struct base_errbuf *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return base_err(err, -errno, "%.200s cannot be opened: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *out = fd;
        return 0;
    }
    const int why = errno;
    close(fd);
    return why == EWOULDBLOCK
               ? base_err(err, -EBUSY,
                          "another kedge-metad has %.200s: give each a data_dir of its own", path)
               : base_err(err, -why, "%.200s cannot be locked: %s", path, strerror(why));
}

int meta_life_begin(const char *data_dir, char life[META_STORE_ETCD_LIFE_BYTES],
                    char former[META_STORE_ETCD_FORMER_BYTES], struct base_errbuf *err)
{
    char path[512];
    int fd = -1;
    int status = meta_store_etcd_draw(life, err);
    if (snprintf(path, sizeof path, "%s/member-life", data_dir) >= (int)sizeof path)
        return base_err(err, -ENAMETOOLONG, "the path of data_dir is too long");
    if (status == 0)
        status = lock_file(path, &fd, err);
    if (status != 0)
        return status;
    read_former(fd, former);
    status = write_lives(fd, life, former);
    if (status == 0)
        return 0;
    close(fd);
    return base_err(err, status, "%.200s cannot be written: %s", path, strerror(-status));
}
