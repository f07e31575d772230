/* SPDX-License-Identifier: Apache-2.0 */
/* Which arena is in whose hands: bookkeeping without memory, fabric or I/O. One thread.
 *
 * Invariants: an arena that one tenant had never reaches another one; it is zeroed only after its
 * registration is gone, and registered again only after it was zeroed. */
#ifndef AGENTD_ARENA_BOOK_H
#define AGENTD_ARENA_BOOK_H

#include <stdint.h>

enum agentd_arena_state {
    ARENA_NONE,        /* the slot is free */
    ARENA_MAKING,      /* allocated, being registered for the first time */
    ARENA_AHEAD,       /* never had a tenant */
    ARENA_HELD,        /* of a session */
    ARENA_WITHDRAWING, /* being deregistered */
    ARENA_ZEROING,     /* no registration: to be zeroed */
    ARENA_REGISTERING, /* zeroed, being registered again */
    ARENA_KEPT,        /* in its tenant's list */
    ARENA_CLOSING,     /* no registration: to be freed */
    ARENA_STATES
};

#define AGENTD_NO_TENANT UINT32_MAX

struct agentd_arena_entry {
    uint8_t state; /* enum agentd_arena_state */
    uint32_t tenant;
    uint64_t bytes;
};

struct agentd_arena_book {
    struct agentd_arena_entry *entry;
    uint32_t slots, hand;
    uint32_t usual_kept; /* of one tenant, at most */
    uint64_t usual_bytes;
    uint32_t count[ARENA_STATES];
};

/* 0 or -ENOMEM. Zeroed or new memory. */
int agentd_arena_book_init(struct agentd_arena_book *book, uint32_t slots, uint64_t usual_bytes,
                           uint32_t usual_kept);
void agentd_arena_book_fini(struct agentd_arena_book *book);

/* A slot for a new arena (MAKING) for a tenant (an index) or for the ones ahead
 * (AGENTD_NO_TENANT). Its index, or -ENOSPC. */
int64_t agentd_arena_begin(struct agentd_arena_book *book, uint64_t bytes, uint32_t tenant);
/* It was registered: MAKING -> AHEAD, or HELD if it was made for a tenant; REGISTERING -> KEPT. */
enum agentd_arena_state agentd_arena_registered(struct agentd_arena_book *book, uint32_t index);
/* It could not be registered: -> CLOSING. */
void agentd_arena_failed(struct agentd_arena_book *book, uint32_t index);
/* One of that size for the tenant: its own first, else one that never had a tenant. HELD; its
 * index, or -ENOENT. */
int64_t agentd_arena_take(struct agentd_arena_book *book, uint64_t bytes, uint32_t tenant);
/* Its session is over (or nobody wants it): HELD, AHEAD, KEPT -> WITHDRAWING. */
void agentd_arena_release(struct agentd_arena_book *book, uint32_t index);
/* Its registration is gone: ZEROING if its tenant may keep it, else CLOSING. */
enum agentd_arena_state agentd_arena_withdrawn(struct agentd_arena_book *book, uint32_t index);
/* ZEROING -> REGISTERING. */
void agentd_arena_zeroed(struct agentd_arena_book *book, uint32_t index);
/* CLOSING -> NONE. */
void agentd_arena_closed(struct agentd_arena_book *book, uint32_t index);

#endif
