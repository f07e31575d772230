/* SPDX-License-Identifier: Apache-2.0 */
#include "store_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "metaserver/backup.h"
#include "open_store.h"

#define FILE_BYTES 4096

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

static void sync_directory(const char *file)
{
    char directory[FILE_BYTES];
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash == NULL ? 1 : (int)(slash - file + 1),
             slash == NULL ? "." : file);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* For its owner alone: hashes of tokens are in it. It has its name when it is whole and durable. */
static int write_file(const char *file, const struct base_text *text, struct base_errbuf *err)
{
    char part[FILE_BYTES];
    if ((size_t)snprintf(part, sizeof part, "%s.part-XXXXXX", file) >= sizeof part)
        return base_err(err, -ENAMETOOLONG, "the file's name is too long");
    int fd = mkostemp(part, O_CLOEXEC); /* 0600 */
    int status = fd < 0 ? -errno : write_all(fd, text->data, text->length);
    if (status == 0 && fsync(fd) != 0)
        status = -errno;
    if (fd >= 0)
        close(fd);
    if (status == 0 && rename(part, file) != 0)
        status = -errno;
    if (status != 0) {
        if (fd >= 0)
            unlink(part);
        return base_err(err, status, "%s cannot be written: %s", file, strerror(-status));
    }
    sync_directory(file);
    return 0;
}

static int dump_store(struct meta_store *store, const char *file, struct meta_backup_counts *counts,
                      struct base_errbuf *err)
{
    struct base_text text;
    base_text_init(&text, META_BACKUP_BYTES_MAX);
    int status = meta_backup_write(store, base_clock_wall_ms(), &text, counts, err);
    if (status == 0 && strcmp(file, "-") != 0)
        status = write_file(file, &text, err);
    else if (status == 0 && (status = write_all(STDOUT_FILENO, text.data, text.length)) != 0)
        base_err(err, status, "the standard output cannot be written: %s", strerror(-status));
    base_text_fini(&text);
    return status;
}

int meta_command_backup(const struct meta_config *config, const char *file, struct base_errbuf *err)
{
    struct meta_backup_counts n;
    struct meta_store *store = NULL;
    int status = meta_daemon_open_store(config, true, &store, err);
    if (status == 0)
        status = dump_store(store, file, &n, err);
    meta_store_close(store);
    if (status == 0)
        fprintf(stderr,
                "kedge-metad: the backup %s has %" PRIu64 " resources (%" PRIu64
                " of them tokens), %" PRIu64 " nodes and %" PRIu64 " entries of the trail\n",
                strcmp(file, "-") == 0 ? "on the standard output" : file, n.resources, n.tokens,
                n.nodes, n.changes);
    return status;
}

/* NUL-terminated and the caller's. */
static int read_file(const char *file, char **out, size_t *length, struct base_errbuf *err)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC), status = 0;
    char *text = NULL;
    size_t used = 0;
    if (fd < 0 || fstat(fd, &st) != 0)
        status = -errno;
    else if (!S_ISREG(st.st_mode) || st.st_size > META_BACKUP_BYTES_MAX)
        status = S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
    else if ((text = malloc((size_t)st.st_size + 1)) == NULL)
        status = -ENOMEM;
    while (status == 0 && used < (size_t)st.st_size) {
        ssize_t n = read(fd, text + used, (size_t)st.st_size - used);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            status = -errno;
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    if (status != 0) {
        free(text);
        return base_err(err, status, "%s cannot be read: %s", file, strerror(-status));
    }
    text[used] = '\0';
    *out = text;
    *length = used;
    return 0;
}

