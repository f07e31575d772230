/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions as a store keeps them. Any thread. */
#ifndef METASERVER_STORE_NAME_H
#define METASERVER_STORE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define META_STORE_ID_BYTES    64  /* [a-z0-9][a-z0-9.-]{0,62} and NUL */
#define META_STORE_NAME_BYTES  256 /* of a region's name, and NUL */
#define META_STORE_GRANT_BYTES 96  /* of a region's token, and NUL */
#define META_STORE_NAMES_MAX   16  /* names that one transaction takes back */

/* A region's name among those of its tenant, and who has it: one life of a node. It is good for
 * nothing once that life is over, whether it is stored or not. */
struct meta_store_name {
    char tenant[META_STORE_ID_BYTES]; /* or its space: schema/name_record.h */
    char name[META_STORE_NAME_BYTES];
    char node[META_STORE_ID_BYTES];
    /* Of its endpoint: the node's, or a later one that the endpoint got in the same life of the
     * node, of which no later life has one that is less. */
    uint32_t incarnation;
    char grant[META_STORE_GRANT_BYTES]; /* the region's token: who holds it may use the region */
};

/* Of their tenants, then names: as strcmp(). */
int meta_store_name_order(const struct meta_store_name *a, const struct meta_store_name *b);
/* All of it. */
bool meta_store_name_equals(const struct meta_store_name *a, const struct meta_store_name *b);
/* Whether a name may be published, whose owner is stored, with no later life than its name's, and
 * not expired (lives); known: who has the name, and whether that life is; NULL: nobody. 0, or as a
 * commit. */
int meta_store_name_check(const struct meta_store_name *name, bool lives,
                          const struct meta_store_name *known, bool known_lives,
                          struct base_errbuf *err);

#endif
