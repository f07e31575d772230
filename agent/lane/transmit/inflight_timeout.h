/* SPDX-License-Identifier: Apache-2.0 */
/* That nothing stays in a queue pair for longer than *bound*. Private to agent/lane, and the lane
 * thread's. */
#ifndef LANE_INFLIGHT_TIMEOUT_H
#define LANE_INFLIGHT_TIMEOUT_H

#include "lane_state.h"

/* When there was a look, last at `last`. */
struct inflight_check_all {
    uint64_t ns[OVERDUE_LOOKS];
    uint32_t last;
};

/* After the queue pairs' places were made. */
int lane_inflight_new(struct lane *l);
void lane_inflight_free(struct lane *l);
/* With end_overdue, once look_due_ns has come: a device that keeps no deadlines may carry out a
 * request long after its lease, when those before it in the queue pair all but used up their
 * retries: what would be out for longer than one may take ends with its queue pair
 * (docs/leases.md#what-stands-in-a-queue-pair). True: some seem to be; the caller posts what is
 * chained, polls all completions, and calls lane_inflight_end_overdue() for what is out still. */
bool lane_inflight_check(struct lane *l);
void lane_inflight_end_overdue(struct lane *l);
/* p is of no use any more. It goes when the device has given back what is out on it, so that
 * nothing is told or done again of which the device may yet tell otherwise. */
void lane_inflight_retire(struct lane *l, struct physical_qp *p);
/* Likewise of this one, if the lane has it. */
void lane_inflight_retire_qp(struct lane *l, const struct fab_qp *qp);
/* This one is destroyed, if the lane still waits for what is out on it: nothing of that is done any
 * more, and all of it ends. */
void lane_inflight_destroyed(struct lane *l, const struct fab_qp *qp);
/* Once await_due_ns has come, and all completions were polled. */
void lane_inflight_give_up(struct lane *l);
/* When a lane that sleeps has to look: NEVER while nothing is out. */
uint64_t lane_inflight_next(const struct lane *l);

#endif
