/* SPDX-License-Identifier: Apache-2.0 */
#include "fingerprint.h"

#include <stddef.h>

#include "base/crc32c.h"
#include "base/hash.h"

void meta_fingerprint_of(const struct meta_registration *r, struct meta_store_fingerprint *out)
{
    *out = (struct meta_store_fingerprint){.count = r->endpoint_count};
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        const struct schema_endpoint_record *e = &r->endpoint[i];
        size_t from = offsetof(struct schema_endpoint_record, gid);
        uint32_t crc = base_crc32c(0, (const uint8_t *)e + from, SCHEMA_RECORD_BYTES - from);
        /* Mixed before they are added: a CRC is linear, the same change in two would cancel out. */
        out->print[i].body = (uint32_t)base_hash_u64(crc, 1);
        out->print[i].key = (uint32_t)base_hash_gid(e->gid, e->pool, 1);
        out->identity += out->print[i].body;
    }
}

bool meta_fingerprint_matches(const struct meta_store_fingerprint *known,
                              const struct meta_store_fingerprint *claimed)
{
    if (known->identity == claimed->identity)
        return true;
    for (uint32_t i = 0; i < known->count; i++)
        for (uint32_t k = 0; k < claimed->count; k++)
            if (known->print[i].key == claimed->print[k].key &&
                known->print[i].body == claimed->print[k].body)
                return true;
    return false;
}
