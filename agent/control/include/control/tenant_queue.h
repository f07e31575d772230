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
#ifndef CONTROL_TENANT_QUEUE_H
#define CONTROL_TENANT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/tenants.h"

enum {
    TENANT_QUEUE_OWNERS = 1 + AGENT_TENANT_SLOTS
}; /* the agent is 0, tenants are by index + 1 */

struct tenant_queue_item {
    struct tenant_queue_item *next, *before;
    uint32_t owner;
    bool soon, waits;
};

struct tenant_queue_owner {
    struct tenant_queue_item *first, *last;
    struct tenant_queue_item *last_soon; /* of those at the list's beginning; NULL: there is none */
    uint32_t waiting, running;
};

struct tenant_queue {
    struct tenant_queue_owner of[TENANT_QUEUE_OWNERS];
    uint32_t waiting;         /* of all */
    uint32_t tenants_running; /* of all tenants */
    uint32_t last;            /* whose turn was the last */
};

/* How many may have begun and not ended. */
struct tenant_queue_bound {
    uint32_t of_agent, of_tenant;
    uint32_t of_tenants; /* of all together */
};

/* Whether that owner may have a turn. */
typedef bool (*tenant_queue_may)(const void *user, uint32_t owner);

/* The item waits nowhere. */
void agent_tenant_queue_join(struct tenant_queue *t, struct tenant_queue_item *item, uint32_t owner,
                             bool soon);
/* It waits here, and has had no turn. */
void agent_tenant_queue_leave(struct tenant_queue *t, struct tenant_queue_item *item);
/* The first item of the owner whose turn it is of those that may; NULL: nobody may, or waits. It
 * waits on. */
struct tenant_queue_item *agent_tenant_queue_next(const struct tenant_queue *t,
                                                  tenant_queue_may may, const void *user);
/* It waits here: it has its turn, and does not wait any more. */
void agent_tenant_queue_take(struct tenant_queue *t, struct tenant_queue_item *item);

/* The next one within the bound has its turn, and runs from now on; NULL: none may. */
struct tenant_queue_item *agent_tenant_queue_begin(struct tenant_queue *t,
                                                   const struct tenant_queue_bound *bound);
/* Whether one may have its turn within the bound. */
bool agent_tenant_queue_may_begin(const struct tenant_queue *t,
                                  const struct tenant_queue_bound *bound);
/* One of the owner's that had begun is over. */
void agent_tenant_queue_end(struct tenant_queue *t, uint32_t owner);

/* What an item, not NULL, is that member of. */
#define TENANT_QUEUE_IN(type, member, item)                                                        \
    ((type *)(void *)((char *)(item)-offsetof(type, member)))

#endif
