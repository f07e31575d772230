/* SPDX-License-Identifier: Apache-2.0 */
/* A record of a table's copy that the code under test believes has to be whole: its CRC is computed
 * here anew. The lookups are wrapped when kedge-sim is linked (CMakeLists.txt). */
#include "torn_watch.h"

#include <string.h>

#include "base/crc32c.h"
#include "ledger.h"
#include "process.h"

bool play_record_is_whole(const void *record, uint64_t generation)
{
    uint32_t head[2]; /* sequence, CRC */
    memcpy(head, record, sizeof head);
    uint32_t crc = base_crc32c(0, &head[0], sizeof head[0]);
    crc =
        base_crc32c(crc, (const uint8_t *)record + sizeof head, SCHEMA_RECORD_BYTES - sizeof head);
    crc = base_crc32c(crc, &generation, sizeof generation);
    return head[0] % 2 == 0 && head[0] != 0 && crc == head[1];
}

void play_record_judge(const struct schema_table_desc *d, const void *record)
{
    if (!play_record_is_whole(record, d->generation))
        play_violation(play_process != NULL ? play_process->name : "?",
                       "it believes a record of a table that is torn");
}

int __wrap_schema_endpoint_find(const struct schema_table_desc *d, const void *span,
                                const uint8_t gid[16], uint16_t pool,
                                struct schema_endpoint_record *out)
{
    const int status = __real_schema_endpoint_find(d, span, gid, pool, out);
    if (status == 0)
        play_record_judge(d, out);
    return status;
}

int __wrap_schema_mr_find(const struct schema_table_desc *d, const void *span, uint32_t vkey,
                          struct schema_mr_record *out)
{
    const int status = __real_schema_mr_find(d, span, vkey, out);
    if (status == 0)
        play_record_judge(d, out);
    return status;
}
