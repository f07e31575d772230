/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant: whose workers they are, and how much they may have. schema/resources.h says what the
 * rows are. */
#ifndef SCHEMA_RESOURCES_TENANT_H
#define SCHEMA_RESOURCES_TENANT_H

/* clang-format off */
#define TENANT_FIELDS(NUMBER, CHOICE, REFERENCE, OTHER)                                            \
    OTHER(uids, FIELD_UIDS, IN_ORDER, "UIDS", NARROW,                                              \
          "its workers: uids and ranges of them, 1000,2000-2999")                                  \
    NUMBER(sessions, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "SESSIONS", NARROW,                      \
           "workers at a time, on each node; 0: no bound, as of all below")                        \
    NUMBER(vqps, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "VQPS", NARROW,                              \
           "virtual queue pairs of all of them")                                                   \
    NUMBER(mrs, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "MRS", NARROW,                                \
           "memory regions of all of them")                                                        \
    NUMBER(memory_bytes, FIELD_SIZE, 65536, RESOURCE_NUMBER_MAX, "MEMORY", NARROW,                 \
           "of all their arenas, 64KiB or more, such as 4GiB")                                     \
    NUMBER(window_bytes, FIELD_SIZE, 1, RESOURCE_NUMBER_MAX, "WINDOW BYTES", WIDE,                 \
           "in flight at a time")                                                                  \
    NUMBER(window_ops, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "WINDOW OPS", WIDE,                    \
           "work requests in flight at a time")                                                    \
    NUMBER(control_ops_per_s, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "CONTROL OPS/S", WIDE,          \
           "what they ask for beside data operations: attaching, regions, connections")            \
    NUMBER(region_names, FIELD_COUNT, 1, 65536, "REGION NAMES", WIDE,                              \
           "names of regions, on all nodes, with those for other tenants' workers (256)")
/* clang-format on */

#endif
