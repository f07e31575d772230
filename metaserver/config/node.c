/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of nodes: what is right by itself. */
#include <errno.h>
#include <stdio.h>

#include "resources_private.h"

int meta_node_spec_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    const char *detail, *field = resource_node_check(&resource->node, &detail);
    if (field == NULL)
        return meta_numbers_validate(resource->kind, &resource->node.numbers, violation);
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return -EINVAL;
}

const struct resource_node *meta_resources_node_spec(const struct meta_resources *s, const char *id)
{
    static const struct resource_node none = {.numbers = {.grace_ms = RESOURCE_UNSAID}};
    const struct meta_resource *found = meta_resources_find(s, META_NODE, id);
    return found != NULL ? &found->node : &none;
}
