/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues, of queue pairs and shared ones. The owner appends; senders of any process take
 * (deliver.h). */
#ifndef SOFT_RECV_H
#define SOFT_RECV_H

#include "soft/soft.h"

struct soft_rq {
    struct soft_rq_shared *shared; /* NULL: there is none */
};

struct soft_srq {
    struct fab_srq base;
    struct soft_rq rq;
    _Atomic uint32_t users;
};

/* Claims a slot. Its index + 1, or -errno. Control thread. */
int soft_rq_claim(struct soft_fab *f, struct soft_rq *rq, uint32_t max_wr, uint32_t max_sge);
/* Gives the slot back, or -EBUSY while a sender is inside. Control thread. */
int soft_rq_release(struct soft_fab *f, struct soft_rq *rq);
/* Waits for nobody: 0 and everything queued is dropped, or -EBUSY. Control thread. */
int soft_rq_drop(struct soft_fab *f, struct soft_rq *rq);
/* Appends: 0, or -ENOMEM or -EINVAL with *bad. The owning thread. */
int soft_rq_post(struct soft_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
int soft_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
/* Flushes a broken queue pair's own receives. False: somebody is inside, try again. */
bool soft_rq_flush(struct soft_fab *f, struct soft_qp *qp);

#endif
