/* SPDX-License-Identifier: Apache-2.0 */
/* What comes for this lane from others: messages for its workers, and datagrams; and what is said
 * to those (docs/messages.md). Private to agent/lane, and the lane thread's. */
#ifndef LANE_ARRIVALS_H
#define LANE_ARRIVALS_H

#include "lane_state.h"

/* 0 or -errno; freed in either case. */
int lane_messages_new(struct lane *l);
/* With random numbers at hand: posts all receives. */
void lane_messages_begin(struct lane *l);
void lane_messages_free(struct lane *l);
/* Something has come, or is to be said (lane->messages_due). */
void lane_arrivals_go_on(struct lane *l);
/* Now and then. */
void lane_arrivals_look(struct lane *l);
/* This node's address is another one: what it said and heard under the former is over. */
void lane_arrivals_readdress(struct lane *l);

#endif
