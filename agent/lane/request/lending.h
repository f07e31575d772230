/* SPDX-License-Identifier: Apache-2.0 */
/* Lends what large messages are READ from (lending_state.h): regions of the lane's own making,
 * which come and go by the rule of leases as workers' do (docs/leases.md). Private to agent/lane,
 * and the lane thread's. */
#ifndef LANE_LENDING_H
#define LANE_LENDING_H

#include <stdbool.h>

#include "lane_state.h"

/* What sessions ask for that are in the lane's list. */
void lane_lendings_go_on(struct lane *l);
/* MR_READY of a registration that was asked for here. False: it is of no use, and the caller gives
 * it back. */
bool lane_lending_ready(struct lane *l, struct session *s, const struct lane_command *c);
/* The present generation is withdrawn, and its leases are over. */
void lane_lending_gone(struct lane *l, struct session *s);
/* The session ends, and takes all regions with it. */
void lane_lending_forget(struct lane *l, struct session *s);

#endif
