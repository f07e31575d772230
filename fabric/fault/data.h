/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's data path: as fab_post_send() and its like. */
#ifndef FAULT_DATA_H
#define FAULT_DATA_H

#include "fault/layer.h"

int fault_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int fault_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int fault_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int fault_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
int fault_arm(struct fab_cq *cq, bool solicited_only);
bool fault_is_busy(const struct fab_cq *cq);

/* Packet numbers of a queue pair, on which it is called while nothing of the other half is under
 * way: it is put to RTS with its first one; it is RESET. */
void fault_psn_begin(struct fault_qp *qp, uint32_t psn);
void fault_psn_end(struct fault_fab *f, struct fault_qp *qp);

#endif
