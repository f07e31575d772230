/* SPDX-License-Identifier: Apache-2.0 */
/* Between describe.c and describe_shown.c: pages on one thing. */
#ifndef CTL_DESCRIBE_PRIVATE_H
#define CTL_DESCRIBE_PRIVATE_H

#include "base/text.h"
#include "ctl/options.h"

/* What nobody sets: a worker, a lease, a region's name or a metaserver. */
int ctl_describe_shown(const struct ctl_options *o, struct base_errbuf *err);
/* How that metaserver is, a line a field to standard output, or as a member of an object that is
 * being written. 0 or -errno. */
int ctl_metaserver_describe(const struct ctl_options *o, struct base_text *json,
                            struct base_errbuf *err);
/* The newest events of such kinds of what is called so, as a table to standard output, or as a
 * member of an object that is being written. 0 or -errno. */
int ctl_describe_events(const struct ctl_options *o, const char *kinds, const char *name,
                        struct base_text *json, struct base_errbuf *err);

#endif
