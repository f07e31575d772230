/* SPDX-License-Identifier: Apache-2.0 */
/* READs, WRITEs and atomics. The queue pair's thread. */
#ifndef SOFT_ONE_SIDED_H
#define SOFT_ONE_SIDED_H

#include "soft/soft_qp.h"

/* The remote side of a request of `length` bytes in all, whose local regions are held: checked and
 * carried out. DONE with *status, or what it waits for. A refusal breaks an RC peer. */
enum soft_outcome soft_one_sided(struct soft_qp *qp, const struct fab_wr *wr,
                                 const struct soft_target *t, uint32_t length,
                                 enum ibv_wc_status *status);

#endif
