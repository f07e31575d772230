/* SPDX-License-Identifier: Apache-2.0 */
#include "known_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static const char file_name[] = "store-known.json", part_name[] = "store-known.json.new";
static const char other_prefix[] = "store-known.";

enum {
    OTHERS = 8,      /* stores that are remembered beside the one in use */
    NAME_BYTES = 64, /* of a file */
    AGAIN_S = 5,     /* after a disk that failed */
    END_S = 5,       /* that the end waits for a disk */
};

struct meta_known_file {
    int dir;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    char *text; /* to be written; NULL: nothing is */
    bool ends, ended;
};

/* ---- reading */

static int read_text(int fd, struct base_text *text)
{
    char bytes[65536];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        if (base_text_append(text, bytes, (size_t)n) != 0)
            return text->error;
    return n < 0 ? -errno : 0;
}

static int read_known(const char *data_dir, const char *name, struct meta_known *out,
                      struct base_errbuf *err)
{
    char path[4096];
    struct base_text text;
    snprintf(path, sizeof path, "%s/%s", data_dir, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    base_text_init(&text, META_KNOWN_TEXT_MAX);
    int status = fd < 0 ? -errno : read_text(fd, &text);
    if (fd >= 0)
        close(fd);
    if (status != 0)
        base_err(err, status, "%s cannot be read: %s", path, strerror(-status));
    else if ((status = meta_known_read(base_text_str(&text), text.length, out, err)) != 0)
        base_err(err, status,
                 "%s makes no sense: remove it, if etcd was not put back to an older state since "
                 "this metaserver ran (tokens that were deleted could come back with that)",
                 path);
    base_text_fini(&text);
    return status;
}

/* ---- other stores, on which this metaserver has begun once: a file each */

static bool has_prefix(const char *name)
{
    return strncmp(name, other_prefix, sizeof other_prefix - 1) == 0 &&
           strcmp(name, part_name) != 0 && strcmp(name, file_name) != 0;
}

/* False: it is no id of a store. */
static bool name_other(const char *store, char out[NAME_BYTES])
{
    const size_t length = strlen(store);
    snprintf(out, NAME_BYTES, "%s%s.json", other_prefix, store);
    return length > 0 && strspn(store, "0123456789abcdef") == length;
}

/* The one that was written first goes, if there are so many; never `kept`. */
static void bound_others(int dir, const char *kept)
{
    char oldest[NAME_BYTES] = "";
    struct timespec when = {0};
    struct stat st;
    unsigned count = 0;
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL && fd >= 0)
        close(fd);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (!has_prefix(e->d_name) || strlen(e->d_name) >= sizeof oldest ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        count++;
        if (strcmp(e->d_name, kept) == 0)
            continue;
        if (oldest[0] == '\0' || st.st_mtim.tv_sec < when.tv_sec ||
            (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec)) {
            when = st.st_mtim;
            snprintf(oldest, sizeof oldest, "%s", e->d_name);
        }
    }
    if (d != NULL)
        closedir(d);
    if (count >= OTHERS && oldest[0] != '\0')
        (void)unlinkat(dir, oldest, 0);
}

/* kept: of the store that is read next. */
static int set_aside(const char *data_dir, const char *store, const char *kept,
                     struct base_errbuf *err)
{
    char name[NAME_BYTES];
    if (!name_other(store, name)) /* a metaserver's own, or nobody's */
        return 0;
    const int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = dir < 0 ? -errno : 0;
    if (status == 0)
        bound_others(dir, kept);
    if (status == 0 && (renameat(dir, file_name, dir, name) != 0 || fsync(dir) != 0))
        status = -errno;
    if (dir >= 0)
        close(dir);
    return status == 0 ? 0
                       : base_err(err, status, "%s/%s cannot be renamed to %s: %s", data_dir,
                                  file_name, name, strerror(-status));
}

