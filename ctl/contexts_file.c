/* SPDX-License-Identifier: Apache-2.0 */
/* Where the contexts of a user are: read with suspicion, written whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/contexts.h"

enum { FILE_BYTES = 1 << 20 };

/* As the XDG base directory specification says, which has relative paths ignored. "": nowhere. */
static void find_path(char out[CTL_CONTEXTS_PATH_BYTES])
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int length = 0;
    out[0] = '\0';
    if (xdg != NULL && xdg[0] == '/')
        length = snprintf(out, CTL_CONTEXTS_PATH_BYTES, "%s/kedge/rdmactl.conf", xdg);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, CTL_CONTEXTS_PATH_BYTES, "%s/.config/kedge/rdmactl.conf", home);
    if (length >= CTL_CONTEXTS_PATH_BYTES)
        out[0] = '\0';
}

/* Who can write it can have any token that its user may read sent anywhere. */
static int check_file(int fd, const char *path, struct base_errbuf *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return base_err(err, -errno, "%.250s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES)
        return base_err(err, -EINVAL, "%.250s is no file of contexts: %s", path,
                        S_ISREG(st.st_mode) ? "it is larger than 1 MiB" : "it is no regular file");
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return base_err(err, -EACCES,
                        "%.250s is uid %u's, who could send your tokens anywhere: name another "
                        "directory in XDG_CONFIG_HOME, or make the file your own",
                        path, (unsigned)st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return base_err(
            err, -EACCES,
            "others may write %.150s, and could send your tokens anywhere: look at what "
            "it says, then chmod go-w %.150s",
            path, path);
    return 0;
}

static int read_path(struct ctl_contexts *out, struct base_errbuf *err)
{
    char path[CTL_CONTEXTS_PATH_BYTES];
    memcpy(path, out->path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return base_err(err, -EINVAL, "%.250s cannot be read: %s", path, strerror(errno));
    int status = check_file(fd, path, err);
    FILE *file = status == 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        close(fd);
        return status != 0 ? status : base_err(err, -ENOMEM, "out of memory");
    }
    status = ctl_contexts_parse(file, path, out, err);
    fclose(file);
    return status;
}

int ctl_contexts_read(struct ctl_contexts *out, struct base_errbuf *err)
{
    out->current[0] = '\0';
    out->count = 0;
    find_path(out->path);
    return out->path[0] != '\0' ? read_path(out, err) : 0;
}

/* ---- writing */

/* Makes the directories that path lies in. */
static int make_directories(const char *path, struct base_errbuf *err)
{
    char part[CTL_CONTEXTS_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return base_err(err, -errno, "the directory %.250s cannot be made: %s", part,
                            strerror(errno));
        *slash = '/';
    }
    return 0;
}

/* The file that is written: behind symbolic links, which stay; and its directory, open. */
static int open_directory(const char *path, char real[PATH_MAX], int *out, struct base_errbuf *err)
{
    int status = make_directories(path, err);
    if (status != 0)
        return status;
    if (realpath(path, real) == NULL)
        snprintf(real, PATH_MAX, "%s", path);
    char *slash = strrchr(real, '/');
    *slash = '\0';
    *out = open(slash == real ? "/" : real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0)
        status =
            base_err(err, -errno, "the directory %.250s cannot be read: %s", real, strerror(errno));
    *slash = '/';
    return status;
}

/* Beside the old one first, so that there is a whole one at any time. */
static int write_path(const struct ctl_contexts *contexts, const char *real, int directory,
                      struct base_errbuf *err)
{
    char beside[PATH_MAX + 8];
    snprintf(beside, sizeof beside, "%s.XXXXXX", real);
    int fd = mkostemp(beside, O_CLOEXEC), status = 0; /* mode 0600 */
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        status = -errno;
        if (fd >= 0)
            close(fd);
    } else {
        status = ctl_contexts_print(contexts, file);
        if (status == 0 && fsync(fd) != 0)
            status = -errno;
        if (fclose(file) != 0 && status == 0)
            status = -errno;
    }
    if (status == 0 && rename(beside, real) != 0)
        status = -errno;
    if (status != 0 && fd >= 0)
        (void)unlink(beside);
    if (status == 0 && fsync(directory) != 0)
        status = -errno;
    return status == 0
               ? 0
               : base_err(err, status, "%.250s cannot be written: %s", real, strerror(-status));
}

int ctl_contexts_change(int (*edit)(void *user, struct ctl_contexts *contexts,
                                    struct base_errbuf *err),
                        void *user, struct base_errbuf *err)
{
    char real[PATH_MAX];
    int directory = -1, status;
    struct ctl_contexts *contexts = calloc(1, sizeof *contexts);
    if (contexts == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    find_path(contexts->path);
    if (contexts->path[0] == '\0')
        status = base_err(err, -EINVAL,
                          "there is no place for contexts: set XDG_CONFIG_HOME or HOME to a "
                          "directory's absolute path");
    else
        status = open_directory(contexts->path, real, &directory, err);
    if (status != 0)
        goto out;
    /* The directory's lock leaves no file behind; whoever reads needs none. */
    while ((status = flock(directory, LOCK_EX) == 0 ? 0 : -errno) == -EINTR)
        continue;
    if (status != 0)
        base_err(err, status, "%.250s cannot be locked: %s", contexts->path, strerror(-status));
    if (status == 0)
        status = read_path(contexts, err);
    if (status == 0)
        status = edit(user, contexts, err);
    if (status == 0)
        status = write_path(contexts, real, directory, err);
    close(directory);
out:
    free(contexts);
    return status;
}
