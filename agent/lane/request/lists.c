/* SPDX-License-Identifier: Apache-2.0 */
#include "request/lists.h"

/* It was carried out, or not, and then what stood behind it may have been too. */
static bool is_unknown(enum ibv_wc_status status, uint32_t reason)
{
    return status == IBV_WC_RETRY_EXC_ERR || reason == SCHEMA_REASON_UNDER_WAY;
}

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
    if (!is_unknown((enum ibv_wc_status)q->list_status, q->list_reason) ||
        !is_unknown(*status, *reason))
        *opcode = IBV_WC_RDMA_WRITE;
    *status = (enum ibv_wc_status)q->list_status;
    *reason = q->list_reason;
    q->list_status = IBV_WC_SUCCESS;
    return true;
}
