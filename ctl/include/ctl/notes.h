/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of resources that were set just now, beside that they were. One thread. */
#ifndef CTL_NOTES_H
#define CTL_NOTES_H

#include "ctl/options.h"
#include "ctl/resources.h"

/* One that was set just now. Borrowed. */
struct ctl_set {
    const struct resource_table *kind;
    const struct ctl_resource *resource;
};

/* Says on standard error what of these was taken and may be a slip: what they name and is not
 * there (tenants, nodes, labels that no node has), tenants that nobody belongs to, windows that
 * bound nothing, and pools that are not in force on some node, for which it waits 2 s of each at
 * most. Asks the metaserver; silent where it does not answer. */
void ctl_resource_notes(const struct ctl_options *o, const struct ctl_set *set, size_t count);

#endif
