/* SPDX-License-Identifier: Apache-2.0 */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Where its mode says nothing of it, as in /proc. It has no name when the file system lets it. */
static int try_file(const char *directory)
{
    static const char NAME[] = "/.kedge-try-XXXXXX";
    char path[PATH_MAX + sizeof NAME];
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        if ((size_t)snprintf(path, sizeof path, "%s%s", directory, NAME) >= sizeof path)
            return ENAMETOOLONG;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            (void)unlink(path);
    }
    if (fd < 0)
        return errno == ENOENT ? EOPNOTSUPP : errno;
    close(fd);
    return 0;
}

/* 0, or the errno why no file can be made there. */
static int try_directory(const char *directory)
{
    struct stat st;
    if (stat(directory, &st) != 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0)
        return errno;
    return try_file(directory);
}

int base_place_directory(const char *directory, const char *what, const char *setting,
                         struct base_errbuf *err)
{
    int error = try_directory(directory);
    switch (error) {
    case 0:
        return 0;
    case ENOENT:
        return base_err(err, -error,
                        "%s %.200s is missing: make it, or set %s to one that is there", what,
                        directory, setting);
    case EOPNOTSUPP:
        return base_err(err, -error, "in %.200s no file can be made: change %s", directory,
                        setting);
    case ENOSPC:
    case EDQUOT:
        return base_err(err, -error, "there is no room for another file in %.200s: make room there",
                        directory);
    case EROFS:
        return base_err(err, -error,
                        "%s %.200s cannot be written: %s (remount it for writing, or change %s)",
                        what, directory, strerror(error), setting);
    case EACCES:
        return base_err(err, -error,
                        "%s %.200s cannot be written by uid %u: %s (give it to that user, or "
                        "change %s)",
                        what, directory, (unsigned)geteuid(), strerror(error), setting);
    default:
        return base_err(err, -error, "%s %.200s cannot be used: %s (change %s)", what, directory,
                        strerror(error), setting);
    }
}

int base_place_socket(const char *path, const char *setting, struct base_errbuf *err)
{
    const size_t room = sizeof((struct sockaddr_un *)NULL)->sun_path;
    char directory[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= room)
        return base_err(err, -ENAMETOOLONG,
                        "%.120s is longer than the %zu bytes that a Unix socket's path can have "
                        "(change %s)",
                        path, room - 1, setting);
    if (slash != NULL) {
        const size_t length = slash == path ? 1 : (size_t)(slash - path);
        memcpy(directory, path, length);
        directory[length] = '\0';
    }
    return base_place_directory(directory, "the socket's directory", setting, err);
}
