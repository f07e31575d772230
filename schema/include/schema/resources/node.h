/* SPDX-License-Identifier: Apache-2.0 */
/* A node's spec: what operators say of it. schema/resources.h says what the rows are. */
#ifndef SCHEMA_RESOURCES_NODE_H
#define SCHEMA_RESOURCES_NODE_H

/* clang-format off */
#define NODE_FIELDS(NUMBER, CHOICE, REFERENCE, OTHER)                                              \
    OTHER(labels, FIELD_LABELS, IN_ORDER, "LABELS", NARROW, "zone=a,rack=7")                       \
    OTHER(cordoned, FIELD_BOOL, IN_ORDER, "CORDONED", NARROW, "it takes no new workers")           \
    OTHER(draining, FIELD_BOOL, IN_ORDER, "DRAINING", NARROW, "and those that it has go")          \
    NUMBER(grace_ms, FIELD_PERIOD, 0, RESOURCE_GRACE_MAX_MS, "GRACE", NARROW,                      \
           "how long these have for that; 0: at once (for ever)")                                  \
    OTHER(reason, FIELD_TEXT, IN_ORDER, "REASON", NARROW,                                          \
          "what workers that are refused are told")
/* clang-format on */

#endif
