/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/reason.h"

#include <stddef.h>

const char *schema_reason_name(uint32_t reason)
{
    static const char *const names[] = {
        [SCHEMA_REASON_NONE] = "none",
        [SCHEMA_REASON_DESCRIPTOR] = "malformed_request",
        [SCHEMA_REASON_RING] = "malformed_ring",
        [SCHEMA_REASON_LOCAL_RANGE] = "local_range",
        [SCHEMA_REASON_REMOTE_RANGE] = "remote_range",
        [SCHEMA_REASON_VKEY] = "unknown_key",
        [SCHEMA_REASON_ACCESS] = "access",
        [SCHEMA_REASON_ALIGNMENT] = "alignment",
        [SCHEMA_REASON_NOT_CONNECTED] = "not_connected",
        [SCHEMA_REASON_STALE_PEER] = "stale_peer",
        [SCHEMA_REASON_QUOTA] = "quota",
        [SCHEMA_REASON_GUESSES] = "too_many_wrong_keys",
        [SCHEMA_REASON_PEER_DOWN] = "peer_down",
        [SCHEMA_REASON_LOOKUP] = "no_metaserver",
        [SCHEMA_REASON_DRAIN] = "agent_stops",
        [SCHEMA_REASON_CLOSED] = "closed",
        [SCHEMA_REASON_RESTARTED] = "agent_restarts",
        [SCHEMA_REASON_TENANT] = "tenant_gone",
        [SCHEMA_REASON_REVOKED] = "revoked",
        [SCHEMA_REASON_NODE_DRAINED] = "node_drained",
        [SCHEMA_REASON_LEASE] = "lease_too_short",
        [SCHEMA_REASON_QUOTA_VQPS] = "quota_vqps",
        [SCHEMA_REASON_QUOTA_MRS] = "quota_mrs",
        [SCHEMA_REASON_QUOTA_CONTROL_OPS] = "quota_control_ops",
        [SCHEMA_REASON_POOL] = "pool_gone",
        [SCHEMA_REASON_FENCED_REGIONS] = "fenced_regions",
        [SCHEMA_REASON_REGISTER] = "registration",
        [SCHEMA_REASON_UNDER_WAY] = "under_way",
        [SCHEMA_REASON_BEHIND] = "behind",
        [SCHEMA_REASON_ENDPOINTS] = "endpoints",
        [SCHEMA_REASON_DEVICE] = "device",
        [SCHEMA_REASON_ATOMICS] = "no_atomics",
        [SCHEMA_REASON_MRS] = "max_mrs",
        [SCHEMA_REASON_ATOMIC] = "atomic_alignment",
        [SCHEMA_REASON_CLOCK] = "clock",
        [SCHEMA_REASON_FORCED] = "forced",
        [SCHEMA_REASON_DEVICE_LOST] = "device_lost",
        [SCHEMA_REASON_AWAITED] = "node_awaited",
        [SCHEMA_REASON_UNADDRESSED] = "unaddressed",
        [SCHEMA_REASON_LONG] = "message_too_long",
        [SCHEMA_REASON_PORT] = "port_not_heard",
        [SCHEMA_REASON_RECEIVER] = "no_receive_posted",
        [SCHEMA_REASON_MESSAGES] = "no_messages",
        [SCHEMA_REASON_BATCH] = "no_batch",
        [SCHEMA_REASON_CANCELLED] = "cancelled",
        [SCHEMA_REASON_BATCHES] = "batches",
    };
    const size_t count = sizeof names / sizeof names[0];
    return reason < count && names[reason] != NULL ? names[reason] : "unknown";
}
