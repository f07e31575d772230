/* SPDX-License-Identifier: Apache-2.0 */
/* Resources from JSON, by their tables: the reading half of their codecs, for metaservers and
 * agents, with one sentence for each thing that is wrong. A library of its own, since jansson is
 * its. No I/O, no state. Any thread. */
#ifndef SCHEMA_RESOURCE_READ_H
#define SCHEMA_RESOURCE_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/resources.h"

/* What is wrong, and where: "uids[3]", "must be ...". */
struct resource_violation {
    char field[64];
    char detail[256];
};

/* A set of types. */
#define RESOURCE_TYPE(type) (1u << (type))
#define RESOURCE_TYPES_ALL  UINT32_MAX
#define RESOURCE_TYPES_NUMBERS                                                                     \
    (RESOURCE_TYPE(FIELD_BOUND) | RESOURCE_TYPE(FIELD_SIZE) | RESOURCE_TYPE(FIELD_COUNT) |         \
     RESOURCE_TYPE(FIELD_POWER) | RESOURCE_TYPE(FIELD_PERIOD))

/* The fields of those types, of an object; the others, and those that are not there, are left out
 * in *out, which is the kind's struct. What else the object has is not looked at. A selector may be
 * missing in what is `stored`, which may be older than it. An integer is within its range, or 0
 * where that is none; what it must be beyond that resource_numbers_check() says. 0; or -EINVAL and
 * *violation; then *out may be filled in half. */
int resource_read(const struct resource_table *t, json_t *object, uint32_t types, bool stored,
                  void *out, struct resource_violation *violation);

#endif
