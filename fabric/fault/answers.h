/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are lost. The queue pair's thread. */
#ifndef FAULT_ANSWERS_H
#define FAULT_ANSWERS_H

#include "fault/layer.h"

/* With the last request of the list answers begin to be lost: that one's, and of those
 * behind it to the same target so many as the seed says. */
void fault_silence_begin(struct fault_fab *f, struct fault_qp *qp, struct fault_list *list);
/* Whether the answer of wr, which comes next, is lost too. */
bool fault_silence_goes_on(const struct fault_qp *qp, const struct fault_list *list,
                           const struct fab_wr *wr);
/* The last one's is. */
void fault_silence_join(struct fault_list *list);
/* If one is under way: what breaks the queue pair behind those. */
void fault_silence_end(const struct fault_qp *qp, struct fault_list *list);

#endif
