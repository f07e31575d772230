/* SPDX-License-Identifier: Apache-2.0 */
/* News of endpoints: of which of them something is to be looked at. Private to agent/lane, and the
 * lane thread's.
 *
 * What learns something of an endpoint says so here and does no more; the VQPs that wait for it
 * are looked at when their turn comes (schedule/rounds.c). */
#ifndef LANE_FLOW_NEWS_H
#define LANE_FLOW_NEWS_H

#include "lane_state.h"

/* Something happened to this endpoint: those that wait for it are tried in the next round. */
void lane_flow_notify(struct lane *l, struct flow *f);
/* Its news are no more: they were looked at, or the flow goes. */
void lane_flow_take_news(struct lane *l, struct flow *f);
/* Something happened to the peer in this slot, whatever flows lead to it. */
void lane_flows_notify(struct lane *l, uint32_t slot);

#endif
