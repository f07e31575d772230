/* SPDX-License-Identifier: Apache-2.0 */
/* A window: how much may be in flight. schema/resources.h says what the rows are. */
#ifndef SCHEMA_RESOURCES_WINDOW_H
#define SCHEMA_RESOURCES_WINDOW_H

/* clang-format off */
#define RESOURCE_WINDOW_SCOPES(WORD)                                                               \
    WORD(RESOURCE_WINDOW_DEVICE, "device")                                                         \
    WORD(RESOURCE_WINDOW_DESTINATION, "destination")                                               \
    WORD(RESOURCE_WINDOW_TENANT, "tenant")

#define WINDOW_FIELDS(NUMBER, CHOICE, REFERENCE, OTHER)                                            \
    CHOICE(scope, resource_window_scope, IN_ORDER, "SCOPE", NARROW,                                \
           "what has such a window each")                                                          \
    REFERENCE(tenant, FIELD_REFERENCE, TENANT, IN_ORDER, "TENANT", NARROW,                         \
              "of the scope tenant: whose")                                                        \
    REFERENCE(node, FIELD_REFERENCE, NODE, IN_ORDER, "NODE", NARROW,                               \
              "of the scope destination: this node alone, by its id")                              \
    OTHER(gid, FIELD_GID, IN_ORDER, "GID", NARROW,                                                 \
          "of the scope destination: this endpoint alone")                                         \
    REFERENCE(pool, FIELD_REFERENCE, POOL, IN_ORDER, "POOL", WIDE,                                 \
              "of the scope destination: as this pool's workers see it")                           \
    NUMBER(bytes, FIELD_SIZE, 1, RESOURCE_NUMBER_MAX, "BYTES", NARROW,                             \
           "in flight at a time, such as 1MiB; 0: no limit")                                       \
    NUMBER(ops, FIELD_BOUND, 1, RESOURCE_NUMBER_MAX, "OPS", NARROW,                                \
           "work requests in flight at a time; 0: no limit")
/* clang-format on */

#endif
