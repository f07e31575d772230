/* SPDX-License-Identifier: Apache-2.0 */
/* What is different with RC, in a world of nodes (world.h). */
#ifndef UNIT_AGENT_LANE_WORLD_RC_H
#define UNIT_AGENT_LANE_WORLD_RC_H

#include "world.h"

void world_rc_open(struct world *w, struct world_node *n);
void world_rc_close(struct world *w, struct world_node *n);
/* The connection through which the node's lane READs the metaserver's table, made (again): the
 * former one is the lane's until it says so. */
struct fab_qp *world_rc_metaserver(struct world *w, struct world_node *n);
/* WANT_RELAY and RELAYED, which a test takes. */
extern void (*world_on_relay)(struct world *w, struct world_node *n, const struct lane_event *e);
/* Whether an event is about a connection, or a READ that is relayed. */
bool world_rc_is_about(const struct lane_event *e);
void world_rc_event(struct world *w, struct world_node *n, const struct lane_event *e);
void world_rc_run(struct world *w, struct world_node *n);
/* What a queue pair asks for, of a device that has so much. */
uint32_t world_least(uint32_t wanted, uint32_t has);
/* Of a work request of several requests; 0: the next world's lanes merge nothing. */
uint32_t world_merge_sges(const struct world_node *n);
extern bool world_apart;
/* Likewise: their cut_bytes. */
extern uint32_t world_cut_bytes;
/* One on which nothing is answered for seconds. */
struct fab_qp *world_rc_silent(struct world *w, struct world_node *n);
int world_fill(void *user, void *bytes, size_t count);
void world_tell_metaserver(struct world *w, struct world_node *n);

#endif
