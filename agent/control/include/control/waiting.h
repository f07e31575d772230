/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the attach sockets that have no session: how many there may be of whom, and which
 * of them makes room.
 *
 * Each belongs to a share: a tenant's own socket is one; at the socket for all each tenant whose
 * uids come there has one; and all uids that no tenant has are in one together, half as large, of
 * which each uid may have half. A share that is full gives up its oldest connection, also one whose
 * wrong token has had no answer yet. So no tenant, and no number of uids, keeps another tenant out,
 * nor who guesses tokens those who have them. When there are too many of all shares together, the
 * largest share gives up its oldest.
 *
 * No I/O. One thread. A waiter is its owner's, and linked as long as it is in. */
#ifndef CONTROL_WAITING_H
#define CONTROL_WAITING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/tenants.h"

enum {
    WAITING_SHARE_STRANGERS, /* uids that no tenant has */
    WAITING_SHARE_TENANTS,   /* at the socket for all: the first tenant's */
    WAITING_SHARE_SOCKETS = WAITING_SHARE_TENANTS + AGENT_TENANT_SLOTS, /* of their own */
    WAITING_SHARES = WAITING_SHARE_SOCKETS + AGENT_TENANTS
};

/* Of an agent with max_sessions: a tenant's share, and all shares together. */
#define WAITING_OF(max_sessions)     ((uint32_t)(max_sessions) / 4 + 16)
#define WAITING_ALL_OF(max_sessions) ((uint32_t)(max_sessions) + 64)

struct waiter {
    struct waiter *older, *newer;
    uint32_t share;
    uid_t uid;
    bool in;
    bool stays; /* it cannot be given up: it is being closed */
};

struct waiting {
    struct waiter *oldest, *newest;
    uint32_t count, of[WAITING_SHARES];
};

/* Takes w in, whose share and uid are set. 0, and *goes is the one that its owner has to end, or
 * NULL; that one is still in. -EAGAIN: there is no room, and w is not in. */
int agent_waiting_enter(struct waiting *r, uint64_t max_sessions, struct waiter *w,
                        struct waiter **goes);

/* Takes w in whether there is room or not; one that is in stays where it is. */
void agent_waiting_add(struct waiting *r, struct waiter *w);

/* Nothing, if it is not in. */
void agent_waiting_leave(struct waiting *r, struct waiter *w);

#endif
