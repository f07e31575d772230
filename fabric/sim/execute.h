/* SPDX-License-Identifier: Apache-2.0 */
/* One accepted request, carried out on its responder's memory, piece by piece. */
#ifndef SIM_EXECUTE_H
#define SIM_EXECUTE_H

#include "sim/sim_qp.h"

/* Into how many pieces it is moved, and in which order. */
void sim_exec_plan(struct sim_exec *x);
/* Carries out the next piece; when that was the last one, or it is refused, x->done. */
void sim_exec_step(struct sim_exec *x);
/* It is refused for how many there are: one more than the requester was to have out. */
void sim_exec_refuse_many(struct sim_exec *x);
/* What is behind a request that is refused: of a WRITE some of what is left is in memory by then,
 * unless that one is to be refused itself. */
void sim_exec_place(struct sim_exec *x);

#endif
