/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_name.h"

#include <errno.h>
#include <string.h>

int meta_store_name_order(const struct meta_store_name *a, const struct meta_store_name *b)
{
    const int order = strcmp(a->tenant, b->tenant);
    return order != 0 ? order : strcmp(a->name, b->name);
}

bool meta_store_name_equals(const struct meta_store_name *a, const struct meta_store_name *b)
{
    return meta_store_name_order(a, b) == 0 && a->incarnation == b->incarnation &&
           strcmp(a->node, b->node) == 0 && strcmp(a->grant, b->grant) == 0;
}

int meta_store_name_check(const struct meta_store_name *name, bool lives,
                          const struct meta_store_name *known, bool known_lives,
                          struct base_errbuf *err)
{
    if (!lives)
        return base_err(err, -ESTALE, "node %s is not registered with incarnation %u", name->node,
                        name->incarnation);
    if (known == NULL || !known_lives || meta_store_name_equals(name, known))
        return 0;
    return base_err(err, -EEXIST, "the name is of a region of node %s, which is alive",
                    known->node);
}
