/* SPDX-License-Identifier: Apache-2.0 */
/* Room for one more endpoint in the table of those that are known. Private to agent/lane, and the
 * lane thread's.
 *
 * Each is counted to a tenant whose workers use it. When the table is full a tenant that wants
 * another one gives up one of its own, or takes one of a tenant that has more: so none that
 * connects to many endpoints has those looked up again that others use. A few are looked at each
 * time, from behind the one that went last; if none of them could go, from where the last look
 * ended. A pass looks a few times, where several tenants are active once for each. */
#ifndef LANE_PEER_ROOM_H
#define LANE_PEER_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct peer;

enum { PEER_LOOKS = 64 };

/* What a pass has of looks for room. */
struct peer_room_pass {
    uint64_t pass; /* in which there were so many */
    uint32_t looks;
};

struct peer_room {
    uint32_t *free, frees;            /* slots that are nobody's */
    uint32_t *of;                     /* how many endpoints each tenant has */
    uint32_t hand;                    /* the slot that is looked at next */
    struct peer_room_pass all, *each; /* of all tenants, and of each */
};

/* 0 or -ENOMEM; freed in either case. */
int lane_peer_room_init(struct lane *l);
void lane_peer_room_free(struct lane *l);
/* A slot that is free, for an endpoint that a worker of this tenant (its place + 1; 0: nobody's)
 * wants; -EAGAIN: none yet, and another look may find one; -EINPROGRESS: this pass has no look left
 * for it. It is free until it is taken. */
int64_t lane_peer_room_find(struct lane *l, uint32_t tenant);
/* That slot has an endpoint now, of that tenant. */
void lane_peer_room_take(struct lane *l, uint32_t slot, uint32_t tenant);
/* The endpoint is known no longer: workers find it no more either. */
void lane_peer_room_leave(struct lane *l, uint32_t slot);
/* A worker of that tenant (its place + 1) uses the endpoint: it is this one's, if it has fewer. */
void lane_peer_room_use(struct lane *l, struct peer *p, uint32_t tenant);
/* That tenant is gone, and its place may be another's: its endpoints are nobody's. */
void lane_peer_room_forget(struct lane *l, uint32_t tenant);

#endif
