/* SPDX-License-Identifier: Apache-2.0 */
/* Peers: endpoints that are known, by their slot in the table that workers read. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_ENDPOINT_H
#define LANE_ENDPOINT_H

#include "lane_state.h"
#include "schema/peers.h"

/* What the lane knows of an endpoint beside what workers see. */
struct peer {
    uint64_t dc_key, mr_addr, expires_ns;
    struct flow *flow;
    uint32_t dctn, mr_rkey, ud_qpn, ud_qkey;
    uint32_t first_gen; /* of its slot, since it is this endpoint's: one more with each life */
    uint32_t renew_us;  /* so long before it expires a request that uses it has it READ again, and
                           goes on  meanwhile */
    uint16_t lid;
    uint8_t mr_log2, used;
    uint8_t refreshing : 1, has_dc : 1, has_rc : 1; /* has: what its record tells of ways to it */
    uint8_t outlived : 1;                           /* a name of a later life of it was found */
    uint8_t mtu;                                    /* enum ibv_mtu, of its DC target */
    uint16_t tenant; /* peer_room.c: its place + 1 whose workers use it; 0: nobody's */
};
static_assert(sizeof(struct peer) == 64, "one cache line for each of many peers");

static inline struct schema_peer *lane_peer_shared(struct lane *l, uint32_t slot)
{
    const struct schema_peers_header *h = l->res.peers;
    return (struct schema_peer *)((uint8_t *)l->res.peers + h->peers_offset) + slot;
}
/* Whether the slot was this endpoint's in that generation too: in this life or an earlier one. */
bool lane_peer_is_same(struct lane *l, uint32_t slot, uint32_t gen);

/* Whether nothing but a connection leads to it. */
static inline bool peer_needs_link(const struct lane *l, uint32_t slot)
{
    return l->config.rc || (l->config.hybrid && !l->peers[slot].has_dc);
}

#endif
