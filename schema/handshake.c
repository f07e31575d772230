/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/handshake.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAX_24_BITS 0xffffffu

static bool names_queue_pair(const struct schema_handshake *h)
{
    return h->kind == SCHEMA_HANDSHAKE_REQUEST || h->kind == SCHEMA_HANDSHAKE_ACCEPT;
}

int schema_handshake_read(const void *payload, size_t bytes, struct schema_handshake *out)
{
    struct schema_handshake h;
    if (bytes < sizeof h)
        return -EPROTO;
    memcpy(&h, payload, sizeof h);
    if (h.magic != SCHEMA_HANDSHAKE_MAGIC)
        return -EPROTO;
    if (h.version != SCHEMA_HANDSHAKE_VERSION)
        return -EPROTONOSUPPORT;
    if (bytes != sizeof h || h.kind < SCHEMA_HANDSHAKE_REQUEST ||
        h.kind > SCHEMA_HANDSHAKE_MESSAGES || h.nonce == 0 || h.ud_qpn == 0 ||
        h.ud_qpn > MAX_24_BITS || h.messages_qpn > MAX_24_BITS)
        return -EPROTO;
    if (names_queue_pair(&h) && (h.qpn == 0 || h.qpn > MAX_24_BITS || h.psn > MAX_24_BITS ||
                                 h.mtu < 1 || h.mtu > 5 || h.rd_atomic < 1))
        return -EPROTO;
    *out = h;
    return 0;
}
