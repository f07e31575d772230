/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of those that want something of what all share: the agent itself, and each tenant. Who has
 * a thousand waiting keeps nobody else's first one waiting for more than a turn.
 *
 * What waits is linked into its owner's list, in the order of coming; what has to be done soon
 * stands before what has not. Whether an owner may have a turn now its user says. What has begun is
 * counted until it ends.
 *
 * No I/O. One thread at a time. Items are their owner's memory and stay where they are while they
 * wait. Zeroed is empty. Joining, leaving and ending are O(1); the next one is found in one look at
 * all owners. */
#ifndef CONTROL_TURNS_H
#define CONTROL_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/tenants.h"

enum { TURNS_OWNERS = 1 + AGENTD_TENANT_SLOTS }; /* the agent is 0, tenants are by index + 1 */

struct turns_item {
    struct turns_item *next, *before;
    uint32_t owner;
    bool soon, waits;
};

struct turns_owner {
    struct turns_item *first, *last;
    struct turns_item *last_soon; /* of those at the list's beginning; NULL: there is none */
    uint32_t waiting, running;
};

struct turns {
    struct turns_owner of[TURNS_OWNERS];
    uint32_t waiting;         /* of all */
    uint32_t tenants_running; /* of all tenants */
    uint32_t last;            /* whose turn was the last */
};

/* How many may have begun and not ended. */
struct turns_bound {
    uint32_t of_agent, of_tenant;
    uint32_t of_tenants; /* of all together */
};

/* Whether that owner may have a turn. */
typedef bool (*turns_may)(const void *user, uint32_t owner);

/* The item waits nowhere. */
void turns_join(struct turns *t, struct turns_item *item, uint32_t owner, bool soon);
/* It waits here, and has had no turn. */
void turns_leave(struct turns *t, struct turns_item *item);
/* The first item of the owner whose turn it is of those that may; NULL: nobody may, or waits. It
 * waits on. */
struct turns_item *turns_next(const struct turns *t, turns_may may, const void *user);
/* It waits here: it has its turn, and does not wait any more. */
void turns_take(struct turns *t, struct turns_item *item);

/* The next one within the bound has its turn, and runs from now on; NULL: none may. */
struct turns_item *turns_begin(struct turns *t, const struct turns_bound *bound);
/* One of the owner's that had begun is over. */
void turns_end(struct turns *t, uint32_t owner);

/* What an item, not NULL, is that member of. */
#define TURNS_IN(type, member, item) ((type *)(void *)((char *)(item)-offsetof(type, member)))

#endif
