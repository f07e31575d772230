/* SPDX-License-Identifier: Apache-2.0 */
/* Peers' regions, as their owners' records say. Private to agent/lane, and the lane thread's. */
#ifndef LANE_REGION_CACHE_H
#define LANE_REGION_CACHE_H

#include "lane_state.h"
#include "schema/record.h"

enum cached_state { CACHED_FREE, CACHED_VALID, CACHED_UNKNOWN };

/* A remote region, by (peer, virtual key). Valid ones may be posted under until post_until_ns. */
struct cached {
    uint8_t state;       /* enum cached_state */
    uint8_t reading : 1; /* the owner's record is being READ: anew, or to renew a valid one */
    uint8_t guessed : 1; /* what was READ last has cost a session of its budget */
    uint8_t tries : 6;
    uint16_t tenant; /* its place + 1: of those that use it, one that has few; 0: it is nobody's */
    uint32_t peer_slot, peer_gen;
    uint32_t scratch;
    uint64_t read_ns, post_until_ns;
    uint64_t sure_until_ns; /* until then nothing of this has to be looked at: it is valid, and
                               a request that uses it does not have it READ again yet; else 0 */
    struct fab_key key;     /* of what is posted under it; without a time when the device does
                                     not look at that */
    struct schema_mr_record record;
};

void lane_remote_init(struct lane *l);
enum remote_answer { REMOTE_OK, REMOTE_READING, REMOTE_WAIT, REMOTE_REFUSED };
/* Resolves w's virtual key at q's peer into w->fab.key and remote_addr, and is where q looks first
 * for its next one. READING: its owner's record is under way; WAIT: there is no room to ask for it.
 * REFUSED: *reason. */
enum remote_answer lane_remote_resolve(struct lane *l, struct vqp *q, struct wr *w,
                                       uint32_t *reason);
/* READs again what the requests of this pass have asked for. */
void lane_remote_refresh(struct lane *l);
void lane_remote_done(struct lane *l, struct wr *w, enum ibv_wc_status status);
/* The clock can be trusted again: what was READ while it could not, or before, is not believed. */
void lane_remote_clock_is_back(struct lane *l);
/* The owner's device has refused w: its record is not believed any longer. */
void lane_remote_doubt(struct lane *l, const struct wr *w);

#endif
