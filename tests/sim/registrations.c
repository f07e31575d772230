/* SPDX-License-Identifier: Apache-2.0 */
#include "registrations.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "events.h"

/* A life of a node, in the store from one moment to another. */
struct life {
    struct life *next;
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation;
    uint64_t from_ns, until_ns; /* PLAY_NEVER: it is there */
    bool seen;                  /* at this look */
};

static struct life *lives; /* the last one first */

void play_registrations_begin(void)
{
    lives = NULL;
}

void play_registrations_end(void)
{
    for (struct life *l = lives, *next; l != NULL; l = next) {
        next = l->next;
        free(l);
    }
    lives = NULL;
}

static int look_at_node(void *user, const struct meta_store_node *n)
{
    struct life *l = lives;
    (void)user;
    if (n->expired)
        return 0;
    while (l != NULL && (l->until_ns != PLAY_NEVER || l->incarnation != n->incarnation ||
                         strcmp(l->id, n->id) != 0))
        l = l->next;
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        BASE_ASSERT(l != NULL);
        *l = (struct life){.next = lives,
                           .incarnation = n->incarnation,
                           .from_ns = play_now_ns(),
                           .until_ns = PLAY_NEVER};
        memcpy(l->id, n->id, sizeof l->id);
        lives = l;
    }
    l->seen = true;
    return 0;
}

void play_registrations_look(struct meta_store *store)
{
    struct base_errbuf err;
    for (struct life *l = lives; l != NULL; l = l->next)
        l->seen = false;
    const int status = meta_store_load(store, look_at_node, NULL, &err);
    BASE_ASSERT(status == 0);
    for (struct life *l = lives; l != NULL; l = l->next)
        if (!l->seen && l->until_ns == PLAY_NEVER)
            l->until_ns = play_now_ns();
}

bool play_registrations_was(const char *id, uint32_t incarnation, uint64_t from_ns)
{
    for (const struct life *l = lives; l != NULL; l = l->next)
        if (l->incarnation >= incarnation && l->until_ns >= from_ns && strcmp(l->id, id) == 0)
            return true;
    return false;
}

bool play_registrations_lives(const char *id, uint32_t incarnation)
{
    return play_registrations_gone_ns(id, incarnation) == 0;
}

bool play_registrations_lived(const char *id, uint32_t incarnation, uint64_t since_ns)
{
    for (const struct life *l = lives; l != NULL; l = l->next)
        if (l->until_ns == PLAY_NEVER && l->incarnation <= incarnation && strcmp(l->id, id) == 0)
            return l->from_ns <= since_ns;
    return false;
}

/* A former life of it is less, too, and over. */
uint64_t play_registrations_gone_ns(const char *id, uint32_t incarnation)
{
    uint64_t last_ns = 1;
    for (const struct life *l = lives; l != NULL; l = l->next) {
        if (l->incarnation > incarnation || strcmp(l->id, id) != 0)
            continue;
        if (l->until_ns == PLAY_NEVER)
            return 0;
        if (l->until_ns > last_ns)
            last_ns = l->until_ns;
    }
    return last_ns;
}
