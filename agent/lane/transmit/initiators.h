/* SPDX-License-Identifier: Apache-2.0 */
/* DC: which of the queue pairs has which place in lane->dci, of which the last one is for endpoints
 * that owe a sign of life. Private to agent/lane, and the lane thread's.
 *
 * Invariant: what is out on a flow that has something out is on the queue pair that has the flow's
 * place. So a VQP's requests to an endpoint stay in one queue pair, and in order. */
#ifndef LANE_INITIATORS_H
#define LANE_INITIATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct lane;
struct physical_qp;

void lane_initiators_init(struct lane *l);
/* p broke, and nothing is out on it: a spare takes its place, if there is one. */
void lane_initiator_lost(struct lane *l, const struct physical_qp *p);
/* p works, again or for the first time: it gets its place, or a broken one's, or is a spare: then
 * true. */
bool lane_initiator_back(struct lane *l, const struct physical_qp *p);
/* The least loaded of those that work at the places from `from` to before `to`, or if none does, of
 * all; `had` if none works at all. */
uint32_t lane_initiator_that_works(const struct lane *l, uint32_t from, uint32_t to, uint32_t had);

/* An endpoint takes no longer packets than that: from now on those at the places from narrow.from
 * on are brought up with it, or with what another such endpoint takes if that is less; the others
 * go on as they are. True: those that are there now are to be brought up anew. */
bool lane_initiators_narrow(struct lane *l, enum ibv_mtu mtu);
/* With what p, which is broken, is to be brought up at most, where it is wanted now; 0: the pool's.
 */
enum ibv_mtu lane_initiator_mtu(const struct lane *l, const struct physical_qp *p);
/* The place for an endpoint that takes less than the pool's; apart: beside which no request is to
 * wait, as for one that owes a sign of life. */
uint32_t lane_initiator_narrow_place(const struct lane *l, bool apart);

#endif
