/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "random.h"

enum { SECTOR = 512, USUAL_MS = 4, CHANGES_MOST = 12 };

struct bytes {
    uint8_t *at;
    uint64_t length, room;
};

/* A change of a file that was not synced. */
struct change {
    struct change *next;
    bool cuts; /* to `at`; else it writes n bytes there */
    uint64_t at, n;
    uint8_t bytes[];
};

struct play_file {
    struct play_disk *disk;
    uint32_t refs;            /* names, changes of names, and who has it open */
    struct bytes seen, saved; /* as processes see it, and what survives */
    struct change *first, **last;
};

struct name {
    struct name *next;
    char text[PLAY_FILE_NAME];
    struct play_file *file;
};

/* A change of names that was not synced: `to` is the file, or no more there; a name that it had is
 * gone with that. */
struct renaming {
    struct renaming *next;
    char from[PLAY_FILE_NAME], to[PLAY_FILE_NAME]; /* from "": it had none */
    struct play_file *file;                        /* NULL: `to` is gone */
};

struct play_disk {
    struct base_prng random;
    struct name *seen, *saved;
    struct renaming *first, **last;
    bool full;
    uint64_t slow_ns;
    bool fails;
    uint32_t changes_left; /* until each fails, if `fails` */
};

/* ---- bytes */

static void set_length(struct bytes *b, uint64_t length)
{
    if (length > b->room) {
        b->room = length + length / 2 + SECTOR;
        b->at = realloc(b->at, b->room);
        BASE_ASSERT(b->at != NULL);
    }
    if (length > b->length)
        memset(b->at + b->length, 0, length - b->length);
    b->length = length;
}

static void put_bytes(struct bytes *b, uint64_t at, const void *from, uint64_t n)
{
    if (at + n > b->length)
        set_length(b, at + n);
    if (n > 0)
        memcpy(b->at + at, from, n);
}

/* ---- files */

static struct play_file *make_file(struct play_disk *d)
{
    struct play_file *f = calloc(1, sizeof *f);
    BASE_ASSERT(f != NULL);
    f->disk = d;
    f->last = &f->first;
    return f;
}

static struct play_file *take_file(struct play_file *f)
{
    f->refs++;
    return f;
}

