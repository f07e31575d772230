/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of queue pairs' former lives, which are late: by their numbers, as IBTA 9.7.1 gives them
 * to RC, and to DC whatever may be.
 *
 * Called for a queue pair while nothing of the other half is under way: the control thread between
 * its lives, the thread that posts in them. */
#ifndef FAULT_PSN_H
#define FAULT_PSN_H

#include "fault/layer.h"

/* It is put to RTS with its first number; it is RESET. */
void fault_psn_begin(const struct fault_fab *f, struct fault_qp *qp, uint32_t psn);
void fault_psn_end(const struct fault_fab *f, struct fault_qp *qp);
/* Counts the packets of a request that is posted: whether one of a former life comes in that it
 * takes for its own acknowledgement. */
bool fault_psn_is_late(struct fault_fab *f, struct fault_qp *qp, const struct fab_wr *wr);
/* Of the time that packets live. */
uint64_t fault_psn_now_ns(const struct fault_fab *f);

#endif
