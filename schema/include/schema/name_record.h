/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a region's name, which agents READ from a metaserver's names table: 128 bytes, two
 * cache lines, little-endian.
 *
 * Its key is a hash of tenant and name under the table's secrets, so that who has the record of one
 * name learns nothing of another. It begins as all records do (schema/record.h), so that one kind
 * of table holds it. Workers never READ it: what it grants is given to those of its tenant alone.
 */
#ifndef SCHEMA_NAME_RECORD_H
#define SCHEMA_NAME_RECORD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/record.h"
#include "schema/token.h"

#define SCHEMA_NAME_RECORD_BYTES 128
#define SCHEMA_NAME_MAX          255 /* bytes of a name, without the NUL */

struct schema_table_desc;

struct schema_name_record {
    uint32_t seq;
    uint32_t crc;
    uint8_t key[16];
    uint32_t incarnation; /* of the region's endpoint when it was published */
    uint16_t flags;       /* SCHEMA_RECORD_LIVE */
    uint16_t pool;        /* from here on, what the region's token says */
    uint8_t gid[16];
    uint32_t vkey;
    uint16_t access;
    uint16_t reserved;
    uint64_t addr, length;
    uint8_t secret[16];
    uint32_t tenant; /* whose region it is: workers of others need the secret */
    uint8_t unused[36];
};
static_assert(sizeof(struct schema_name_record) == SCHEMA_NAME_RECORD_BYTES, "two cache lines");
static_assert(offsetof(struct schema_name_record, key) == 8, "layout");
static_assert(offsetof(struct schema_name_record, flags) == 28, "layout");
static_assert(offsetof(struct schema_name_record, secret) == 72, "layout");
static_assert(offsetof(struct schema_name_record, tenant) == 88, "layout");

/* 0; -EINVAL: it is no name: 1 to SCHEMA_NAME_MAX bytes of UTF-8, all of it printable. */
int schema_name_check(const char *name);
/* The key of a tenant's name in that table. */
void schema_name_key(const struct schema_table_desc *d, const char *tenant, const char *name,
                     uint8_t out[16]);
/* Of a region of that tenant (its number). seq and crc are the table's to set. */
struct schema_name_record schema_name_record_make(const uint8_t key[16], uint32_t incarnation,
                                                  uint32_t tenant,
                                                  const struct schema_token *grant);
struct schema_token schema_name_record_grant(const struct schema_name_record *r);

#endif
