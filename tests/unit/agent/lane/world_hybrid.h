/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers between DC and connections, when the test wants them, and not when enough was sampled
 * (world.h, with hybrid). */
#ifndef UNIT_AGENT_LANE_WORLD_HYBRID_H
#define UNIT_AGENT_LANE_WORLD_HYBRID_H

#include "world.h"

/* With hybrid, of the next world's nodes: this one has no connections, or no DC target, for others.
 */
extern bool world_no_rc[WORLD_NODES], world_no_dc[WORLD_NODES];
/* With rc or hybrid, likewise: as in lane_config. */
extern uint32_t world_connections_per_peer;
/* How a node reaches others: of a node that is about to begin. */
void world_hybrid_configure(const struct world *w, struct world_node *n);
/* Of the node's flows one, by that number: what goes there by DC is to go by a connection, or the
 * other way round. */
void world_transfer(struct world *w, uint32_t node, uint32_t number);
/* Likewise of the flow by which this VQP of a session went last. */
void world_transfer_of(struct world *w, uint32_t node, uint32_t session, uint32_t vqp);
/* Those of that VQP's peer go, if that can be (resolve/flow.h). */
bool world_flows_leave(struct world *w, uint32_t node, uint32_t session, uint32_t vqp);
/* The queue pair of one of the node's connections, by that number, or NULL. */
struct fab_qp *world_link(struct world *w, uint32_t node, uint32_t number);
/* That of the connection by which this VQP of a session went last, or NULL. */
struct fab_qp *world_link_of(struct world *w, uint32_t node, uint32_t session, uint32_t vqp);

#endif
