/* SPDX-License-Identifier: Apache-2.0 */
/* READs of metaservers' tables that a pool's first lane posts for another one of its lanes, to
 * which no metaserver has given a queue pair (agent/lane/resolve/relay.h). Control thread. */
#ifndef CONTROL_RELAYS_H
#define CONTROL_RELAYS_H

struct lane_event;
struct pool;

/* LANE_EVENT_WANT_RELAY. */
void agent_relays_want(struct pool *p, const struct lane_event *e);
/* LANE_EVENT_RELAYED. */
void agent_relays_answer(struct pool *p, const struct lane_event *e);

#endif
