/* SPDX-License-Identifier: Apache-2.0 */
/* A pool: one protection domain of the nodes with its labels. schema/resources.h says what the
 * rows are. What is left out is as each agent's own file says. */
#ifndef SCHEMA_RESOURCES_POOL_H
#define SCHEMA_RESOURCES_POOL_H

/* clang-format off */
#define POOL_FIELDS(NUMBER, CHOICE, REFERENCE, OTHER)                                              \
    OTHER(nodes, FIELD_SELECTOR, IN_ORDER, "NODES", NARROW,                                        \
          "zone=a,rack=7: the nodes with all these labels; or all; needed to create one")          \
    REFERENCE(tenants, FIELD_REFERENCES, TENANT, LAST, "TENANTS", NARROW,                          \
              "whose workers get it, with commas; the others have the agents' own pool")           \
    NUMBER(number, FIELD_COUNT, 1, 65535, "NUMBER", NARROW,                                        \
           "in records, 1 to 65535; it stays as it is (a hash of the name)")                       \
    NUMBER(lanes, FIELD_COUNT, 1, 8, "LANES", WIDE,                                                \
           "1 to 8, each a thread with its own queue pairs, from when the pool is made (1)")       \
    NUMBER(sessions_ahead, FIELD_COUNT, 1, 1024, "SESSIONS", NARROW,                               \
           "kept ready at least, 1 to 1024; as agents' files say where it is not said")            \
    NUMBER(arenas_ahead, FIELD_COUNT, 1, 1024, "ARENAS", NARROW,                                   \
           "kept ready at least, 1 to 1024")                                                       \
    NUMBER(ahead_max, FIELD_COUNT, 1, 1024, "AHEAD MAX", NARROW,                                   \
           "as many are kept ready as came in the busiest second of late, up to this")             \
    NUMBER(queue_pairs_ahead, FIELD_COUNT, 1, 1024, "QUEUE PAIRS", WIDE,                           \
           "without DC: kept ready, 1 to 1024")                                                    \
    NUMBER(connections, FIELD_COUNT, 1, 8192, "CONNECTIONS", WIDE,                                 \
           "without DC: endpoints that requests can be out to at a time")                          \
    NUMBER(responders, FIELD_COUNT, 1, 65536, "RESPONDERS", WIDE,                                  \
           "without DC: connections that other nodes may have to this one")                        \
    NUMBER(dcis, FIELD_COUNT, 2, 32, "DCIS", WIDE, "with DC: initiators")                          \
    NUMBER(spares, FIELD_COUNT, 0, 32, "SPARES", NARROW,                                           \
           "with DC: initiators that replace broken ones, up to 32")                               \
    NUMBER(mr_lease_ms, FIELD_PERIOD, 10, 3600000, "MR LEASE", WIDE,                               \
           "how long peers may believe in a region, from when the pool is made")                   \
    NUMBER(grace_ms, FIELD_PERIOD, 0, RESOURCE_GRACE_MAX_MS, "GRACE", WIDE,                        \
           "its workers end so long after a node has given it up; 0: at once (never)")             \
    NUMBER(service_level, FIELD_COUNT, 0, 15, "SERVICE LEVEL", WIDE,                               \
           "as of [fabric] in kedge-agent.conf(5), as are the following")                          \
    NUMBER(traffic_class, FIELD_COUNT, 0, 255, "TRAFFIC CLASS", WIDE, "0 to 255")                  \
    NUMBER(flow_label, FIELD_COUNT, 1, 1048575, "FLOW LABEL", WIDE, "1 to 1048575")                \
    NUMBER(udp_source_port, FIELD_COUNT, 49152, 65535, "UDP PORT", WIDE,                           \
           "49152 to 65535, in place of flow_label")                                               \
    NUMBER(pkey_index, FIELD_COUNT, 0, 65535, "P_KEY", WIDE, "place in the port's table")          \
    NUMBER(mtu, FIELD_POWER, 256, 4096, "MTU", WIDE, "256, 512, 1024, 2048 or 4096")
/* clang-format on */

#endif
