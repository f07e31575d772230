/* SPDX-License-Identifier: Apache-2.0 */
#include "responder_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct key {
    const char *id;
    uint16_t pool;
};

static int compare_owners(const void *user, uint32_t item, const void *key)
{
    const struct reader_owner *owner = (const struct reader_owner *)user + item;
    const struct key *k = key;
    int order = strcmp(owner->id, k->id);
    return order != 0 ? order : (int)owner->pool - (int)k->pool;
}

int reader_index_init(struct reader_index *x, uint32_t capacity)
{
    x->owner = calloc(capacity, sizeof *x->owner);
    x->index = (struct kedge_index){.items = calloc(capacity, sizeof *x->index.items),
                                    .compare = compare_owners,
                                    .user = x->owner};
    return x->owner != NULL && x->index.items != NULL ? 0 : -ENOMEM;
}

void reader_index_fini(struct reader_index *x)
{
    free(x->owner);
    free(x->index.items);
}

void reader_index_clear(struct reader_index *x)
{
    x->index.count = 0;
}

bool reader_index_has(const struct reader_index *x, const char *id, uint16_t pool)
{
    bool found;
    (void)kedge_index_find(&x->index, &(struct key){id, pool}, &found);
    return found;
}

uint32_t reader_index_put(struct reader_index *x, const char *id, uint16_t pool, uint32_t number)
{
    bool found;
    uint32_t at = kedge_index_find(&x->index, &(struct key){id, pool}, &found);
    uint32_t former = found ? x->index.items[at] : READER_NONE;
    struct reader_owner *owner = &x->owner[number];
    *owner = (struct reader_owner){.pool = pool};
    memcpy(owner->id, id, strnlen(id, sizeof owner->id - 1));
    if (found)
        x->index.items[at] = number;
    else
        kedge_index_insert(&x->index, at, number);
    return former;
}

uint32_t reader_index_place(const struct reader_index *x, const char *id)
{
    bool found;
    return kedge_index_find(&x->index, &(struct key){id, 0}, &found);
}

const struct reader_owner *reader_index_at(const struct reader_index *x, uint32_t place)
{
    return place < x->index.count ? &x->owner[x->index.items[place]] : NULL;
}

uint32_t reader_index_take(struct reader_index *x, uint32_t place)
{
    uint32_t number = x->index.items[place];
    kedge_index_remove(&x->index, place);
    return number;
}
