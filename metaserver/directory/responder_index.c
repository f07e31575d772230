/* SPDX-License-Identifier: Apache-2.0 */
#include "responder_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct key {
    const char *id;
    uint16_t pool;
    uint8_t lane;
};

static int compare_owners(const void *user, uint32_t item, const void *key)
{
    const struct responder_owner *owner = (const struct responder_owner *)user + item;
    const struct key *k = key;
    int order = strcmp(owner->id, k->id);
    if (order != 0)
        return order;
    return owner->pool != k->pool ? (int)owner->pool - (int)k->pool
                                  : (int)owner->lane - (int)k->lane;
}

int meta_responder_index_init(struct responder_index *x, uint32_t capacity)
{
    x->owner = calloc(capacity, sizeof *x->owner);
    x->index = (struct meta_index){.items = calloc(capacity, sizeof *x->index.items),
                                   .compare = compare_owners,
                                   .user = x->owner};
    return x->owner != NULL && x->index.items != NULL ? 0 : -ENOMEM;
}

void meta_responder_index_fini(struct responder_index *x)
{
    free(x->owner);
    free(x->index.items);
}

void meta_responder_index_clear(struct responder_index *x)
{
    x->index.count = 0;
}

uint32_t meta_responder_index_find(const struct responder_index *x, const char *id, uint16_t pool,
                                   uint8_t lane)
{
    bool found;
    const uint32_t at = meta_index_find(&x->index, &(struct key){id, pool, lane}, &found);
    return found ? at : RESPONDER_NONE;
}

bool meta_responder_index_has(const struct responder_index *x, const char *id, uint16_t pool,
                              uint8_t lane)
{
    return meta_responder_index_find(x, id, pool, lane) != RESPONDER_NONE;
}

uint32_t meta_responder_index_put(struct responder_index *x, const char *id, uint16_t pool,
                                  uint8_t lane, uint32_t number)
{
    bool found;
    uint32_t at = meta_index_find(&x->index, &(struct key){id, pool, lane}, &found);
    uint32_t former = found ? x->index.items[at] : RESPONDER_NONE;
    struct responder_owner *owner = &x->owner[number];
    *owner = (struct responder_owner){.pool = pool, .lane = lane};
    memcpy(owner->id, id, strnlen(id, sizeof owner->id - 1));
    if (found)
        x->index.items[at] = number;
    else
        meta_index_insert(&x->index, at, number);
    return former;
}

uint32_t meta_responder_index_place(const struct responder_index *x, const char *id)
{
    bool found;
    return meta_index_find(&x->index, &(struct key){id, 0, 0}, &found);
}

const struct responder_owner *meta_responder_index_at(const struct responder_index *x,
                                                      uint32_t place)
{
    return place < x->index.count ? &x->owner[x->index.items[place]] : NULL;
}

uint32_t meta_responder_index_take(struct responder_index *x, uint32_t place)
{
    uint32_t number = x->index.items[place];
    meta_index_remove(&x->index, place);
    return number;
}
