/* SPDX-License-Identifier: Apache-2.0 */
/* UD queue pairs: datagrams that leave, and that arrive. */
#ifndef SIM_DATAGRAM_H
#define SIM_DATAGRAM_H

#include "sim/sim_qp.h"

/* Sends what is queued. */
void sim_datagrams_go_on(struct sim_qp *qp);
/* One arrived, which is the callee's. Where nobody waits for it, it is lost. */
void sim_datagram_arrived(struct sim_qp *qp, struct sim_packet *p);

#endif
