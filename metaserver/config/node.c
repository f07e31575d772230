/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of nodes: what is right by itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "resources_private.h"

static int refuse_field(struct meta_violation *violation, const char *field, const char *detail)
{
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return -EINVAL;
}

int meta_node_spec_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    const struct resource_node *n = &resource->node;
    if (n->draining && !n->cordoned)
        return refuse_field(violation, "cordoned",
                            "must be true: a node that is draining takes no workers");
    if (n->numbers.grace_ms != RESOURCE_UNSAID && !n->draining)
        return refuse_field(violation, "grace_ms", "is for a node that is draining");
    const int status = meta_numbers_validate(resource->kind, &n->numbers, violation);
    if (status != 0)
        return status;
    if (n->reason[0] != '\0' && !n->cordoned)
        return refuse_field(violation, "reason", "is for a node that is cordoned");
    if (!base_is_printable(n->reason))
        return refuse_field(violation, "reason", "must have no control characters");
    return 0;
}

const struct resource_node *meta_resources_node_spec(const struct meta_resources *s, const char *id)
{
    static const struct resource_node none = {.numbers = {.grace_ms = RESOURCE_UNSAID}};
    const struct meta_resource *found = meta_resources_find(s, META_NODE, id);
    return found != NULL ? &found->node : &none;
}
