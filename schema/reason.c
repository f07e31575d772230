/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/reason.h"

#include <stddef.h>

#include "schema/session.h"

const char *kedge_reason_name(uint32_t reason)
{
    static const char *const names[] = {
        [KEDGE_REASON_NONE] = "none",
        [KEDGE_REASON_DESCRIPTOR] = "malformed_request",
        [KEDGE_REASON_RING] = "malformed_ring",
        [KEDGE_REASON_LOCAL_RANGE] = "local_range",
        [KEDGE_REASON_REMOTE_RANGE] = "remote_range",
        [KEDGE_REASON_VKEY] = "unknown_key",
        [KEDGE_REASON_ACCESS] = "access",
        [KEDGE_REASON_ALIGNMENT] = "alignment",
        [KEDGE_REASON_NOT_CONNECTED] = "not_connected",
        [KEDGE_REASON_STALE_PEER] = "stale_peer",
        [KEDGE_REASON_QUOTA] = "quota",
        [KEDGE_REASON_GUESSES] = "too_many_wrong_keys",
        [KEDGE_REASON_PEER_DOWN] = "peer_down",
        [KEDGE_REASON_LOOKUP] = "no_metaserver",
        [KEDGE_REASON_DRAIN] = "agent_stops",
        [KEDGE_REASON_CLOSED] = "closed",
        [KEDGE_REASON_SUSPECT_FULL] = "suspect_full",
        [KEDGE_REASON_RESTARTED] = "agent_restarts",
        [KEDGE_REASON_TENANT] = "tenant_gone",
        [KEDGE_REASON_REVOKED] = "revoked",
        [KEDGE_REASON_NODE_DRAINED] = "node_drained",
        [KEDGE_REASON_LEASE] = "lease_too_short",
        [KEDGE_REASON_QUOTA_VQPS] = "quota_vqps",
        [KEDGE_REASON_QUOTA_MRS] = "quota_mrs",
        [KEDGE_REASON_QUOTA_CONTROL_OPS] = "quota_control_ops",
        [KEDGE_REASON_POOL] = "pool_gone",
        [KEDGE_REASON_FENCED_REGIONS] = "fenced_regions",
        [KEDGE_REASON_REGISTER] = "registration",
        [KEDGE_REASON_UNDER_WAY] = "under_way",
        [KEDGE_REASON_BEHIND] = "behind",
        [KEDGE_REASON_ENDPOINTS] = "endpoints",
        [KEDGE_REASON_DEVICE] = "device",
        [KEDGE_REASON_ATOMICS] = "no_atomics",
        [KEDGE_REASON_MRS] = "max_mrs",
        [KEDGE_REASON_ATOMIC] = "atomic_alignment",
        [KEDGE_REASON_CLOCK] = "clock",
        [KEDGE_REASON_FORCED] = "forced",
    };
    const size_t count = sizeof names / sizeof names[0];
    return reason < count && names[reason] != NULL ? names[reason] : "unknown";
}
