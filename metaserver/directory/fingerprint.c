/* SPDX-License-Identifier: Apache-2.0 */
#include "fingerprint.h"

#include <stddef.h>

#include "base/crc32c.h"
#include "base/hash.h"

/* What stays for as long as a process has an endpoint, and another process has not: its keys, and
 * its MR table. The numbers of the DC target and of the queue pair for handshakes do not, which are
 * made anew when they break or their P_Key moves, nor where the port is and what it takes. */
static uint32_t hash_identity(const struct schema_endpoint_record *record)
{
    struct schema_endpoint_record e = *record;
    const size_t from = offsetof(struct schema_endpoint_record, gid);
    e.dctn_mtu = e.udqpn_slots = 0;
    e.lid = 0;
    return base_crc32c(0, (const uint8_t *)&e + from, SCHEMA_RECORD_BYTES - from);
}

void meta_fingerprint_of(const struct meta_registration *r, struct meta_store_fingerprint *out)
{
    *out = (struct meta_store_fingerprint){.count = r->endpoint_count};
    for (uint32_t i = 0; i < r->endpoint_count; i++) {
        const struct schema_endpoint_record *e = &r->endpoint[i];
        /* Mixed before they are added: a CRC is linear, the same change in two would cancel out. */
        out->print[i].body = (uint32_t)base_hash_u64(hash_identity(e), 1);
        out->print[i].key = (uint32_t)base_hash_gid(e->gid, e->pool, 1);
        out->identity += out->print[i].body;
    }
}
