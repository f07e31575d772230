/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request is made to fail, and how. The thread of the queue pair or CQ. */
#ifndef FAULT_POISON_H
#define FAULT_POISON_H

#include "fault/layer.h"

/* Whether a fault of this rate hits now. Draws exactly once, whatever the rate. */
bool fault_hits(const struct fault_plan_state *now, struct fault_stream *stream, uint32_t ppm);
/* Counts a fault, for fault_count(). */
void fault_count_one(struct fault_fab *f);
/* One that is not in use, for a request of qp, which counts as broken from here on. */
struct fault_poison *fault_poison_take(struct fault_fab *f, struct fault_qp *qp);
/* The inner provider will refuse it on its own side. */
void fault_make_fail(const struct fault_qp *qp, struct fault_poison *poison, struct fab_wr *wr);

#endif
