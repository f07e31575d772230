/* SPDX-License-Identifier: Apache-2.0 */
/* The responder's half of RC queue pairs, and DC targets. */
#ifndef SIM_RESPONDER_H
#define SIM_RESPONDER_H

#include "sim/sim_qp.h"

/* A new life of an RC queue pair's, which expects that packet first, from there. */
void sim_responder_begin(struct sim_qp *qp, uint32_t psn);
/* A request arrived at an RC queue pair or at a DC target. The packet is the callee's. */
void sim_responder_rc(struct sim_qp *qp, struct sim_packet *p);
void sim_responder_dc(struct sim_dct *dct, struct sim_packet *p);
/* Of a DC target that goes. */
void sim_responder_free_all(struct sim_dct *dct);

#endif
