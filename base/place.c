/* SPDX-License-Identifier: Apache-2.0 */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* 0, or the errno why no file can be made there. */
static int try_directory(const char *directory)
{
    struct stat st;
    if (stat(directory, &st) != 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
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
    case EACCES:
    case EROFS:
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
