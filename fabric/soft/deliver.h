/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs and immediates into a peer's receive queue. The queue pair's thread. */
#ifndef SOFT_DELIVER_H
#define SOFT_DELIVER_H

#include "soft/soft_qp.h"

struct soft_message {
    const struct fab_wr *wr;
    uint32_t length;             /* bytes of its payload */
    struct soft_arrival arrival; /* opcode, imm_data, wc_flags, src_qp; the rest is filled in */
    const uint64_t *grh_dgid;    /* UD: 40 bytes in front; else NULL */
    bool write_imm;              /* no payload: the bytes are written */
};

/* Delivers a message whose local regions are held. DONE with the sender's *status, or what it waits
 * for, with nothing taken. */
enum soft_outcome soft_deliver(struct soft_qp *qp, const struct soft_target *t,
                               struct soft_message *m, enum ibv_wc_status *status);

#endif
