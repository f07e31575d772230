/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that break, ours and peers'. Any thread. */
#ifndef SOFT_QP_ERROR_H
#define SOFT_QP_ERROR_H

#include "soft/soft_qp.h"

/* Puts a queue pair in ERR from whatever state but RESET, if it still has this number. `cause` is
 * the event that its owner gets. False: nothing changed. */
bool soft_qp_to_err(struct soft_qp_shared *s, uint32_t qpn, enum ibv_event_type cause);
/* A queue pair of ours is in ERR: those who poll its CQs flush it, and are woken for that. */
void soft_qp_attend(struct soft_fab *f, struct soft_qp *qp);
/* Breaks the peer's queue pair, whose owner learns of it at its next poll; a DC target stays. */
void soft_break_peer(struct soft_qp *qp, const struct soft_target *t, enum ibv_event_type cause);

#endif
