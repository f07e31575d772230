/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "ledger.h"

enum { TEXT = 96, BEGUN = 16, BUCKETS = 256 };

struct entry {
    struct entry *next;
    char host[TEXT], what[TEXT];
    uint32_t number;  /* 0: none */
    uint32_t leaving; /* that are asked for it to be forgotten */
    bool done;        /* a document was */
    uint32_t crc;
    uint32_t begun[BEGUN], begins; /* since then; more than that: any */
};

static struct entry *entries[BUCKETS];

void play_kept_init(void)
{
    memset(entries, 0, sizeof entries);
}

static void drop_entries(const char *host)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry **at = &entries[i], *e; (e = *at) != NULL;) {
            if (host != NULL && strcmp(e->host, host) != 0) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            free(e);
        }
}

void play_kept_fini(void)
{
    drop_entries(NULL);
}

void play_kept_forget(const char *host)
{
    drop_entries(host);
}

static struct entry *find_entry(const char *host, const char *what)
{
    const uint32_t hash = base_crc32c(base_crc32c(0, host, strlen(host)), what, strlen(what));
    struct entry **bucket = &entries[hash % BUCKETS];
    for (struct entry *e = *bucket; e != NULL; e = e->next)
        if (strcmp(e->host, host) == 0 && strcmp(e->what, what) == 0)
            return e;
    struct entry *e = calloc(1, sizeof *e);
    BASE_ASSERT(e != NULL);
    (void)snprintf(e->host, sizeof e->host, "%s", host);
    (void)snprintf(e->what, sizeof e->what, "%s", what);
    e->next = *bucket;
    return *bucket = e;
}

/* ---- documents */

void play_kept_begin(const char *host, const char *name, const void *bytes, size_t n)
{
    struct entry *e = find_entry(host, name);
    if (e->begins < BEGUN)
        e->begun[e->begins] = base_crc32c(0, bytes, n);
    e->begins++;
}

void play_kept_done(const char *host, const char *name, const void *bytes, size_t n)
{
    struct entry *e = find_entry(host, name);
    e->done = true;
    e->crc = base_crc32c(0, bytes, n);
    e->begins = 0;
}

static bool may_be(const struct entry *e, uint32_t crc)
{
    bool is = e->done && e->crc == crc;
    for (uint32_t i = 0; i < e->begins && i < BEGUN; i++)
        is |= e->begun[i] == crc;
    return is || e->begins > BEGUN;
}

void play_kept_found(const char *host, const char *name, const void *bytes, size_t n)
{
    const struct entry *e = find_entry(host, name);
    if (bytes == NULL ? e->done : !may_be(e, base_crc32c(0, bytes, n)))
        play_violation(host, "of \"%s\" it does not have what was kept: %zu bytes", name, n);
}

/* ---- numbers */

void play_kept_number(const char *host, const char *what, uint32_t number)
{
    struct entry *e = find_entry(host, what);
    if (number < e->number)
        play_violation(host, "it keeps %u of %s, and has kept %u", number, what, e->number);
    e->number = e->leaving == 0 ? number : 0;
}

void play_kept_number_found(const char *host, const char *what, uint32_t number)
{
    const struct entry *e = find_entry(host, what);
    if (number < e->number)
        play_violation(host, "it does not have what was kept: of %s %u, and it is %u", what,
                       e->number, number);
}

void play_kept_compare(const char *host, uint32_t (*number_of)(void *user, const char *what),
                       void *user)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *e = entries[i]; e != NULL; e = e->next) {
            if (strcmp(e->host, host) != 0)
                continue;
            e->leaving = 0;
            if (e->number != 0)
                play_kept_number_found(host, e->what, number_of(user, e->what));
        }
}

uint32_t play_kept_last(const char *host, const char *what)
{
    return find_entry(host, what)->number;
}

void play_kept_leaving(const char *host, const char *what)
{
    struct entry *e = find_entry(host, what);
    e->number = 0;
    e->leaving++;
}

void play_kept_left(const char *host, const char *what, bool gone)
{
    struct entry *e = find_entry(host, what);
    if (gone)
        e->number = 0;
    if (e->leaving > 0) /* else the process that was asked is not this one */
        e->leaving--;
}
