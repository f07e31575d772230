/* SPDX-License-Identifier: Apache-2.0 */
/* Send queues. The queue pair's thread. */
#ifndef SOFT_SENDQ_H
#define SOFT_SENDQ_H

#include "soft/soft_qp.h"

/* As fab_post_send(). */
int soft_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
/* Goes on with what waits in the queue pair. */
void soft_qp_progress(struct soft_qp *qp);
/* The queue pair was found in ERR: flushes its queues, and tells who broke it. */
void soft_qp_flush(struct soft_qp *qp);

#endif
