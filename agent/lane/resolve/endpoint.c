/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane knows of endpoints (KRCore's DCCache), beside what workers see. */
#include "resolve/endpoint.h"

#include "schema/peers.h"
#include "lane_state.h"

bool lane_peer_is_same(struct lane *l, uint32_t slot, uint32_t gen)
{
    const uint32_t now = lane_peer_shared(l, slot)->gen;
    return now - gen <= now - l->peers[slot].first_gen;
}
