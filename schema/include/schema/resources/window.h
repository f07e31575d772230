/* SPDX-License-Identifier: Apache-2.0 */
/* A window: how much may be in flight. schema/resources.h says what the rows are. */
#ifndef SCHEMA_RESOURCES_WINDOW_H
#define SCHEMA_RESOURCES_WINDOW_H

/* clang-format off */
#define WINDOW_FIELDS(NUMBER, OTHER)                                                               \
    OTHER(scope, FIELD_WORD, "SCOPE", NARROW,                                                      \
          "device, destination or tenant: what has such a window each")                            \
    OTHER(tenant, FIELD_WORD, "TENANT", NARROW, "of the scope tenant: whose")                      \
    OTHER(node, FIELD_WORD, "NODE", NARROW,                                                        \
          "of the scope destination: this node alone, by its id")                                  \
    OTHER(gid, FIELD_WORD, "GID", NARROW, "of the scope destination: this endpoint alone")         \
    OTHER(pool, FIELD_WORD, "POOL", WIDE,                                                          \
          "of the scope destination: as this pool's workers see it")                               \
    NUMBER(bytes, FIELD_SIZE, 1, RESOURCE_NUMBER_MAX, "BYTES", NARROW,                             \
           "in flight at a time, such as 1MiB; 0: no limit")                                       \
    NUMBER(ops, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "OPS", NARROW,                                \
           "requests in flight at a time; 0: no limit")
/* clang-format on */

#endif
