/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator inside an arena: first fit over granules of 64 bytes.
 *
 * It only computes offsets: what it knows is kept outside the arena, where a peer with write access
 * cannot damage it. One thread at a time. Invariant: no two free blocks touch. */
#ifndef LIBCLIENT_HEAP_H
#define LIBCLIENT_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum { CLIENT_HEAP_GRANULE = 64 };

struct client_heap_granule;
struct client_heap {
    struct client_heap_granule *granules; /* one each, owned; meaning only at a block's ends */
    uint32_t count;
    uint32_t first_free; /* granule number + 1; 0: none */
};

/* For bytes (64 .. 64 GiB - 64, rounded down to granules). 0, -EINVAL or -ENOMEM. */
int client_heap_init(struct client_heap *h, uint64_t bytes);
void client_heap_fini(struct client_heap *h);
/* The offset of size (1 or more) bytes, a multiple of 64; or -ENOMEM. */
int64_t client_heap_alloc(struct client_heap *h, uint64_t size);
/* 0, or -EINVAL: no block that is in use begins there. */
int client_heap_free(struct client_heap *h, uint64_t offset);

#endif