/* What was taken away since then is there again, and whoever restores has to know that. */
static void say_restored(const char *file, const char *kept, const struct meta_backup_counts *n,
                         uint64_t revision)
{
    const time_t then = (time_t)(n->time_ms / 1000);
    struct tm tm;
    char when[32] = "";
    if (gmtime_r(&then, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    fprintf(stderr,
            "kedge-metad: restored the backup %s of %s: %" PRIu64 " resources, %" PRIu64
            " nodes, %" PRIu64 " entries of the trail, the last of them %" PRIu64
            ". What was there is in %s\n"
            "kedge-metad: the trail goes on with %" PRIu64 ", which is this restore\n"
            "kedge-metad: %" PRIu64
            " tokens are as they were then: delete again what was deleted since (rdmactl token "
            "list)\n",
            file, when, n->resources, n->nodes, n->changes, n->revision, kept, revision, n->tokens);
}

int meta_command_restore(const struct meta_config *config, const char *file,
                         struct base_errbuf *err)
{
    char kept[META_CONFIG_TEXT_BYTES + 32], *text = NULL;
    struct meta_backup_counts n, before;
    char who[32];
    struct meta_backup_restorer by = {.who = who, .wall_ms = base_clock_wall_ms()};
    struct meta_store *store = NULL;
    size_t length = 0;
    snprintf(who, sizeof who, "uid %u", (unsigned)getuid());
    snprintf(kept, sizeof kept, "%s/before-restore.jsonl", config->data_dir);
    int status = read_file(file, &text, &length, err);
    if (status == 0)
        status = meta_daemon_open_store(config, false, &store, err);
    if (status == 0)
        status = dump_store(store, kept, &before, err);
    if (status == 0) {
        by.above = before.revision;
        status = meta_backup_restore(store, text, length, &by, &n, err);
    }
    meta_store_close(store);
    free(text);
    if (status == 0)
        say_restored(file, kept, &n, by.revision);
    return status;
}

/* ---- from one store to another */

struct contents {
    uint64_t nodes, resources, changes;
};

static int count_node(void *user, const struct meta_store_node *node)
{
    (void)node;
    ((struct contents *)user)->nodes++;
    return 0;
}

static int count_resource(void *user, const struct meta_store_resource *resource)
{
    (void)resource;
    ((struct contents *)user)->resources++;
    return 0;
}

static int count_change(void *user, const struct meta_store_change *change)
{
    (void)change;
    ((struct contents *)user)->changes++;
    return 0;
}

static int count_contents(struct meta_store *store, struct contents *out, struct base_errbuf *err)
{
    const struct meta_store_visitor visitor = {
        .resource = count_resource, .change = count_change, .user = out};
    *out = (struct contents){.nodes = 0};
    int status = meta_store_load(store, count_node, out, err);
    return status == 0 ? meta_store_load_resources(store, &visitor, err) : status;
}

static int copy_store(struct meta_store *from, struct meta_store *to, const char *file,
                      struct base_errbuf *err)
{
    struct contents there;
    int status = count_contents(to, &there, err);
    if (status == 0 && there.nodes + there.resources + there.changes > 0)
        status = base_err(err, -ENOTEMPTY,
                          "the store that %s names holds %" PRIu64 " nodes, %" PRIu64
                          " resources and %" PRIu64
                          " entries of the trail: only an empty one can be copied to",
                          file, there.nodes, there.resources, there.changes);
    if (status == 0) /* one that goes on there would write what is not copied, and be believed */
        status = meta_store_check_idle(from, err);
    if (status == 0)
        status = meta_store_copy(from, to, err);
    if (status == 0)
        status = count_contents(to, &there, err);
    if (status == 0)
        fprintf(stderr,
                "kedge-metad: copied %" PRIu64 " nodes, %" PRIu64 " resources and %" PRIu64
                " entries of the trail to the store that %s names\n",
                there.nodes, there.resources, there.changes, file);
    return status;
}

int meta_command_copy(const struct meta_config *config, const char *file, struct base_errbuf *err)
{
    struct meta_store *from = NULL, *to = NULL;
    struct meta_config other;
    int status = meta_config_read(file, &other, err);
    if (status == 0)
        status = meta_daemon_open_store(config, true, &from, err);
    if (status == 0)
        status = meta_daemon_open_store(&other, false, &to, err);
    if (status == 0)
        status = copy_store(from, to, file, err);
    meta_store_close(to);
    meta_store_close(from);
    return status;
}
