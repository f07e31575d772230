/* SPDX-License-Identifier: Apache-2.0 */
/* Data that comes to a queue pair of the stand-in. Up to 32 bytes may come in the completion, from
 * where libmlx5 copies them to the address of the SGE as if that were a pointer (rdma-core's
 * providers/mlx5/qp.c, copy_to_scat): of receives always (the kernel's create_user_qp), of READs
 * and atomics where all requests are signalled by the queue pair's type
 * (configure_requester_scat_cqe). More is written by the device. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_DATA_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_DATA_H

#include "dc_stand_in.h"

enum { FAKE_IN_COMPLETION = 32 };

/* A registration: the I/O virtual address at which the device finds memory. */
struct fake_memory {
    uint64_t iova;
    void *at;
    size_t size;
};

/* A receive into s completes, with n bytes. */
static inline void fake_receives(struct ibv_qp *qp, const struct fake_memory *m,
                                 const struct ibv_sge *s, const void *data, size_t n)
{
    const struct fake_qp *q = (const struct fake_qp *)qp;
    ck_assert(s->addr >= m->iova && s->addr + n <= m->iova + m->size);
    if (!q->scatters || n > FAKE_IN_COMPLETION)
        memcpy((char *)m->at + (s->addr - m->iova), data, n);
    else if (s->addr >= (uintptr_t)m->at && s->addr + n <= (uintptr_t)m->at + m->size)
        memcpy((void *)(uintptr_t)s->addr, data, n);
    else
        wrong("data is copied to an address that is no pointer");
}

#endif
