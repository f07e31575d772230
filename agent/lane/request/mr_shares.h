/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of this node's MR table. Private to agent/lane, and the lane thread's.
 *
 * What tenants have, and what is kept for those that have less than their reserve, is counted along
 * as regions come and go: there may be hundreds of tenants. Reserves are the control side's, and
 * change at any time: so all are looked at anew now and then. */
#ifndef LANE_MR_SHARES_H
#define LANE_MR_SHARES_H

#include "lane_state.h"

/* Whether the others' reserves leave room for one more of its tenant's (agent/reserve.h). */
bool lane_mr_shares_leave_room(struct lane *l, const struct session *s);
/* One region more of its tenant's. False: it has as many as it may. */
bool lane_mr_share_take(struct lane *l, const struct session *s);
/* One region less. */
void lane_mr_share_give(struct lane *l, const struct session *s);

#endif
