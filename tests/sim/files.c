/* SPDX-License-Identifier: Apache-2.0 */
/* Files as simulated processes have them: of the disk of their host, which is one directory, and
 * what /proc and /dev have that is opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "disk.h"
#include "os_calls.h"
#include "process.h"
#include "shared.h"

static int fail_with(int status)
{
    errno = -status;
    return -1;
}

const char *os_file_name(const char *path)
{
    const size_t length = sizeof OS_DISK - 1;
    return strncmp(path, OS_DISK "/", length + 1) == 0 ? path + length + 1 : NULL;
}

static int open_file(const char *name, int flags)
{
    struct play_disk *d = play_process->host->disk;
    struct shared_object *o;
    struct play_file *f;
    int status = play_file_open(d, name, flags & O_CREAT, &f);
    if (status == 0 && (flags & O_TRUNC) && play_file_length(f) > 0 &&
        (status = play_file_cut(f, 0)) != 0)
        play_file_close(f);
    if (status != 0)
        return fail_with(status);
    const int fd = shared_new(SHARED_FILE, &o);
    BASE_ASSERT(fd >= 0);
    o->file.file = f;
    return fd;
}

/* Of a process' own memory once more, the device of zeros, and the disk. */
int os_open(const char *path, int flags, ...)
{
    static const char OWN[] = "/proc/self/fd/";
    struct shared_object *made;
    if (strcmp(path, "/dev/zero") == 0)
        return shared_new(SHARED_ZEROS, &made);
    if (strcmp(path, OS_DISK) == 0)
        return shared_new(SHARED_DIRECTORY, &made);
    if (os_file_name(path) != NULL)
        return open_file(os_file_name(path), flags);
    BASE_ASSERT(strncmp(path, OWN, sizeof OWN - 1) == 0);
    struct shared_object *o = shared_of((int)strtol(path + sizeof OWN - 1, NULL, 10));
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    return shared_add(o);
}

int os_openat(int dir, const char *name, int flags, ...)
{
    const struct shared_object *o = shared_of(dir);
    BASE_ASSERT(o != NULL && o->kind == SHARED_DIRECTORY);
    return open_file(name, flags);
}

ssize_t os_read(int fd, void *to, size_t bytes)
{
    struct shared_object *o = shared_of(fd);
    size_t got = bytes;
    BASE_ASSERT(o != NULL && (o->kind == SHARED_ZEROS || o->kind == SHARED_FILE));
    if (o->kind == SHARED_ZEROS) {
        shared_zero(to, bytes);
        return (ssize_t)bytes;
    }
    const int status = play_file_read(o->file.file, o->file.at, to, bytes, &got);
    if (status != 0)
        return fail_with(status);
    o->file.at += got;
    return (ssize_t)got;
}

ssize_t os_write(int fd, const void *bytes, size_t n)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && (o->kind == SHARED_BELL || o->kind == SHARED_FILE));
    if (o->kind == SHARED_BELL) {
        shared_ring(o);
        return (ssize_t)n;
    }
    const int status = play_file_write(o->file.file, o->file.at, bytes, n);
    if (status != 0)
        return fail_with(status);
    o->file.at += n;
    return (ssize_t)n;
}

int os_fsync(int fd)
{
    const struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && (o->kind == SHARED_FILE || o->kind == SHARED_DIRECTORY));
    const int status = o->kind == SHARED_FILE ? play_file_sync(o->file.file)
                                              : play_disk_sync_names(play_process->host->disk);
    return status == 0 ? 0 : fail_with(status);
}

int os_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    BASE_ASSERT(shared_of(from_dir) != NULL && shared_of(to_dir) != NULL);
    const int status = play_disk_rename(play_process->host->disk, from, to);
    return status == 0 ? 0 : fail_with(status);
}

/* Nobody else is on the host who would lock the same. */
int os_flock(int fd, int how)
{
    (void)how;
    BASE_ASSERT(shared_of(fd) != NULL);
    return 0;
}
