/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread that owns a queue calls beside posting sends: as fab_poll(), fab_is_busy() and
 * fab_post_recv(). */
#ifndef SOFT_POLL_H
#define SOFT_POLL_H

#include "fabric/fabric.h"

int soft_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
/* The same with so many completions of sends at most, of n in all. */
int soft_poll_sends(struct fab_cq *cq, int n, int sends, struct ibv_wc *wc);
bool soft_is_busy(const struct fab_cq *cq);
int soft_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);

#endif
