/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl's commands: each asks, and prints on standard output. 0, or -errno with a sentence. */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include "ctl/options.h"

int ctl_status(const struct ctl_options *o, struct base_errbuf *err);
int ctl_node_list(const struct ctl_options *o, struct base_errbuf *err);
int ctl_node_get(const struct ctl_options *o, struct base_errbuf *err);
/* label, cordon, uncordon, drain. -ECONNRESET: it waits, and the agent is heard of no more. */
int ctl_node_change(const struct ctl_options *o, struct base_errbuf *err);
/* -EBUSY: its agent is alive, or may be. */
int ctl_node_delete(const struct ctl_options *o, struct base_errbuf *err);
/* -EHOSTUNREACH: one of them does not answer. */
int ctl_metaserver_list(const struct ctl_options *o, struct base_errbuf *err);
int ctl_agent_status(const struct ctl_options *o, struct base_errbuf *err);
/* What an agent has said of itself, as people read it, to standard output. 0 or -errno. */
int ctl_agent_status_print(const char *body, size_t bytes, struct base_errbuf *err);
/* Of o->kind. */
int ctl_resource_list(const struct ctl_options *o, struct base_errbuf *err);
int ctl_resource_get(const struct ctl_options *o, struct base_errbuf *err);
/* -EEXIST: it is there already. */
int ctl_resource_create(const struct ctl_options *o, struct base_errbuf *err);
int ctl_resource_set(const struct ctl_options *o, struct base_errbuf *err);
int ctl_resource_delete(const struct ctl_options *o, struct base_errbuf *err);
int ctl_event_list(const struct ctl_options *o, struct base_errbuf *err);
/* Returns only when the stream has ended: never 0. */
int ctl_event_watch(const struct ctl_options *o, struct base_errbuf *err);
/* -EINVAL also when the file cannot be read. What stands before the object that failed is applied.
 */
int ctl_apply(const struct ctl_options *o, struct base_errbuf *err);
/* With o->dry_run nothing is set. What files would change. -EIO: something. */
int ctl_diff(const struct ctl_options *o, struct base_errbuf *err);
/* Of this program, and of the metaserver. */
int ctl_version(const struct ctl_options *o, struct base_errbuf *err);
/* Of o->kind. */
int ctl_describe(const struct ctl_options *o, struct base_errbuf *err);
/* Asks nobody. -EINVAL: there is no such kind or field. */
int ctl_explain(const struct ctl_options *o, struct base_errbuf *err);
/* Of o->kind, asked of the local agent. */
int ctl_agent_item_list(const struct ctl_options *o, struct base_errbuf *err);
int ctl_agent_item_get(const struct ctl_options *o, struct base_errbuf *err);
/* Nodes or tenants, by o->kind, with what their workers do in o->interval_ms. */
int ctl_top(const struct ctl_options *o, struct base_errbuf *err);
/* Waits until they are over. -ETIMEDOUT: they are withdrawn, and not over yet. Of all workers: what
 * became of the first that failed. */
int ctl_lease_revoke(const struct ctl_options *o, struct base_errbuf *err);
/* These ask nobody. -ENOENT: there is none of that name. */
int ctl_context_list(const struct ctl_options *o, struct base_errbuf *err);
int ctl_context_get(const struct ctl_options *o, struct base_errbuf *err);
int ctl_context_use(const struct ctl_options *o, struct base_errbuf *err);
int ctl_context_change(const struct ctl_options *o, struct base_errbuf *err); /* `set` */
int ctl_context_delete(const struct ctl_options *o, struct base_errbuf *err);
/* -EIO: the metaserver is slow. */
int ctl_check_perf(const struct ctl_options *o, struct base_errbuf *err);
/* -EIO when something that the soft provider needs is broken. */
int ctl_doctor(const struct ctl_options *o, struct base_errbuf *err);

#endif
