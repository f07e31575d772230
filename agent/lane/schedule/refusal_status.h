/* SPDX-License-Identifier: Apache-2.0 */
/* How a request ends that is refused before it reaches a device. Private to agent/lane; pure. */
#ifndef LANE_REFUSAL_STATUS_H
#define LANE_REFUSAL_STATUS_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "schema/reason.h"

/* reason: enum schema_reason. */
static inline enum ibv_wc_status refusal_status(uint32_t reason)
{
    switch (reason) {
    case SCHEMA_REASON_LOCAL_RANGE:
        return IBV_WC_LOC_PROT_ERR;
    case SCHEMA_REASON_VKEY:
    case SCHEMA_REASON_ACCESS:
    case SCHEMA_REASON_REMOTE_RANGE:
        return IBV_WC_REM_ACCESS_ERR;
    case SCHEMA_REASON_ALIGNMENT:
    case SCHEMA_REASON_ATOMIC:
    case SCHEMA_REASON_ATOMICS:
        return IBV_WC_REM_INV_REQ_ERR;
    case SCHEMA_REASON_LONG:
        return IBV_WC_REM_INV_REQ_ERR;
    case SCHEMA_REASON_PORT:
        return IBV_WC_REM_OP_ERR;
    case SCHEMA_REASON_RECEIVER:
        return IBV_WC_RNR_RETRY_EXC_ERR;
    case SCHEMA_REASON_PEER_DOWN:
    case SCHEMA_REASON_STALE_PEER:
        return IBV_WC_RETRY_EXC_ERR;
    default:
        return IBV_WC_LOC_QP_OP_ERR;
    }
}

#endif
