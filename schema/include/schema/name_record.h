/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a region's name, which agents READ from a metaserver's names table: 128 bytes, two
 * cache lines, little-endian.
 *
 * Its key is a hash of the name and its space under the table's secrets, so that who has the record
 * of one name learns nothing of another. A space is a tenant's name: what its workers have
 * published for their own; or "OWNER,READER": what they have published for those of another
 * tenant. So names for others are in the owner's hands alone, and take none from those that the
 * reader's workers have. It begins as all records do (schema/record.h), so that one kind
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
#define SCHEMA_NAME_TENANT_MAX   31  /* of a tenant's */
#define SCHEMA_NAME_SPACE_BYTES  64  /* of a space, with its NUL */

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
/* The space of what the owner's workers publish for those of a reader ("": of their own tenant). 0;
 * -EINVAL: one of them is no tenant's name, of which none has a comma. */
int schema_name_space(const char *owner, const char *reader, char out[SCHEMA_NAME_SPACE_BYTES]);
/* The space in which a reader looks for what that owner ("": the reader's own tenant) has published
 * for him. Likewise. */
int schema_name_space_of(const char *owner, const char *reader, char out[SCHEMA_NAME_SPACE_BYTES]);
/* Its owner. Returns its reader, borrowed: "": the owner. */
const char *schema_name_owner(const char *space, char out[SCHEMA_NAME_SPACE_BYTES]);
/* The key of a name in that table. */
void schema_name_key(const struct schema_table_desc *d, const char *space, const char *name,
                     uint8_t out[16]);
/* Of a region of that tenant (its number). seq and crc are the table's to set. */
struct schema_name_record schema_name_record_make(const uint8_t key[16], uint32_t incarnation,
                                                  uint32_t tenant,
                                                  const struct schema_token *grant);
struct schema_token schema_name_record_grant(const struct schema_name_record *r);

#endif
