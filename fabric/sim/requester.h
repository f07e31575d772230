/* SPDX-License-Identifier: Apache-2.0 */
/* The requester's half of RC queue pairs and DCIs: sending, sending again, and answers. */
#ifndef SIM_REQUESTER_H
#define SIM_REQUESTER_H

#include "sim/sim_qp.h"

/* Sends what may be sent now. */
void sim_requester_go_on(struct sim_qp *qp);
/* An answer arrived: an ACK, a NAK or data. */
void sim_requester_answered(struct sim_qp *qp, const struct sim_packet *p);
/* The timer's event. */
void sim_requester_timer(struct sim_event *e);

#endif
