/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: VQPs that wait are looked at when something may have changed for them. Private to
 * agent/lane, and the lane thread's.
 *
 * Thousands may wait, of one tenant too, and others' requests stand still while they are looked at:
 * a pass looks at some, and the next one goes on where it ended. */
#ifndef LANE_ROUNDS_H
#define LANE_ROUNDS_H

#include "lane_state.h"
#include "schedule/vqp.h"

/* While anybody is in a list. Looks at those: first at those of whose endpoint there is news. */
void lane_rounds_retry(struct lane *l);
/* Lets go on those whose turn it is for room and at windows. */
void lane_rounds_serve(struct lane *l);
/* When the next round is needed; LANE_NEVER: nobody waits. */
uint64_t lane_rounds_due(const struct lane *l);

#endif
