/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "ledger.h"

struct life {
    struct life *next;
    char where[PLAY_NAME];
    uint8_t gid[16];
    uint16_t pool;
    uint32_t incarnation;
    bool left, forgotten, lost; /* since it was shown last */
};

enum { BUCKETS = 256 };
static struct life *lives[BUCKETS];

void play_lives_init(void)
{
    memset(lives, 0, sizeof lives);
}

void play_lives_fini(void)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct life *l = lives[i], *next; l != NULL; l = next) {
            next = l->next;
            free(l);
        }
    play_lives_init();
}

static struct life *find_life(const char *where, const uint8_t gid[16], uint16_t pool)
{
    struct life **bucket = &lives[(gid[15] + 31u * gid[14] + pool) % BUCKETS];
    for (struct life *l = *bucket; l != NULL; l = l->next)
        if (l->pool == pool && memcmp(l->gid, gid, 16) == 0 && strcmp(l->where, where) == 0)
            return l;
    struct life *l = calloc(1, sizeof *l);
    BASE_ASSERT(l != NULL);
    (void)snprintf(l->where, sizeof l->where, "%s", where);
    memcpy(l->gid, gid, 16);
    l->pool = pool;
    l->next = *bucket;
    return *bucket = l;
}

/* where NULL: anywhere. */
static bool is_of(const struct life *l, const char *where, const uint8_t gid[16])
{
    return memcmp(l->gid, gid, 16) == 0 && (where == NULL || strcmp(l->where, where) == 0);
}

/* With all of its pools, also those that it has no more. */
void play_lives_left(const char *where, const uint8_t gid[16], bool left)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct life *l = lives[i]; l != NULL; l = l->next)
            if (is_of(l, where, gid))
                l->left = left;
}

/* The metaserver knows the node by that. One that has begun anew may have less in its other pools
 * than they have shown. */
static void note_known(const char *where, const uint8_t gid[16], uint32_t incarnation, bool anew)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct life *l = lives[i]; l != NULL; l = l->next) {
            if (!is_of(l, where, gid))
                continue;
            l->left = false;
            if (anew && incarnation < l->incarnation)
                l->incarnation = incarnation;
        }
}

void play_lives_lost(const uint8_t gid[16])
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct life *l = lives[i]; l != NULL; l = l->next)
            l->lost |= memcmp(l->gid, gid, 16) == 0;
}

void play_lives_forgotten(const char *where)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct life *l = lives[i]; l != NULL; l = l->next)
            l->forgotten |= strcmp(l->where, where) == 0;
}

void play_lives_shown(const char *where, const uint8_t gid[16], uint16_t pool, uint32_t incarnation)
{
    struct life *l = find_life(where, gid, pool);
    char text[BASE_GID_TEXT];
    const bool less = incarnation < l->incarnation;
    const bool anew = less && (l->left || l->forgotten) && l->lost;
    if (less && !anew)
        play_violation(where, "the table shows incarnation %u of %s, pool %u, and has shown %u",
                       incarnation, base_gid_format(gid, text), pool, l->incarnation);
    l->lost &= incarnation == l->incarnation; /* what was shown before it was lost is shown on */
    l->incarnation = incarnation;
    l->forgotten = false;
    note_known(where, gid, incarnation, anew);
}
