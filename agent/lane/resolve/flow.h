/* SPDX-License-Identifier: Apache-2.0 */
/* Flows come and go: what one is says flow_state.h. The lane thread's. Nobody owns one: while
 * nothing is out on it and no VQP waits with it, a VQP that needs one for another endpoint may have
 * it. */
#ifndef LANE_FLOW_H
#define LANE_FLOW_H

#include <stdint.h>

#include "flow_state.h"

struct lane;
struct vqp;

/* The flow of q's peer, in its generation; with several connections for each peer the one that q is
 * pinned to. NULL: q's tenant has its share of those that there are,
 * or all are in use: try again. */
struct flow *lane_flow_take(struct lane *l, struct vqp *q);
/* hybrid: another one for first's endpoint, for a connection (hybrid.h); NULL: the tenant has its
 * share. */
struct flow *lane_flow_make_second(struct lane *l, struct flow *first, uint32_t tenant_slot);
/* One of several connections of an endpoint is not to be had now: the first is used instead. */
void lane_flow_bar(struct lane *l, struct flow *f);
/* The flows of the peer in this slot go, if that can be. */
bool lane_flows_leave(struct lane *l, uint32_t slot);
/* A few of those that no peer names any more, and that are idle. */
void lane_flows_sweep(struct lane *l);

#endif
