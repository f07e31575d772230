/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, which messages raise (docs/messages.md#counters). Private to agent/lane, and the lane
 * thread's.
 *
 * What counts is the lane's own: the page that the worker reads shows it, and nothing is read
 * there. A name is of a session and of a place, and holds while the session does or until it is
 * given back; whoever shows name and secret raises it, which 96 random bits are not guessed for. */
#ifndef LANE_RAISES_H
#define LANE_RAISES_H

#include "schema/message.h"
#include "session_state.h"

/* COUNTER_NEW and COUNTER_FREE: answers. */
void lane_counter_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* Whom a message raises; *owner: whose it is. NULL: there is none, or not by that secret. */
struct counter *lane_counter_find(struct lane *l, const struct schema_message *m,
                                  struct session **owner);
/* By 1, and stays at 2^64 - 1. Its worker is told with the pass. */
void lane_counter_raise(struct lane *l, struct session *owner, struct counter *c);

#endif
