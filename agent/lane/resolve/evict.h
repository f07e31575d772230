/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection makes room for another endpoint's, with rc.
 *
 * The lane thread's. There may be thousands, and others' requests wait while they are looked at: so
 * each time a few are, from where the last look ended, and of these the one that was used longest
 * ago goes. One on which something is out goes only when a whole round found none that is idle: the
 * one of all of these that was used longest ago. One whose endpoint owes a sign of life goes only
 * when another round found no other: what is out there ends when its retries do, and an endpoint
 * that is to get a connection waits for that.
 *
 * A tenant that wants another one gives up one of its own, or takes one of a tenant that has more:
 * so none that uses many endpoints takes the connections of those that use few. */
#ifndef LANE_EVICT_H
#define LANE_EVICT_H

#include <stdint.h>

struct culprit;
struct flow;
struct physical_qp;

enum { EVICT_LOOKS = 64 };

/* How far a tenant has come with its round: each has one of its own, since what one tenant may have
 * another may not. */
struct evict_hand {
    uint32_t at;      /* the next place of phys */
    uint32_t looked;  /* at so many in this round */
    uint32_t best;    /* the place of the best busy one of these; UINT32_MAX: there is none */
    uint8_t has_news; /* some of them are of endpoints whose own have not heard of theirs */
};

struct evictor {
    struct evict_hand *hands; /* one for each tenant */
    struct evict_hand *hand;  /* of who asks */
    uint8_t of_quarantine;    /* only those of tenants in quarantine go, and of these
                               those */
    uint64_t linked_ns;       /* since when there are these */
    uint32_t
        tenant; /* that wants one: its place + 1; of_quarantine: only its own go, 0: anybody's */
    const struct culprit *culprits; /* how many each tenant has; NULL: no matter */
    uint64_t owing_ns; /* an endpoint that has given no sign of life since then owes one if
                          something is out */
    uint8_t only_idle;
    uint32_t draining; /* that it has picked while something was out on them, which is not over */
    uint8_t again;     /* the next look may find another one, whatever happens until then */
};

/* Of `room` places of phys. NULL: none yet. */
struct flow *lane_evict_pick(struct evictor *e, const struct physical_qp *phys, uint32_t room);

#endif
