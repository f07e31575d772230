/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct file {
    struct file *next;
    const struct play_host *host;
    char name[64];
    size_t length;
    void *bytes;
};

static struct file *files;

static struct file **find_file(const struct play_host *h, const char *name)
{
    struct file **at = &files;
    while (*at != NULL && ((*at)->host != h || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static void remove_file(struct file **at)
{
    struct file *f = *at;
    *at = f->next;
    free(f->bytes);
    free(f);
}

void play_disk_init(void)
{
    BASE_ASSERT(files == NULL);
}

void play_disk_fini(void)
{
    while (files != NULL)
        remove_file(&files);
}

void play_disk_write(const struct play_host *h, const char *name, const void *bytes, size_t length)
{
    struct file **at = find_file(h, name), *f = *at;
    if (f == NULL) {
        f = calloc(1, sizeof *f);
        BASE_ASSERT(f != NULL);
        f->host = h;
        (void)snprintf(f->name, sizeof f->name, "%s", name);
        *at = f;
    }
    free(f->bytes);
    f->bytes = malloc(length + 1);
    BASE_ASSERT(f->bytes != NULL);
    memcpy(f->bytes, bytes, length);
    f->length = length;
}

int play_disk_read(const struct play_host *h, const char *name, void *bytes, size_t capacity,
                   size_t *length)
{
    const struct file *f = *find_file(h, name);
    if (f == NULL)
        return -ENOENT;
    *length = f->length < capacity ? f->length : capacity;
    memcpy(bytes, f->bytes, *length);
    return f->length > capacity ? -EFBIG : 0;
}

void play_disk_lose(const struct play_host *h)
{
    for (struct file **at = &files; *at != NULL;) {
        if ((*at)->host == h)
            remove_file(at);
        else
            at = &(*at)->next;
    }
}
