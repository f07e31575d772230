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
void flow_notify(struct lane *l, struct flow *f);
/* Its news are no more: they were looked at, or the flow goes. */
void flow_take_news(struct lane *l, struct flow *f);
/* Something happened to the peer in this slot, whatever flows lead to it. */
void flows_news(struct lane *l, uint32_t slot);
/* The tenant is in quarantine, or is so no more, or its flows of its own need not wait: what waits
 * there looks again. */
void flows_rejoin(struct lane *l, uint32_t tenant_slot);

/* Of the flows of tenants in quarantine, those to the peer in this slot and some others. */
static inline struct flow **quarantine_bucket(struct lane *l, uint32_t slot)
{
    return &l->quarantine_flows[slot % LANE_QUARANTINE_BUCKETS];
}

#endif
