/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs whose requests are to end at once, since their lease may be over: they are put to ERR
 * (docs/leases.md#what-stands-in-a-queue-pair). Where the device refuses that again and again such
 * a queue pair is destroyed under its lane, which hears of it (QP_DESTROYED). Control thread.
 *
 * Invariant: of a queue pair that is destroyed so nothing else of the control side has the pointer,
 * and its lane compares it alone. */
#ifndef CONTROL_QP_END_H
#define CONTROL_QP_END_H

#include <stdbool.h>

struct fab_qp;
struct lane_event;
struct pool;

enum { QP_ENDS_TRIED = 3 /* that the device may refuse, until it is destroyed */ };

/* QP_OVERDUE, QP_RETIRED. */
void agent_qp_end_at_once(struct pool *p, struct fab_qp *qp);
/* QP_BROKEN. False: the queue pair is there, and the caller's to use again; else another is made in
 * its place where there is to be one. */
bool agent_qp_end_broken(struct pool *p, const struct lane_event *e);
/* The lane is gone. */
void agent_qp_ends_stop(struct pool *p);

#endif
