/* SPDX-License-Identifier: Apache-2.0 */
/* How a node's fabric works, in words and as the REST interface has it. */
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/format.h"
#include "ctl/nodes.h"

/* "node-b, node-c": whom it does not reach, and by whom it is not reached. */
static void list_targets(const struct ctl_fabric *f, char *out, size_t size)
{
    size_t used = 0;
    bool listed = f->by[0] == '\0';
    out[0] = '\0';
    for (size_t i = 0; i < f->failing && used < size; i++) {
        listed |= strcmp(f->towards[i].node, f->by) == 0;
        used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ",
                                 f->towards[i].table ? "the metaserver" : f->towards[i].node);
    }
    if (!listed && used < size)
        snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", f->by);
}

const char *ctl_fabric_text(const struct ctl_fabric *f, bool all, char out[CTL_FABRIC_TEXT])
{
    char names[CTL_FABRIC_TEXT / 2], time[CTL_AMOUNT_BYTES];
    (void)ctl_format_age(f->for_ms, time);
    list_targets(f, names, sizeof names);
    if (f->state[0] == '\0')
        snprintf(out, CTL_FABRIC_TEXT, "-");
    else if (strcmp(f->state, "unreachable") == 0 && all)
        snprintf(out, CTL_FABRIC_TEXT, "unreachable by %llu of %llu for %s%s%s",
                 (unsigned long long)f->failed_by, (unsigned long long)f->tried_by, time,
                 f->failing > 0 ? "; fails towards " : "", names);
    else if (strcmp(f->state, "unreachable") == 0)
        snprintf(out, CTL_FABRIC_TEXT, "unreachable by %llu of %llu",
                 (unsigned long long)f->failed_by, (unsigned long long)f->tried_by);
    else if (strcmp(f->state, "failing") == 0 && all)
        snprintf(out, CTL_FABRIC_TEXT, "failing towards %zu of %llu for %s: %s", f->failing,
                 (unsigned long long)f->tried, time, names);
    else if (strcmp(f->state, "failing") == 0)
        snprintf(out, CTL_FABRIC_TEXT, "failing towards %zu of %llu", f->failing,
                 (unsigned long long)f->tried);
    else if (strcmp(f->state, "undecided") == 0 && all)
        snprintf(out, CTL_FABRIC_TEXT,
                 "undecided for %s: between this node and %s, and no other node has tried", time,
                 names);
    else if (strcmp(f->state, "undecided") == 0)
        snprintf(out, CTL_FABRIC_TEXT, "undecided: this node or %s", names);
    else
        snprintf(out, CTL_FABRIC_TEXT, "%s", f->state);
    return out;
}

void ctl_fabric_json(struct base_text *t, const struct ctl_fabric *f)
{
    if (f->state[0] == '\0')
        return;
    base_json_object(t, "fabric");
    base_json_string(t, "state", f->state);
    if (f->says_for)
        base_json_u64(t, "for_ms", f->for_ms);
    base_json_u64(t, "tried", f->tried);
    base_json_array(t, "failing");
    for (size_t i = 0; i < f->failing; i++) {
        base_json_object(t, NULL);
        if (f->towards[i].table)
            base_json_bool(t, "table", true);
        else
            base_json_string(t, "node", f->towards[i].node);
        base_json_string(t, "error", f->towards[i].error);
        base_json_u64(t, "for_ms", f->towards[i].for_ms);
        base_json_object_end(t);
    }
    base_json_array_end(t);
    base_json_u64(t, "tried_by", f->tried_by);
    base_json_u64(t, "failed_by", f->failed_by);
    if (f->by[0] != '\0')
        base_json_string(t, "not_reached_by", f->by);
    base_json_object_end(t);
}