static void forget_changes(struct play_file *f)
{
    for (struct change *c = f->first, *next; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    f->first = NULL;
    f->last = &f->first;
}

static void drop_file(struct play_file *f)
{
    if (--f->refs > 0)
        return;
    forget_changes(f);
    free(f->seen.at);
    free(f->saved.at);
    free(f);
}

static void note_change(struct play_file *f, bool cuts, uint64_t at, const void *bytes, uint64_t n)
{
    struct change *c = malloc(sizeof *c + n);
    BASE_ASSERT(c != NULL);
    *c = (struct change){.cuts = cuts, .at = at, .n = n};
    if (n > 0)
        memcpy(c->bytes, bytes, n);
    *f->last = c;
    f->last = &c->next;
}

static void carry_out(struct bytes *b, const struct change *c)
{
    if (c->cuts)
        set_length(b, c->at);
    else
        put_bytes(b, c->at, c->bytes, c->n);
}

/* ---- names */

static struct name **find_name(struct name **list, const char *text)
{
    while (*list != NULL && strcmp((*list)->text, text) != 0)
        list = &(*list)->next;
    return list;
}

static void unset_name(struct name **list, const char *text)
{
    struct name **at = find_name(list, text), *n = *at;
    if (n == NULL)
        return;
    *at = n->next;
    drop_file(n->file);
    free(n);
}

static void set_name(struct name **list, const char *text, struct play_file *f)
{
    (void)take_file(f); /* it may have that name */
    unset_name(list, text);
    struct name *n = calloc(1, sizeof *n);
    BASE_ASSERT(n != NULL);
    (void)snprintf(n->text, sizeof n->text, "%s", text);
    n->file = f;
    n->next = *list;
    *list = n;
}

static void forget_names(struct name **list)
{
    while (*list != NULL)
        unset_name(list, (*list)->text);
}

static void rename_in(struct name **list, const struct renaming *r)
{
    if (r->file != NULL)
        set_name(list, r->to, r->file);
    else
        unset_name(list, r->to);
    if (r->from[0] != '\0')
        unset_name(list, r->from);
}

/* It is seen at once. */
static void note_renaming(struct play_disk *d, const char *from, const char *to,
                          struct play_file *f)
{
    struct renaming *r = calloc(1, sizeof *r);
    BASE_ASSERT(r != NULL);
    (void)snprintf(r->from, sizeof r->from, "%s", from);
    (void)snprintf(r->to, sizeof r->to, "%s", to);
    r->file = f != NULL ? take_file(f) : NULL;
    *d->last = r;
    d->last = &r->next;
    rename_in(&d->seen, r);
}

/* The first `count` of them survive, and the others are forgotten. */
static void settle_names(struct play_disk *d, uint32_t count)
{
    for (struct renaming *r = d->first, *next; r != NULL; r = next) {
        next = r->next;
        if (count > 0)
            rename_in(&d->saved, r);
        count -= count > 0;
        if (r->file != NULL)
            drop_file(r->file);
        free(r);
    }
    d->first = NULL;
    d->last = &d->first;
}

/* ---- its beginning and end */

struct play_disk *play_disk_new(uint64_t seed, uint64_t number)
{
    struct play_disk *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->random = play_random_of(seed, "disk", number);
    d->last = &d->first;
    return d;
}

void play_disk_free(struct play_disk *d)
{
    if (d == NULL)
        return;
    play_disk_lose(d);
    free(d);
}

void play_disk_lose(struct play_disk *d)
{
    settle_names(d, 0);
    forget_names(&d->seen);
    forget_names(&d->saved);
}

/* ---- what processes ask */

static bool is_dead(const struct play_disk *d)
{
    return d->fails && d->changes_left == 0;
}

/* 0; or -EIO: it has failed before. */
static int count_change(struct play_disk *d)
{
    if (is_dead(d))
        return -EIO;
    d->changes_left -= d->fails;
    return 0;
}

/* Whether a change may happen. longer: it needs more room. */
static int begin_change(struct play_disk *d, bool longer)
{
    const int status = count_change(d);
    if (status != 0)
        return status;
    return d->full && (longer || base_prng_below(&d->random, 2) == 0) ? -ENOSPC : 0;
}

int play_file_open(struct play_disk *d, const char *name, bool make, struct play_file **out)
{
    struct name *n = name != NULL ? *find_name(&d->seen, name) : NULL;
    if (n != NULL || name == NULL) {
        *out = take_file(n != NULL ? n->file : make_file(d));
        return 0;
    }
    if (!make)
        return -ENOENT;
    const int status = begin_change(d, true);
    if (status != 0)
        return status;
    *out = take_file(make_file(d));
    note_renaming(d, "", name, *out);
    return 0;
}

void play_file_close(struct play_file *f)
{
    drop_file(f);
}

uint64_t play_file_length(const struct play_file *f)
{
    return f->seen.length;
}

int play_file_read(struct play_file *f, uint64_t from, void *to, size_t n, size_t *got)
{
    if (is_dead(f->disk))
        return -EIO;
    *got = from >= f->seen.length      ? 0
           : f->seen.length - from < n ? (size_t)(f->seen.length - from)
                                       : n;
    if (*got > 0)
        memcpy(to, f->seen.at + from, *got);
    return 0;
}

int play_file_write(struct play_file *f, uint64_t at, const void *bytes, size_t n)
{
    const int status = begin_change(f->disk, at + n > f->seen.length);
    if (status != 0)
        return status;
    put_bytes(&f->seen, at, bytes, n);
    note_change(f, false, at, bytes, n);
    return 0;
}

int play_file_cut(struct play_file *f, uint64_t length)
{
    const int status = begin_change(f->disk, length > f->seen.length);
    if (status != 0)
        return status;
    set_length(&f->seen, length);
    note_change(f, true, length, NULL, 0);
    return 0;
}

int play_file_sync(struct play_file *f)
{
    const int status = count_change(f->disk);
    if (status != 0)
        return status;
    for (const struct change *c = f->first; c != NULL; c = c->next)
        carry_out(&f->saved, c);
    forget_changes(f);
    return 0;
}

bool play_disk_has(const struct play_disk *d, const char *name)
{
    struct name *list = d->seen;
    return *find_name(&list, name) != NULL;
}

int play_disk_rename(struct play_disk *d, const char *from, const char *to)
{
    const struct name *n = *find_name(&d->seen, from);
    if (n == NULL)
        return -ENOENT;
    const int status = begin_change(d, false);
    if (status == 0)
        note_renaming(d, from, to, n->file);
    return status;
}

int play_disk_remove(struct play_disk *d, const char *name)
{
    if (!play_disk_has(d, name))
        return -ENOENT;
    const int status = count_change(d);
    if (status != 0)
        return status;
    note_renaming(d, "", name, NULL);
    return 0;
}

int play_disk_sync_names(struct play_disk *d)
{
    const int status = count_change(d);
    if (status != 0)
        return status;
    settle_names(d, UINT32_MAX);
    return 0;
}

/* ---- what goes wrong */

void play_disk_set_full(struct play_disk *d, bool full)
{
    d->full = full;
}

void play_disk_set_slow(struct play_disk *d, uint64_t most_ns)
{
    d->slow_ns = most_ns;
}

/* A slow one is as fast as any most of the time. */
uint64_t play_disk_time(struct play_disk *d)
{
    const bool slow = d->slow_ns > 0 && base_prng_below(&d->random, 4) == 0;
    return base_prng_below(&d->random, slow ? d->slow_ns : USUAL_MS * BASE_NS_PER_MS) + 1;
}

void play_disk_fail_after(struct play_disk *d, uint32_t changes)
{
    d->fails = true;
    d->changes_left = changes;
}

uint32_t play_disk_moment(struct play_disk *d)
{
    return (uint32_t)base_prng_below(&d->random, CHANGES_MOST);
}

void play_disk_recover(struct play_disk *d)
{
    d->fails = false;
    d->changes_left = 0;
}

/* Sectors of it get there, each or not. */
static void tear_change(struct play_disk *d, struct bytes *b, const struct change *c)
{
    for (uint64_t from = 0; from < c->n;) {
        uint64_t n = SECTOR - (c->at + from) % SECTOR;
        n = n < c->n - from ? n : c->n - from;
        if (base_prng_below(&d->random, 2) == 0)
            put_bytes(b, c->at + from, c->bytes + from, n);
        from += n;
    }
}

/* Any of its changes have reached the platter, and some in part; later ones over earlier ones. It
 * may be as long as they made it, with zeros where they did not get to. */
static void settle_file(struct play_disk *d, struct play_file *f)
{
    const uint64_t how = base_prng_below(&d->random, 4); /* 0: none of them */
    if (how == 1 && f->first != NULL && f->seen.length > f->saved.length)
        set_length(&f->saved, f->seen.length);
    for (const struct change *c = f->first; c != NULL && how > 0; c = c->next) {
        const uint64_t happens = base_prng_below(&d->random, 8);
        if (happens < 4)
            carry_out(&f->saved, c);
        else if (happens == 4 && !c->cuts)
            tear_change(d, &f->saved, c);
    }
    forget_changes(f);
    set_length(&f->seen, f->saved.length);
    put_bytes(&f->seen, 0, f->saved.at, f->saved.length);
}

void play_disk_power_cut(struct play_disk *d)
{
    uint32_t count = 0;
    for (const struct renaming *r = d->first; r != NULL; r = r->next)
        count++;
    settle_names(d, (uint32_t)base_prng_below(&d->random, count + 1));
    forget_names(&d->seen);
    for (const struct name *n = d->saved; n != NULL; n = n->next) {
        settle_file(d, n->file);
        set_name(&d->seen, n->text, n->file);
    }
}
