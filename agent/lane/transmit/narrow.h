/* SPDX-License-Identifier: Apache-2.0 */
/* DC: which initiators are for endpoints that take shorter packets than the pool sends. Private to
 * agent/lane (initiators.h), and the lane thread's. */
#ifndef LANE_NARROW_H
#define LANE_NARROW_H

#include <stdint.h>

#include "agent/lane_config.h"

/* Of the places in lane->dci those before `ordinary` are for endpoints that take what the pool
 * sends, the last is for all that are silent, and those from `from` on, which has the last among
 * them, are for endpoints that take less. MTUs are enum ibv_mtu; 0: the pool's. */
struct narrow {
    uint32_t ordinary, from;
    uint8_t mtu;                         /* of those places; 0: no such endpoint was reached yet */
    uint8_t phys[1 + 2 * LANE_MAX_DCIS]; /* what each of lane->phys was brought up with at most */
};

#endif
