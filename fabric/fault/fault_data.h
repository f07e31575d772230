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

#endif
