/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/arena_book.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const struct {
    uint8_t from, to;
    const char *name;
} moves[] = {
    {ARENA_NONE, ARENA_MAKING, "begin"},
    {ARENA_MAKING, ARENA_AHEAD, "made"},
    {ARENA_MAKING, ARENA_HELD, "made for a tenant"},
    {ARENA_MAKING, ARENA_CLOSING, "not made"},
    {ARENA_AHEAD, ARENA_HELD, "first use"},
    {ARENA_KEPT, ARENA_HELD, "next use"},
    {ARENA_HELD, ARENA_WITHDRAWING, "over"},
    {ARENA_AHEAD, ARENA_WITHDRAWING, "not wanted"},
    {ARENA_KEPT, ARENA_WITHDRAWING, "not wanted"},
    {ARENA_WITHDRAWING, ARENA_ZEROING, "withdrawn"},
    {ARENA_WITHDRAWING, ARENA_CLOSING, "withdrawn for good"},
    {ARENA_ZEROING, ARENA_REGISTERING, "zeroed"},
    {ARENA_ZEROING, ARENA_CLOSING, "not zeroed"},
    {ARENA_REGISTERING, ARENA_KEPT, "registered again"},
    {ARENA_REGISTERING, ARENA_CLOSING, "not registered again"},
    {ARENA_CLOSING, ARENA_NONE, "closed"},
};

static void move(struct agentd_arena_book *book, uint32_t index, enum agentd_arena_state to)
{
    struct agentd_arena_entry *e = &book->entry[index];
    bool allowed = false;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        allowed |= moves[i].from == e->state && moves[i].to == (uint8_t)to;
    KEDGE_ASSERT(allowed);
    book->count[e->state]--;
    book->count[to]++;
    e->state = (uint8_t)to;
}

int agentd_arena_book_init(struct agentd_arena_book *book, uint32_t slots, uint64_t usual_bytes,
                           uint32_t usual_kept)
{
    memset(book, 0, sizeof *book);
    book->entry = calloc(slots, sizeof book->entry[0]);
    if (book->entry == NULL)
        return -ENOMEM;
    book->slots = slots;
    book->usual_bytes = usual_bytes;
    book->usual_kept = usual_kept;
    book->count[ARENA_NONE] = slots;
    return 0;
}

void agentd_arena_book_fini(struct agentd_arena_book *book)
{
    free(book->entry);
    memset(book, 0, sizeof *book);
}

int64_t agentd_arena_begin(struct agentd_arena_book *book, uint64_t bytes, uint32_t tenant)
{
    for (uint32_t i = 0; i < book->slots; i++) {
        uint32_t index = book->hand;
        book->hand = book->hand + 1 == book->slots ? 0 : book->hand + 1;
        if (book->entry[index].state != ARENA_NONE)
            continue;
        move(book, index, ARENA_MAKING);
        book->entry[index].bytes = bytes;
        book->entry[index].tenant = tenant;
        return index;
    }
    return -ENOSPC;
}

enum agentd_arena_state agentd_arena_registered(struct agentd_arena_book *book, uint32_t index)
{
    struct agentd_arena_entry *e = &book->entry[index];
    if (e->state == ARENA_MAKING)
        move(book, index, e->tenant == AGENTD_NO_TENANT ? ARENA_AHEAD : ARENA_HELD);
    else
        move(book, index, ARENA_KEPT);
    return e->state;
}

void agentd_arena_failed(struct agentd_arena_book *book, uint32_t index)
{
    move(book, index, ARENA_CLOSING);
}

static int64_t find(const struct agentd_arena_book *book, enum agentd_arena_state state,
                    uint64_t bytes, uint32_t tenant)
{
    for (uint32_t i = 0; book->count[state] > 0 && i < book->slots; i++) {
        const struct agentd_arena_entry *e = &book->entry[i];
        if (e->state == state && e->bytes == bytes && e->tenant == tenant)
            return i;
    }
    return -ENOENT;
}

int64_t agentd_arena_take(struct agentd_arena_book *book, uint64_t bytes, uint32_t tenant)
{
    KEDGE_ASSERT(tenant != AGENTD_NO_TENANT);
    int64_t index = find(book, ARENA_KEPT, bytes, tenant);
    if (index < 0)
        index = find(book, ARENA_AHEAD, bytes, AGENTD_NO_TENANT);
    if (index < 0)
        return -ENOENT;
    book->entry[index].tenant = tenant;
    move(book, (uint32_t)index, ARENA_HELD);
    return index;
}

void agentd_arena_release(struct agentd_arena_book *book, uint32_t index)
{
    move(book, index, ARENA_WITHDRAWING);
}

enum agentd_arena_state agentd_arena_withdrawn(struct agentd_arena_book *book, uint32_t index)
{
    const struct agentd_arena_entry *e = &book->entry[index];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < book->slots; i++) {
        const struct agentd_arena_entry *o = &book->entry[i];
        kept += o->tenant == e->tenant && (o->state == ARENA_KEPT || o->state == ARENA_ZEROING ||
                                           o->state == ARENA_REGISTERING);
    }
    bool keep =
        e->tenant != AGENTD_NO_TENANT && e->bytes == book->usual_bytes && kept < book->usual_kept;
    move(book, index, keep ? ARENA_ZEROING : ARENA_CLOSING);
    return e->state;
}

void agentd_arena_zeroed(struct agentd_arena_book *book, uint32_t index)
{
    move(book, index, ARENA_REGISTERING);
}

void agentd_arena_closed(struct agentd_arena_book *book, uint32_t index)
{
    move(book, index, ARENA_NONE);
    book->entry[index].tenant = AGENTD_NO_TENANT;
}
