/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as those who use them see them: our own, and those of other processes, which are mapped.
 *
 * A lane finds a mapping by its slot. It stays for as long as its key is in the hazard words of the
 * lane's queue pair (hazards.h). */
#ifndef SOFT_MAPS_H
#define SOFT_MAPS_H

#include "soft/soft.h"

enum soft_mr_status { SOFT_MR_OK, SOFT_MR_DENIED, SOFT_MR_GONE, SOFT_MR_FAILED };

/* Whether an SGE is our own memory, in this PD, in bounds. Between soft_mr_hold() and
 * soft_mr_leave() it then stays. The queue pair's thread. */
bool soft_mr_is_local(const struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write);
/* Enters a region of `owner` named by key for the queue pair's thread: OK and *at, which stays
 * valid until soft_mr_leave() or until another region is entered. GONE: its process is. FAILED: it
 * could not be mapped, for qp->vendor_err's reason. The first time it makes system calls, of which
 * none waits. */
enum soft_mr_status soft_mr_enter(struct soft_qp *qp, soft_owner owner, uint32_t pd, uint32_t key,
                                  uint64_t addr, uint64_t length, unsigned access, uint8_t **at);
/* Unmaps what is stale, or all. Control thread. */
void soft_map_sweep(struct soft_fab *f, bool all);

/* Where an SGE of a request is in our own process. It is of a region of ours that is held. */
static inline uint8_t *soft_local_at(const struct soft_fab *f, const struct fab_wr *wr, int i)
{
    const struct ibv_sge *sge = &wr->sg_list[i];
    uint64_t shift =
        wr->send_flags & IBV_SEND_INLINE ? 0 : f->shared->mr[sge->lkey & (SOFT_MRS - 1)].shift;
    return (uint8_t *)(uintptr_t)(sge->addr + shift);
}

#endif
