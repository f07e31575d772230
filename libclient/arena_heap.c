/* SPDX-License-Identifier: Apache-2.0 */
#include "arena_heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_GRANULES = (1 << 30) - 1 };

/* Of a block, its first granule (HEAD) and its last one say how long it is and whether it is in
 * use; if it has but one, that is both. All others are zero. Links are numbers + 1. */
#define HEAD      (1u << 31)
#define USED      (1u << 30)
#define SIZE_MASK (USED - 1)

struct client_heap_granule {
    uint32_t tag;
    uint32_t next, previous; /* of free blocks, at the first granule */
};

/* Nobody asks where the last block of all ends: a new heap touches one page and not two. */
static void mark_end(struct client_heap *h, uint32_t at, uint32_t size, uint32_t tag)
{
    if (at + size < h->count)
        h->granules[at + size - 1].tag = tag;
}

static void mark_block(struct client_heap *h, uint32_t at, uint32_t size, uint32_t used)
{
    mark_end(h, at, size, size | used);
    h->granules[at].tag = size | used | HEAD;
}

static void unmark_block(struct client_heap *h, uint32_t at)
{
    mark_end(h, at, h->granules[at].tag & SIZE_MASK, 0);
    h->granules[at].tag = 0;
}

static void push_free(struct client_heap *h, uint32_t at, uint32_t size)
{
    struct client_heap_granule *g = &h->granules[at];
    mark_block(h, at, size, 0);
    g->previous = 0;
    g->next = h->first_free;
    if (g->next != 0)
        h->granules[g->next - 1].previous = at + 1;
    h->first_free = at + 1;
}

/* Returns its size. */
static uint32_t take_free(struct client_heap *h, uint32_t at)
{
    struct client_heap_granule *g = &h->granules[at];
    uint32_t size = g->tag & SIZE_MASK;
    if (g->previous != 0)
        h->granules[g->previous - 1].next = g->next;
    else
        h->first_free = g->next;
    if (g->next != 0)
        h->granules[g->next - 1].previous = g->previous;
    unmark_block(h, at);
    return size;
}

int client_heap_init(struct client_heap *h, uint64_t bytes)
{
    uint64_t count = bytes / CLIENT_HEAP_GRANULE;
    if (count == 0 || count > MAX_GRANULES)
        return -EINVAL;
    struct client_heap_granule *granules = calloc(count, sizeof *granules);
    if (granules == NULL)
        return -ENOMEM;
    *h = (struct client_heap){.granules = granules, .count = (uint32_t)count};
    push_free(h, 0, h->count);
    return 0;
}

void client_heap_fini(struct client_heap *h)
{
    free(h->granules);
    *h = (struct client_heap){0};
}

int64_t client_heap_alloc(struct client_heap *h, uint64_t size)
{
    if (size == 0 || size > (uint64_t)h->count * CLIENT_HEAP_GRANULE)
        return -ENOMEM;
    uint32_t wanted = (uint32_t)((size + CLIENT_HEAP_GRANULE - 1) / CLIENT_HEAP_GRANULE);
    for (uint32_t link = h->first_free; link != 0; link = h->granules[link - 1].next) {
        uint32_t at = link - 1;
        if ((h->granules[at].tag & SIZE_MASK) < wanted)
            continue;
        uint32_t rest = take_free(h, at) - wanted;
        if (rest > 0)
            push_free(h, at + wanted, rest);
        mark_block(h, at, wanted, USED);
        return (int64_t)at * CLIENT_HEAP_GRANULE;
    }
    return -ENOMEM;
}

int client_heap_free(struct client_heap *h, uint64_t offset)
{
    uint64_t granule = offset / CLIENT_HEAP_GRANULE;
    if (offset % CLIENT_HEAP_GRANULE != 0 || granule >= h->count)
        return -EINVAL;
    uint32_t at = (uint32_t)granule, size = h->granules[at].tag & SIZE_MASK;
    if ((h->granules[at].tag & (HEAD | USED)) != (HEAD | USED))
        return -EINVAL;
    unmark_block(h, at);
    if (at + size < h->count && (h->granules[at + size].tag & USED) == 0)
        size += take_free(h, at + size);
    if (at > 0 && (h->granules[at - 1].tag & USED) == 0) {
        at -= h->granules[at - 1].tag & SIZE_MASK;
        size += take_free(h, at);
    }
    push_free(h, at, size);
    return 0;
}
