/* SPDX-License-Identifier: Apache-2.0 */
#include "incarnation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"
#include "life.h"
#include "state_file.h"

#define FILE_NAME "incarnation"

enum { LOCK_AGAIN_MS = 20 };

/* 0 and *saved (0: no file), or -EBADMSG for garbage, or another -errno. */
static int read_saved(int dir, uint32_t *saved)
{
    char text[32];
    uint64_t n = 0;
    size_t length;
    *saved = 0;
    int status = agentd_state_file_read(dir, FILE_NAME, text, sizeof text - 1, &length);
    if (status != 0)
        return status == -ENOENT ? 0 : status == -EFBIG ? -EBADMSG : status;
    /* A whole file ends with a newline: a torn one could hold the beginning of a number. */
    if (length < 2 || text[length - 1] != '\n')
        return -EBADMSG;
    text[length - 1] = '\0';
    if (strlen(text) != length - 1 || base_parse_u64(text, 1, UINT32_MAX - 1, &n) != 0)
        return -EBADMSG;
    *saved = (uint32_t)n;
    return 0;
}

static int save_incarnation(int dir, uint32_t incarnation)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%u\n", incarnation);
    return agentd_state_file_write(dir, FILE_NAME, text, (size_t)length);
}

static int open_dir(const char *state_dir, int *dir, struct base_errbuf *err)
{
    *dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir >= 0)
        return 0;
    return base_err(err, -errno, "the state directory %s cannot be used: %s (%s)", state_dir,
                    strerror(errno),
                    errno == ENOENT ? "make it, or set state_dir to one that is there"
                                    : "give it to the agent's user, or set state_dir");
}

static int try_lock(int dir, uint32_t patience_ms)
{
    for (uint32_t ms = 0;; ms += LOCK_AGAIN_MS) {
        if (flock(dir, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK || ms >= patience_ms)
            return -errno;
        (void)usleep(LOCK_AGAIN_MS * 1000);
    }
}

int agentd_state_lock(const char *state_dir, uint32_t patience_ms, int *lock,
                      struct base_errbuf *err)
{
    int dir, status = open_dir(state_dir, &dir, err);
    if (status != 0)
        return status;
    /* A file system that cannot lock is no reason not to begin. */
    if (try_lock(dir, patience_ms) == -EWOULDBLOCK) {
        close(dir);
        return base_err(err, -EBUSY,
                        "the state directory %s is in use by another agent: stop that one, or set "
                        "state_dir to a directory of its own",
                        state_dir);
    }
    *lock = dir;
    return 0;
}

int agentd_incarnation_next(const char *state_dir, uint64_t wall_s, uint32_t at_least,
                            uint32_t *out, bool *lost, struct base_errbuf *err)
{
    uint32_t saved = 0;
    uint64_t next = wall_s < UINT32_MAX ? wall_s : 0;
    int dir, status = open_dir(state_dir, &dir, err);
    if (status != 0)
        return status;
    status = read_saved(dir, &saved);
    *lost = status == -EBADMSG;
    if (status != 0 && status != -EBADMSG) {
        base_err(err, status, "the saved incarnation %s/" FILE_NAME " cannot be read: %s",
                 state_dir, strerror(-status));
        goto close_dir;
    }
    if (next < (uint64_t)saved + 1)
        next = (uint64_t)saved + 1;
    if (next < at_least)
        next = at_least;
    if (next >= UINT32_MAX) {
        status = base_err(err, -EOVERFLOW,
                          "the saved incarnation %s/" FILE_NAME " is the last possible one: "
                          "remove the node from the metaservers, and then the file",
                          state_dir);
        goto close_dir;
    }
    status = save_incarnation(dir, life_last_kept((uint32_t)next));
    if (status != 0)
        base_err(err, status,
                 "the incarnation cannot be saved in %s: %s (make room, or give the directory to "
                 "the agent's user)",
                 state_dir, strerror(-status));
    else
        *out = (uint32_t)next;
close_dir:
    close(dir);
    return status;
}

int agentd_incarnation_keep(const char *state_dir, uint32_t last)
{
    int dir, status = open_dir(state_dir, &dir, NULL);
    if (status != 0)
        return status;
    status = save_incarnation(dir, last);
    close(dir);
    return status;
}
