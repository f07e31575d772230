/* SPDX-License-Identifier: Apache-2.0 */
/* The data path's entries: as in fabric.h. */
#ifndef SIM_POST_H
#define SIM_POST_H

#include "sim/sim_qp.h"

int sim_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int sim_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int sim_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int sim_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
/* A doorbell's event: the device looks at the queue. */
void sim_doorbell(struct sim_event *e);

#endif
