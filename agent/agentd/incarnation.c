/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/incarnation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"

#define FILE_NAME "incarnation"
#define NEW_NAME  "incarnation.new"

/* 0 and *saved (0: no file), or -EBADMSG for garbage, or another -errno. */
static int read_saved(int dir, uint32_t *saved)
{
    char text[32];
    uint64_t n = 0;
    *saved = 0;
    int fd = openat(dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ssize_t length = read(fd, text, sizeof text - 1);
    int status = length < 0 ? -errno : 0;
    close(fd);
    if (status != 0)
        return status;
    /* A whole file ends with a newline: a torn one could hold the beginning of a number. */
    if (length < 2 || text[length - 1] != '\n')
        return -EBADMSG;
    text[length - 1] = '\0';
    if (strlen(text) != (size_t)length - 1 || kedge_parse_u64(text, 1, UINT32_MAX - 1, &n) != 0)
        return -EBADMSG;
    *saved = (uint32_t)n;
    return 0;
}

static int write_whole(int fd, const char *text, size_t length)
{
    ssize_t n = write(fd, text, length);
    if (n < 0)
        return -errno;
    if ((size_t)n != length)
        return -ENOSPC;
    return fsync(fd) == 0 ? 0 : -errno;
}

static int save(int dir, uint32_t incarnation)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%u\n", incarnation);
    int fd = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int status = write_whole(fd, text, (size_t)length);
    if (close(fd) != 0 && status == 0)
        status = -errno;
    if (status == 0 && renameat(dir, NEW_NAME, dir, FILE_NAME) != 0)
        status = -errno;
    if (status == 0 && fsync(dir) != 0)
        status = -errno;
    return status;
}

static int open_dir(const char *state_dir, int *dir, struct kedge_errbuf *err)
{
    *dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir >= 0)
        return 0;
    return kedge_err(err, -errno, "the state directory %s cannot be used: %s (%s)", state_dir,
                     strerror(errno),
                     errno == ENOENT ? "make it, or set state_dir to one that is there"
                                     : "give it to the agent's user, or set state_dir");
}

int agentd_state_lock(const char *state_dir, int *lock, struct kedge_errbuf *err)
{
    int dir, status = open_dir(state_dir, &dir, err);
    if (status != 0)
        return status;
    /* A file system that cannot lock is no reason not to begin. */
    if (flock(dir, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(dir);
        return kedge_err(err, -EBUSY,
                         "the state directory %s is in use by another agent: stop that one, or set "
                         "state_dir to a directory of its own",
                         state_dir);
    }
    *lock = dir;
    return 0;
}

int agentd_incarnation_next(const char *state_dir, uint64_t wall_s, uint32_t at_least,
                            uint32_t *out, int *lost, struct kedge_errbuf *err)
{
    uint32_t saved = 0;
    uint64_t next = wall_s < UINT32_MAX ? wall_s : 0;
    int dir, status = open_dir(state_dir, &dir, err);
    if (status != 0)
        return status;
    status = read_saved(dir, &saved);
    *lost = status == -EBADMSG;
    if (status != 0 && status != -EBADMSG) {
        kedge_err(err, status, "the saved incarnation %s/" FILE_NAME " cannot be read: %s",
                  state_dir, strerror(-status));
        goto close_dir;
    }
    if (next < (uint64_t)saved + 1)
        next = (uint64_t)saved + 1;
    if (next < at_least)
        next = at_least;
    if (next >= UINT32_MAX) {
        status = kedge_err(err, -EOVERFLOW,
                           "the saved incarnation %s/" FILE_NAME " is the last possible one: "
                           "remove the node from the metaservers, and then the file",
                           state_dir);
        goto close_dir;
    }
    status = save(dir, (uint32_t)next);
    if (status != 0)
        kedge_err(err, status,
                  "the incarnation cannot be saved in %s: %s (make room, or give the directory to "
                  "the agent's user)",
                  state_dir, strerror(-status));
    else
        *out = (uint32_t)next;
close_dir:
    close(dir);
    return status;
}
