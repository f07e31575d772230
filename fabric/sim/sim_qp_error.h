/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that break, and what is left of those that go. */
#ifndef SIM_QP_ERROR_H
#define SIM_QP_ERROR_H

#include "sim/sim_qp.h"

/* Adds a request's completion: an error's always, a success's if it is signalled. */
void sim_wqe_complete(struct sim_qp *qp, const struct sim_wqe *w, enum ibv_wc_status status);
/* Flushes what is queued, when the queue pair is in ERR; not yet where its timer is set, since the
 * device is late with that. */
void sim_qp_flush(struct sim_qp *qp);
/* Its timer has come. */
void sim_qp_flush_due(struct sim_qp *qp);
/* To ERR, if it is not there, or in RESET; with that event, unless it is NULL. */
void sim_qp_to_err(struct sim_qp *qp, const enum ibv_event_type *event);
/* All that was accepted and is not executed, is not. */
void sim_responder_clear(struct sim_responder *r);
void sim_exec_free(struct sim_exec *x);
/* Everything of its life is forgotten, without completions. */
void sim_qp_forget(struct sim_qp *qp);

#endif
