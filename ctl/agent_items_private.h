/* SPDX-License-Identifier: Apache-2.0 */
/* Between leases.c, revoke.c and describe_shown.c: whom to ask for workers and leases, and how they
 * are shown. */
#ifndef CTL_AGENT_ITEMS_PRIVATE_H
#define CTL_AGENT_ITEMS_PRIVATE_H

#include "ctl/agent_items.h"
#include "ctl/fetch.h"
#include "ctl/options.h"
#include "ctl/print_table.h"

enum { CTL_AGENT_ITEM_PATH_BYTES = 1000 };

/* A table for them, the caller's to free. 0 or -ENOMEM. */
int ctl_agent_item_table_new(const struct ctl_agent_item_kind *kind, bool wide,
                             struct ctl_table **out);
void ctl_agent_item_rows(struct ctl_table *table, const struct ctl_agent_item_kind *kind, bool wide,
                         const struct ctl_agent_item_page *page);
/* Asks the agent of this host; or the metaserver, when the options name a node. A DELETE takes as
 * long as revoking does. As ctl_call_server(). */
int ctl_agent_item_call(const struct ctl_options *o, const char *method, const char *path,
                        struct http_result *out, struct base_errbuf *err);
/* The path of o->id. 0 or -EINVAL: that is none. */
int ctl_agent_item_path(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                        char out[CTL_AGENT_ITEM_PATH_BYTES], struct base_errbuf *err);
/* Appends o->worker, if there is one, to a path. 0 or -EINVAL. */
int ctl_agent_item_of_worker(const struct ctl_options *o, char *path, struct base_errbuf *err);
/* One page from a cursor ("": the first), the caller's to fini. 0 or -errno. */
int ctl_agent_item_fetch(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                         const char *cursor, struct ctl_agent_item_page *out,
                         struct base_errbuf *err);
/* That of o->id, the caller's to fini. 0 or -errno. */
int ctl_agent_item_fetch_one(const struct ctl_options *o, struct ctl_agent_item *out,
                             struct base_errbuf *err);
/* A field a line, then its sentences, to standard output. */
void ctl_agent_item_print(const struct ctl_agent_item_kind *kind,
                          const struct ctl_agent_item *item);

#endif
