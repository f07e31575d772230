/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl: parses, runs one command, says what went wrong. */
#include <errno.h>
#include <stdio.h>

#include "base/version.h"
#include "ctl/commands.h"
#include "ctl/json.h"

/* So need not be told where to go, and are of use when a context is wrong. */
static bool asks_nobody(enum ctl_command command)
{
    return command == CTL_HELP || command == CTL_EXPLAIN || command == CTL_OWN_VERSION ||
           command == CTL_CONTEXT_LIST || command == CTL_CONTEXT_GET ||
           command == CTL_CONTEXT_USE || command == CTL_CONTEXT_SET ||
           command == CTL_CONTEXT_DELETE;
}

static int run_context(const struct ctl_options *o, struct base_errbuf *err)
{
    switch (o->command) {
    case CTL_CONTEXT_LIST:
        return ctl_context_list(o, err);
    case CTL_CONTEXT_GET:
        return ctl_context_get(o, err);
    case CTL_CONTEXT_USE:
        return ctl_context_use(o, err);
    case CTL_CONTEXT_SET:
        return ctl_context_change(o, err);
    case CTL_CONTEXT_DELETE:
        return ctl_context_delete(o, err);
    default:
        return -EINVAL;
    }
}

static int run_command(const struct ctl_options *o, struct base_errbuf *err)
{
    switch (o->command) {
    case CTL_STATUS:
        return ctl_status(o, err);
    case CTL_NODE_LIST:
        return ctl_node_list(o, err);
    case CTL_NODE_GET:
        return ctl_node_get(o, err);
    case CTL_NODE_LABEL:
    case CTL_NODE_CORDON:
    case CTL_NODE_UNCORDON:
    case CTL_NODE_DRAIN:
        return ctl_node_change(o, err);
    case CTL_NODE_DELETE:
        return ctl_node_delete(o, err);
    case CTL_METASERVER_LIST:
        return ctl_metaserver_list(o, err);
    case CTL_AGENT_STATUS:
        return ctl_agent_status(o, err);
    case CTL_DOCTOR:
        return ctl_doctor(o, err);
    case CTL_RESOURCE_LIST:
        return ctl_resource_list(o, err);
    case CTL_RESOURCE_GET:
        return ctl_resource_get(o, err);
    case CTL_RESOURCE_CREATE:
        return ctl_resource_create(o, err);
    case CTL_RESOURCE_SET:
        return ctl_resource_set(o, err);
    case CTL_RESOURCE_DELETE:
        return ctl_resource_delete(o, err);
    case CTL_EVENT_LIST:
        return ctl_event_list(o, err);
    case CTL_EVENT_WATCH:
        return ctl_event_watch(o, err);
    case CTL_APPLY:
        return ctl_apply(o, err);
    case CTL_DIFF:
        return ctl_diff(o, err);
    case CTL_DESCRIBE:
        return ctl_describe(o, err);
    case CTL_EXPLAIN:
        return ctl_explain(o, err);
    case CTL_AGENT_ITEM_LIST:
        return ctl_agent_item_list(o, err);
    case CTL_AGENT_ITEM_GET:
        return ctl_agent_item_get(o, err);
    case CTL_LEASE_REVOKE:
        return ctl_lease_revoke(o, err);
    case CTL_CHECK_PERF:
        return ctl_check_perf(o, err);
    case CTL_TOP:
        return ctl_top(o, err);
    case CTL_HELP:
        return o->json ? ctl_help_json(err) : ctl_help_print(o->words, o->word_count, stdout, err);
    case CTL_VERSION:
        return ctl_version(o, err);
    case CTL_OWN_VERSION:
        printf("rdmactl %s\n", base_version_text());
        return 0;
    default:
        return run_context(o, err);
    }
}

int main(int argc, char **argv)
{
    struct ctl_options options;
    struct base_errbuf err = {.text = ""};
    static struct ctl_contexts contexts;
    static struct ctl_servers servers;
    int status = ctl_options_parse(argc, argv, &options, &err);
    if (status == 0 && !asks_nobody(options.command) && !ctl_context_none(&options))
        status = ctl_contexts_read(&contexts, &err);
    if (status == 0 && !asks_nobody(options.command))
        status = ctl_options_resolve(&options, &contexts, &servers, &err);
    if (status == 0 && options.yaml)
        ctl_json_as_yaml();
    if (status == 0)
        status = run_command(&options, &err);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        status = base_err(&err, -EIO, "standard output cannot be written");
    if (status == 0)
        return 0;
    fflush(stdout);
    fprintf(stderr, "rdmactl: %s\n", err.text);
    return base_error_of(status)->exit_code;
}