int meta_known_file_read(const char *data_dir, const char *store, struct meta_known *out,
                         struct base_errbuf *err)
{
    char name[NAME_BYTES];
    const bool has_name = name_other(store, name);
    struct meta_known own;
    int status = read_known(data_dir, file_name, out, err);
    if (status != -ENOENT && (status != 0 || strcmp(out->store, store) == 0))
        return status;
    int found = status == 0 ? set_aside(data_dir, out->store, has_name ? name : "", err) : 0;
    if (found == 0)
        found = has_name ? read_known(data_dir, name, &own, err) : -ENOENT;
    if (found == -ENOENT)
        return status;
    if (status == 0)
        meta_known_fini(out);
    if (found == 0)
        *out = own;
    return found;
}

/* ---- writing */

static int write_whole(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        const ssize_t n = write(fd, text, left);
        if (n <= 0)
            return n == 0 ? -ENOSPC : -errno;
        text += n;
        left -= (size_t)n;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

/* The file is whole, the former one or this one, whatever happens. */
static int write_file(int dir, const char *text)
{
    const int fd =
        openat(dir, part_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int status = write_whole(fd, text);
    if (close(fd) != 0 && status == 0)
        status = -errno;
    if (status == 0 && renameat(dir, part_name, dir, file_name) != 0)
        status = -errno;
    if (status == 0 && fsync(dir) != 0)
        status = -errno;
    return status;
}

static void wait_again(struct meta_known_file *f)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += AGAIN_S;
    (void)pthread_cond_timedwait(&f->changed, &f->lock, &until);
}

/* Locked, before and after: writes what there is, unless more comes meanwhile. */
static void write_next(struct meta_known_file *f, bool *failed)
{
    char *text = f->text;
    f->text = NULL;
    pthread_mutex_unlock(&f->lock);
    const int status = write_file(f->dir, text);
    if (status != 0 && !*failed)
        base_log(BASE_LOG_ERROR,
                 "what is known of the store cannot be written: tokens that are deleted from now "
                 "on could come back, if etcd were put back while no metaserver runs",
                 "file=%s error=\"%s\"", file_name, strerror(-status));
    *failed = status != 0;
    pthread_mutex_lock(&f->lock);
    if (status != 0 && f->text == NULL) {
        f->text = text;
        if (!f->ends)
            wait_again(f);
    } else {
        free(text);
    }
}

static void *write_all(void *arg)
{
    struct meta_known_file *f = arg;
    bool failed = false;
    pthread_mutex_lock(&f->lock);
    while (f->text != NULL || !f->ends) {
        const bool last = f->ends;
        if (f->text == NULL)
            pthread_cond_wait(&f->changed, &f->lock);
        else
            write_next(f, &failed);
        if (last) /* once more, and no longer */
            break;
    }
    f->ended = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- all of it */

/* Its owner's thread takes the signals. */
static int start_thread(struct meta_known_file *f)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&f->thread, NULL, write_all, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int meta_known_file_new(const char *data_dir, struct meta_known_file **out, struct base_errbuf *err)
{
    struct meta_known_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    pthread_condattr_t attr;
    f->dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = f->dir < 0 ? -errno : 0;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* no clock that is set keeps it waiting */
    pthread_cond_init(&f->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (status == 0)
        status = start_thread(f);
    if (status == 0) {
        *out = f;
        return 0;
    }
    if (f->dir >= 0)
        close(f->dir);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return base_err(err, status, "data_dir %s: %s", data_dir, strerror(-status));
}

void meta_known_file_write(struct meta_known_file *f, char *text)
{
    pthread_mutex_lock(&f->lock);
    free(f->text);
    f->text = text;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void meta_known_file_free(struct meta_known_file *f)
{
    struct timespec until;
    int status = 0;
    if (f == NULL)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += END_S;
    pthread_mutex_lock(&f->lock);
    f->ends = true;
    pthread_cond_broadcast(&f->changed);
    while (!f->ended && status == 0)
        status = pthread_cond_timedwait(&f->changed, &f->lock, &until);
    const bool ended = f->ended;
    pthread_mutex_unlock(&f->lock);
    if (!ended) { /* the disk does not answer: what it has stays with the thread */
        pthread_detach(f->thread);
        return;
    }
    pthread_join(f->thread, NULL);
    close(f->dir);
    free(f->text);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
