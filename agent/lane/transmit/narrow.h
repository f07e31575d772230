/* SPDX-License-Identifier: Apache-2.0 */
/* DC: which places initiators have, of which some are for endpoints that take shorter packets than
 * the pool sends. Private to agent/lane (initiators.h), and the lane thread's. */
#ifndef LANE_NARROW_H
#define LANE_NARROW_H

#include <stdint.h>

#include "agent/lane_config.h"

/* Who last waited to go by a queue pair until what he has WRITTEN by the one before it is seen
 * (schedule/unseen_writes.h): who breaks queue pairs has others wait (quarantine.c). */
struct unseen_wait {
    uint64_t ns;
    uint32_t tenant; /* its place; LANE_SEVERAL_WAIT: several, one soon behind the other */
};
#define LANE_SEVERAL_WAIT UINT32_MAX

/* Of the places in lane->dci those before `ordinary` are for endpoints that take what the pool
 * sends, the last is for all that are silent, and those from `from` on, which has the last among
 * them, are for endpoints that take less. MTUs are enum ibv_mtu; 0: the pool's. */
struct narrow {
    uint32_t ordinary, from;
    uint8_t mtu;                         /* of those places; 0: no such endpoint was reached yet */
    uint8_t phys[1 + 2 * LANE_MAX_DCIS]; /* what each of lane->phys was brought up with at most */
    /* When each place last lost the queue pair that it had: that broke, or has another place. What
     * was WRITTEN through it may not be seen yet (schedule/unseen_writes.h). */
    uint64_t lost_ns[LANE_MAX_DCIS + 1];
    struct unseen_wait waits[LANE_MAX_DCIS + 1]; /* and for that */
};

#endif
