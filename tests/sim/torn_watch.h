/* SPDX-License-Identifier: Apache-2.0 */
/* Whether records of tables that are believed are whole. Any thread. */
#ifndef SIM_TORN_WATCH_H
#define SIM_TORN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/table.h"

/* A record of either kind, in a table of that generation: its sequence is even, and its CRC right.
 */
bool play_record_is_whole(const void *record, uint64_t generation);
/* A violation unless it is. */
void play_record_judge(const struct schema_table_desc *d, const void *record);

/* What callers of schema_endpoint_find() and schema_mr_find() call instead, and those. */
int __wrap_schema_endpoint_find(const struct schema_table_desc *d, const void *span,
                                const uint8_t gid[16], uint16_t pool,
                                struct schema_endpoint_record *out);
int __real_schema_endpoint_find(const struct schema_table_desc *d, const void *span,
                                const uint8_t gid[16], uint16_t pool,
                                struct schema_endpoint_record *out);
int __wrap_schema_mr_find(const struct schema_table_desc *d, const void *span, uint32_t vkey,
                          struct schema_mr_record *out);
int __real_schema_mr_find(const struct schema_table_desc *d, const void *span, uint32_t vkey,
                          struct schema_mr_record *out);

#endif
