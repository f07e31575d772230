/* SPDX-License-Identifier: Apache-2.0 */
/* Executing one work request. The queue pair's thread. */
#ifndef SOFT_EXEC_H
#define SOFT_EXEC_H

#include "soft/soft_qp.h"

/* Executes a request now, or a piece of it: DONE with *status, or what it waits for. dgid: the
 * address handle's; of RC anything. One of more than SOFT_WHOLE bytes goes on, where qp->moved
 * says, when it is called again. The regions are still held afterwards (hazards.h). */
enum soft_outcome soft_execute(struct soft_qp *qp, const struct fab_wr *wr, const uint64_t dgid[2],
                               enum ibv_wc_status *status);

#endif
