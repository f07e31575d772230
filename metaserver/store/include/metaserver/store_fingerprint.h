/* SPDX-License-Identifier: Apache-2.0 */
/* Which process registered as a node, as far as a store tells. Any thread. */
#ifndef METASERVER_STORE_FINGERPRINT_H
#define METASERVER_STORE_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define META_STORE_NODE_ENDPOINTS 16

/* What tells the process that registered from another one of the same incarnation: checksums of
 * what its endpoints are, 32 bits each, so that nothing gives a key away. In any order. */
struct meta_store_fingerprint {
    uint32_t identity; /* of all of them together */
    uint32_t count;    /* 0: an older metaserver stored it, which knew the identity alone */
    struct meta_store_print {
        uint32_t key;  /* of its GID and pool */
        uint32_t body; /* of all of it */
    } print[META_STORE_NODE_ENDPOINTS];
};

/* Whether both are one process, which may have added and dropped endpoints since, and made some
 * anew: one is what it was but for the way to it, which no other process could have. */
bool meta_store_fingerprint_matches(const struct meta_store_fingerprint *known,
                                    const struct meta_store_fingerprint *claimed);

#endif
