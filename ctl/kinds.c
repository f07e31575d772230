/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set: the table of kinds and of their keys. */
#include <string.h>

#include "ctl/settings.h"

static const struct ctl_kind kinds[] = {
    {"tenant",
     "tenants",
     "",
     false,
     8,
     {{"uids", "UIDS", CTL_UIDS, false},
      {"sessions", "SESSIONS", CTL_NUMBER, false},
      {"vqps", "VQPS", CTL_NUMBER, false},
      {"mrs", "MRS", CTL_NUMBER, false},
      {"memory_bytes", "MEMORY", CTL_SIZE, false},
      {"window_bytes", "WINDOW BYTES", CTL_SIZE, true},
      {"window_ops", "WINDOW OPS", CTL_NUMBER, true},
      {"control_ops_per_s", "CONTROL OPS/S", CTL_NUMBER, true}}},
    {"window",
     "windows",
     "",
     false,
     7,
     {{"scope", "SCOPE", CTL_WORD, false},
      {"tenant", "TENANT", CTL_WORD, false},
      {"node", "NODE", CTL_WORD, false},
      {"gid", "GID", CTL_WORD, false},
      {"pool", "POOL", CTL_WORD, true},
      {"bytes", "BYTES", CTL_SIZE, false},
      {"ops", "OPS", CTL_NUMBER, false}}},
    {"token",
     "tokens",
     "",
     true,
     5,
     {{"scope", "SCOPE", CTL_WORD, false},
      {"tenant", "TENANT", CTL_WORD, false},
      {"node", "NODE", CTL_WORD, false},
      {"gids", "GIDS", CTL_WORDS, false},
      {"expires", "EXPIRES", CTL_TIME, false}}},
    {"node",
     "nodes",
     "/settings",
     false,
     5,
     {{"labels", "LABELS", CTL_LABELS, false},
      {"cordoned", "CORDONED", CTL_BOOL, false},
      {"draining", "DRAINING", CTL_BOOL, false},
      {"grace_ms", "GRACE", CTL_NUMBER, false},
      {"reason", "REASON", CTL_WORD, false}}},
    {"pool",
     "pools",
     "",
     false,
     19,
     {{"nodes", "NODES", CTL_SELECTOR, false},
      {"tenants", "TENANTS", CTL_WORDS, false},
      {"number", "NUMBER", CTL_COUNT, false},
      {"sessions_ahead", "SESSIONS", CTL_COUNT, false},
      {"arenas_ahead", "ARENAS", CTL_COUNT, false},
      {"ahead_max", "AHEAD MAX", CTL_COUNT, false},
      {"queue_pairs_ahead", "QUEUE PAIRS", CTL_COUNT, true},
      {"connections", "CONNECTIONS", CTL_COUNT, true},
      {"responders", "RESPONDERS", CTL_COUNT, true},
      {"dcis", "DCIS", CTL_COUNT, true},
      {"spares", "SPARES", CTL_COUNT, false},
      {"mr_lease_ms", "MR LEASE", CTL_COUNT, true},
      {"grace_ms", "GRACE", CTL_COUNT, true},
      {"service_level", "SERVICE LEVEL", CTL_COUNT, true},
      {"traffic_class", "TRAFFIC CLASS", CTL_COUNT, true},
      {"flow_label", "FLOW LABEL", CTL_COUNT, true},
      {"udp_source_port", "UDP PORT", CTL_COUNT, true},
      {"pkey_index", "P_KEY", CTL_COUNT, true},
      {"mtu", "MTU", CTL_COUNT, true}}},
};

const struct ctl_kind *ctl_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

const struct ctl_kind *ctl_kind_of_list(const char *plural)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].plural, plural) == 0)
            return &kinds[i];
    return NULL;
}
