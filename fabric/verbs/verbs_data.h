/* SPDX-License-Identifier: Apache-2.0 */
/* The data path: as fab_post_send() and its like. The thread that owns the queue. */
#ifndef VERBS_DATA_H
#define VERBS_DATA_H

#include "fabric/fabric.h"

int verbs_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int verbs_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int verbs_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int verbs_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
int verbs_arm(struct fab_cq *cq, bool solicited_only);
void verbs_chan_drain(struct fab_chan *chan);

#endif
