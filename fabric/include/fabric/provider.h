/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider implements. Callers never see this: they use the checked wrappers of fabric.h.
 *
 * A provider's structs have the public one first. The wrappers have checked: pointers, opcode
 * against the queue pair's type, SGE count, inline size, list of requests not empty; states and
 * keys are the provider's. */
#ifndef FABRIC_PROVIDER_H
#define FABRIC_PROVIDER_H

#include "fabric/fabric.h"

struct fab_ops {
    const char *name;
    int (*close)(struct fab *fab);
    void (*submit)(struct fab *fab, struct fab_ctl *ctl);
    int (*run)(struct fab *fab);
    int (*ctl_fd)(const struct fab *fab);
    int (*post_send)(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
    int (*post_recv)(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
    int (*post_srq_recv)(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad);
    int (*poll)(struct fab_cq *cq, int n, struct ibv_wc *wc);
    int (*arm)(struct fab_cq *cq, bool solicited_only);
    bool (*is_busy)(const struct fab_cq *cq); /* or NULL: it never is */
    void (*chan_drain)(struct fab_chan *chan);
    enum ibv_qp_state (*qp_state)(const struct fab_qp *qp);
    int (*event_fd)(const struct fab *fab);
    int (*get_event)(struct fab *fab, struct fab_event *out);
    void (*wait)(struct fab *fab); /* or NULL: ctl_fd is one for poll(2) */
    /* Or NULL: memfds are what it takes. As fab_mem_alloc_for(), with give_back set. */
    int (*mem_alloc)(struct fab *fab, size_t size, struct fab_mem *out);
    /* Or NULL: the caps, which are changed already, are all. */
    void (*set_address)(struct fab *fab, const uint8_t gid[16], uint8_t sgid_index, uint16_t lid);
};

/* How many objects more there are after such an operation: 1, 0 or -1. */
int fab_ctl_balance(enum fab_ctl_kind kind);

#endif
