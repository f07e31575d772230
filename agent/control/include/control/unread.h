/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that workers were sent and have not read: how many there may be of whom.
 *
 * The kernel counts what processes of one uid have sent and nobody has read, and lets it send no
 * more beyond RLIMIT_NOFILE (ETOOMANYREFS), whoever of its peers it is that does not read. So the
 * agent counts along, by tenant, until a worker has read or closed its end, be its session over or
 * not. Half of what may be unread is reserved, an equal part for each tenant that there is and for
 * one that is to come; the other half is whose comes first.
 *
 * No I/O. One thread. An item is its owner's, and linked as long as it has some. */
#ifndef CONTROL_UNREAD_H
#define CONTROL_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "control/tenants.h"

/* The last one is all tenants that are no more. */
enum { UNREAD_OWNERS = AGENT_TENANT_SLOTS + 1 };

/* Of one connection. */
struct unread_item {
    struct unread_item *older, *newer; /* of its tenant's */
    uint32_t tenant;                   /* index + 1 */
    uint32_t count;                    /* 0: it is not linked */
};

struct unread {
    uint32_t wanted; /* that may be unread at a time, if the kernel lets them */
    uint32_t most;   /* it does so many of them */
    uint32_t all;    /* that are, of all tenants together */
    struct unread_tenant {
        struct unread_item *oldest, *newest;
        uint32_t count;
        uint32_t items;
    } of[UNREAD_OWNERS];
    /* attach_unread.c */
    bool lacks;           /* `most` is less than wanted, and was said to be */
    uint64_t measured_ns; /* when `most` was */
    uint64_t refused;     /* workers */
    struct base_log_limit limit;
};

/* Whether a worker of that tenant (its index + 1) may be sent so many more. live[i]: there is a
 * tenant of that index. */
bool agent_unread_allows(const struct unread *u, const bool live[AGENT_TENANT_SLOTS],
                         uint32_t tenant, uint32_t count);
/* Likewise, if the kernel let us send as many as are wanted: what others than these tenants'
 * workers have not read is not in the way. */
bool agent_unread_allows_but_kernel(const struct unread *u, const bool live[AGENT_TENANT_SLOTS],
                                    uint32_t tenant, uint32_t count);
/* That worker was sent so many. As many as an attach takes are counted at least, since a connection
 * that does not read may keep a descriptor of the agent's too. */
void agent_unread_add(struct unread *u, struct unread_item *item, uint32_t tenant, uint32_t count);
/* It has read them. Nothing, if it has none. */
void agent_unread_forget(struct unread *u, struct unread_item *item);
/* What that tenant's workers have not read is nobody's: the number may be another's. */
void agent_unread_end_tenant(struct unread *u, uint32_t tenant);
/* The one of the tenant's that has not been looked at for longest. NULL: it has none. */
struct unread_item *agent_unread_next(struct unread *u, uint32_t tenant);

#endif
