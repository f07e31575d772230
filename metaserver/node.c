/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of nodes, as settings: what is right by itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "resources_private.h"

static int refuse_field(struct kedge_fault *fault, const char *field, const char *detail)
{
    snprintf(fault->field, sizeof fault->field, "%s", field);
    snprintf(fault->detail, sizeof fault->detail, "%s", detail);
    return -EINVAL;
}

int kedge_node_validate(struct kedge_setting *setting, struct kedge_fault *fault)
{
    const struct kedge_node *n = &setting->node;
    if (n->draining && !n->cordoned)
        return refuse_field(fault, "cordoned",
                            "must be true: a node that is draining takes no workers");
    if (n->grace_ms != 0 && !n->draining)
        return refuse_field(fault, "grace_ms", "is for a node that is draining");
    if (n->grace_ms > KEDGE_GRACE_MAX_MS)
        return refuse_field(fault, "grace_ms", "must be at most 9007199254: 104 days");
    if (n->reason[0] != '\0' && !n->cordoned)
        return refuse_field(fault, "reason", "is for a node that is cordoned");
    for (const char *c = n->reason; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return refuse_field(fault, "reason", "must have no control characters");
    return 0;
}

bool kedge_node_same(const struct kedge_setting *one, const struct kedge_setting *other)
{
    const struct kedge_node *a = &one->node, *b = &other->node;
    return a->cordoned == b->cordoned && a->draining == b->draining && a->grace_ms == b->grace_ms &&
           strcmp(a->labels.text, b->labels.text) == 0 && strcmp(a->reason, b->reason) == 0;
}

const struct kedge_node *kedge_settings_node(const struct kedge_settings *s, const char *id)
{
    static const struct kedge_node none;
    const struct kedge_setting *found = kedge_settings_find(s, KEDGE_NODE, id);
    return found != NULL ? &found->node : &none;
}
