/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of PUT /v1/nodes/{id} and POST .../renew: what is believed must be within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "metaserver/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct meta_registration r;
    struct meta_responder_peer reader;
    struct meta_violation fault = {.field = ""};
    uint32_t incarnation = 0;
    if (meta_json_registration("n", data, size, &r, &reader, &fault) == 0) {
        BASE_ASSERT(r.incarnation > 0 && strcmp(r.id, "n") == 0);
        BASE_ASSERT(r.endpoint_count >= 1 && r.endpoint_count <= META_STORE_NODE_ENDPOINTS);
        for (uint32_t i = 0; i < r.endpoint_count; i++) {
            const struct schema_endpoint_record *e = &r.endpoint[i];
            BASE_ASSERT(e->flags & SCHEMA_RECORD_LIVE && e->incarnation == r.incarnation);
            BASE_ASSERT(e->dctn_mtu >> 24 >= 1 && e->dctn_mtu >> 24 <= 5);
            BASE_ASSERT(e->udqpn_slots >> 24 <= 30);
        }
        BASE_ASSERT(reader.qpn <= 0xffffff && reader.psn <= 0xffffff);
        uint32_t of = 0;
        while (reader.qpn != 0 && r.endpoint[of].pool != reader.pool)
            BASE_ASSERT(++of < r.endpoint_count);
        BASE_ASSERT(reader.qpn == 0 || (reader.mtu >= IBV_MTU_256 && reader.mtu <= IBV_MTU_4096 &&
                                        reader.gid[0] != 0xff));
    } else {
        BASE_ASSERT(fault.detail[0] != '\0');
        BASE_ASSERT(memchr(fault.field, '\0', sizeof fault.field) != NULL);
    }
    if (meta_json_renewal(data, size, &incarnation, &fault) == 0)
        BASE_ASSERT(incarnation > 0);
    return 0;
}
