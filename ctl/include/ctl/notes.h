/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_NOTES_H
#define CTL_NOTES_H

#include "ctl/options.h"
#include "ctl/resources.h"

/* Says on standard error what a resource names that is not there: tenants, labels that no node has.
 * Asks the metaserver; silent where it does not answer. */
void ctl_resource_notes(const struct ctl_options *o, const struct resource_table *kind,
                        const struct ctl_resource *resource);

#endif
