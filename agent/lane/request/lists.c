/* SPDX-License-Identifier: Apache-2.0 */
#include "request/lists.h"

/* Whatever a worker lists: its own completions alone are wrong if no message ends it. */
bool lane_list_fail(struct vqp *q, const struct wr *w, enum ibv_wc_status *status, uint32_t *reason,
                    uint8_t *opcode)
{
    if (!(w->special & SPECIAL_SEND)) {
        if (q->list_status == IBV_WC_SUCCESS) {
            q->list_status = (uint8_t)*status;
            q->list_reason = (uint8_t)*reason;
        }
        return false;
    }
    if (q->list_status == IBV_WC_SUCCESS)
        return true;
    *status = (enum ibv_wc_status)q->list_status;
    *reason = q->list_reason;
    *opcode = IBV_WC_RDMA_WRITE;
    q->list_status = IBV_WC_SUCCESS;
    return true;
}
