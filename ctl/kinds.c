/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set: the table of kinds and of their keys. */
#include <string.h>

#include "ctl/resources.h"

static const struct ctl_kind kinds[] = {
    {"tenant",
     "tenants",
     "",
     false,
     8,
     {{"uids", "UIDS", CTL_UIDS, false, "its workers: uids and ranges of them, 1000,2000-2999"},
      {"sessions", "SESSIONS", CTL_NUMBER, false,
       "workers at a time, on each node; 0: no bound, as of all below"},
      {"vqps", "VQPS", CTL_NUMBER, false, "virtual queue pairs of all of them"},
      {"mrs", "MRS", CTL_NUMBER, false, "memory regions of all of them"},
      {"memory_bytes", "MEMORY", CTL_SIZE, false,
       "of all their arenas, 64KiB or more, such as 4GiB"},
      {"window_bytes", "WINDOW BYTES", CTL_SIZE, true, "in flight at a time"},
      {"window_ops", "WINDOW OPS", CTL_NUMBER, true, "requests in flight at a time"},
      {"control_ops_per_s", "CONTROL OPS/S", CTL_NUMBER, true,
       "what they ask for beside data operations: attaching, regions, connections"}}},
    {"window",
     "windows",
     "",
     false,
     7,
     {{"scope", "SCOPE", CTL_WORD, false,
       "device, destination or tenant: what has such a window each"},
      {"tenant", "TENANT", CTL_WORD, false, "of the scope tenant: whose"},
      {"node", "NODE", CTL_WORD, false, "of the scope destination: this node alone, by its id"},
      {"gid", "GID", CTL_WORD, false, "of the scope destination: this endpoint alone"},
      {"pool", "POOL", CTL_WORD, true, "of the scope destination: as this pool's workers see it"},
      {"bytes", "BYTES", CTL_SIZE, false, "in flight at a time, such as 1MiB; 0: no limit"},
      {"ops", "OPS", CTL_NUMBER, false, "requests in flight at a time; 0: no limit"}}},
    {"token",
     "tokens",
     "",
     true,
     5,
     {{"scope", "SCOPE", CTL_WORD, false,
       "reader, operator, admin, agent or worker: what its bearer may"},
      {"tenant", "TENANT", CTL_WORD, false,
       "of the scope worker: whose workers show it to agents (KEDGE_WORKER_TOKEN)"},
      {"node", "NODE", CTL_WORD, false, "of the scope agent: the id of its node"},
      {"gids", "GIDS", CTL_WORDS, false,
       "of the scope agent: the GIDs that its node may have, with commas"},
      {"expires", "EXPIRES", CTL_TIME, false,
       "2027-01-31T00:00:00Z, or from now on, such as 30d; empty: never"}}},
    {"node",
     "nodes",
     "/settings",
     false,
     5,
     {{"labels", "LABELS", CTL_LABELS, false, "zone=a,rack=7"},
      {"cordoned", "CORDONED", CTL_BOOL, false, "it takes no new workers"},
      {"draining", "DRAINING", CTL_BOOL, false, "and those that it has go"},
      {"grace_ms", "GRACE", CTL_NUMBER, false, "how long these have for that"},
      {"reason", "REASON", CTL_WORD, false, "what workers that are refused are told"}}},
    {"pool",
     "pools",
     "",
     false,
     19,
     {{"nodes", "NODES", CTL_SELECTOR, false,
       "zone=a,rack=7: the nodes with all these labels; or all; needed to create one"},
      {"tenants", "TENANTS", CTL_WORDS, false,
       "whose workers get it, with commas; the others have the agents' own pool"},
      {"number", "NUMBER", CTL_COUNT, false,
       "in records, 1 to 65535; it stays as it is (a hash of the name)"},
      {"sessions_ahead", "SESSIONS", CTL_COUNT, false,
       "kept ready at least, 1 to 1024; as agents' files say where it is not said"},
      {"arenas_ahead", "ARENAS", CTL_COUNT, false, "kept ready at least, 1 to 1024"},
      {"ahead_max", "AHEAD MAX", CTL_COUNT, false,
       "as many are kept ready as came in the busiest second of late, up to this"},
      {"queue_pairs_ahead", "QUEUE PAIRS", CTL_COUNT, true, "without DC: kept ready, 1 to 1024"},
      {"connections", "CONNECTIONS", CTL_COUNT, true,
       "without DC: endpoints that requests can be out to at a time"},
      {"responders", "RESPONDERS", CTL_COUNT, true,
       "without DC: connections that other nodes may have to this one"},
      {"dcis", "DCIS", CTL_COUNT, true, "with DC: initiators"},
      {"spares", "SPARES", CTL_COUNT, false,
       "with DC: initiators that replace broken ones, up to 32"},
      {"mr_lease_ms", "MR LEASE", CTL_COUNT, true,
       "how long peers may believe in a region, from when the pool is made"},
      {"grace_ms", "GRACE", CTL_COUNT, true,
       "its workers end so long after a node has given it up; 0: at once (never)"},
      {"service_level", "SERVICE LEVEL", CTL_COUNT, true,
       "as of [fabric] in kedge-agent.conf(5), as are the following"},
      {"traffic_class", "TRAFFIC CLASS", CTL_COUNT, true, "0 to 255"},
      {"flow_label", "FLOW LABEL", CTL_COUNT, true, "1 to 1048575"},
      {"udp_source_port", "UDP PORT", CTL_COUNT, true, "49152 to 65535, in place of flow_label"},
      {"pkey_index", "P_KEY", CTL_COUNT, true, "place in the port's table"},
      {"mtu", "MTU", CTL_COUNT, true, "256, 512, 1024, 2048 or 4096"}}},
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
