/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: lookups (lookup_table.h) of endpoints and names, and whom they ask. The
 * lane thread's. */
#ifndef LANE_LOOKUP_H
#define LANE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "resolve/lookup_table.h"

struct lane;
struct lane_metaserver;
struct session;

/* What the lane has heard of a metaserver lately. */
struct silence {
    uint64_t until_ns, last_ns; /* it is not asked before; for how long that was */
    uint64_t heard_ns;          /* when it answered last; 0: not yet */
};

/* What one READ of a metaserver's memory takes. */
struct lookup_span {
    uint64_t addr;
    uint32_t rkey, bytes;
};

/* 0 and slot and gen; -EINPROGRESS: session s gets a reply later; else -errno. */
int lane_peer_connect(struct lane *l, struct session *s, const uint8_t gid[16], uint32_t *slot,
                      uint32_t *gen);
/* The endpoint with that key, or the name, is looked up for that tenant (its place + 1; 0: the
 * lane), and s, if it is not NULL, waits for the answer: -EINPROGRESS. -EAGAIN: the tenant has as
 * many under way as it may; -EHOSTUNREACH: there is nobody to ask. */
int lane_lookup_start(struct lane *l, struct session *s, const uint8_t key[16],
                      const struct lookup_name *name, uint32_t tenant);
/* The READ of that number among lookups.all_reads is back. */
void lane_lookup_done(struct lane *l, uint32_t number, enum ibv_wc_status status);
/* Likewise, as RELAY_DONE says. */
void lane_lookup_relayed(struct lane *l, uint32_t number, int status);
/* The list of metaservers is another one than this, which has room for all that there can be: a
 * READ of one that is not in it any more, or whose table is another now, says nothing. */
void lane_lookups_set_metaservers(struct lane *l, const struct lane_metaserver *before);
void lane_lookups_due(struct lane *l);
/* When that is to be called; NEVER: nothing is looked up. */
uint64_t lane_lookups_next(const struct lane *l);
/* Whether a metaserver may be asked: it has not just been silent, and there is one. */
bool lane_lookup_may_ask(const struct lane *l, uint32_t metaserver);
bool lane_lookup_has_whom_to_ask(const struct lane *l);
/* What an answer of that metaserver to another READ of its table says of it. */
void lane_lookup_heard(struct lane *l, uint32_t metaserver, enum ibv_wc_status answer);
/* The peer's record is old, or soon will be: a new one is looked up for that tenant (its place +
 * 1). Whether it may be used now; if not, peers[slot].refreshing says whether one is under way. */
bool lane_peer_refresh(struct lane *l, uint32_t slot, uint32_t tenant);

#endif
