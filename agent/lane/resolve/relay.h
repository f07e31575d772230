/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: READs of metaservers' tables that the first lane of a pool posts for
 * another one, which no metaserver has given a queue pair (agent/lane_metaserver.h). The lane
 * thread's.
 *
 * What is READ goes to the other lane's own scratch memory, which is in the protection domain that
 * all have in common, and which it looks at when the control side has brought it the answer. So no
 * lane reads what another one writes. */
#ifndef LANE_RELAY_H
#define LANE_RELAY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_metaserver.h"

struct lane;
struct lookup_span;
struct wr;

struct relays {
    /* Of the first lane: those that it has posted. */
    struct relayed_read {
        bool used;
        uint8_t lane, metaserver; /* whose it is; its number */
        uint32_t tag;
    } at[LANE_RELAYS];
    /* Of another one: those that it wants and has no answer to, and of each tenant's (its slot + 1;
     * 0: the lane itself). */
    uint32_t out, *of;
};

/* Whether a tenant's lookup may have one more: it has no more than it leaves to others. */
static inline bool relays_may_want(const struct relays *all, uint32_t tenant)
{
    const uint32_t left = LANE_RELAYS_OF_LANE - all->out;
    return left > 0 && all->of[tenant] <= left;
}

/* The other one: has that span READ to the place of its scratch memory, which says for which tenant
 * that is. The answer, with the tag, is RELAY_DONE, at which lane_relay_answered() is called. */
void lane_relay_want(struct lane *l, const struct lane_metaserver *m, uint64_t generation,
                     const struct lookup_span *span, uint32_t place, uint32_t tag);
void lane_relay_answered(struct lane *l, uint32_t place);
/* The first one: posts it, or says at once that it cannot. */
void lane_relay_post(struct lane *l, const struct lane_relay *wanted);
void lane_relay_done(struct lane *l, const struct wr *w, enum ibv_wc_status status);

#endif
