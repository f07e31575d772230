/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl node label|cordon|uncordon|drain|delete. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/nodes.h"
#include "ctl/resources.h"

enum { HEADER_BYTES = 64 };

/* Whom a worker that is refused may ask, unless the operator says it. */
static const char *reason_of(const struct ctl_options *o, char out[CTL_REASON_BYTES])
{
    char host[64] = "";
    const struct passwd *user = getpwuid(geteuid());
    if (o->reason != NULL)
        return o->reason;
    (void)gethostname(host, sizeof host - 1);
    snprintf(out, CTL_REASON_BYTES, "by %.31s at %.63s",
             user != NULL ? user->pw_name : "an operator", host);
    return out;
}

/* What is set of a node: 0 and *out, whose body is NULL when nothing is; -ENOENT: there is no such
 * node, and nothing was ever said of it. */
static int fetch_settings(const struct ctl_options *o, const char *node_path, const char *path,
                          struct http_result *out, struct base_errbuf *err)
{
    struct http_result node;
    int status = ctl_fetch_server(o, path, out, err);
    if (status != -ENOENT)
        return status;
    *out = (struct http_result){.body = NULL};
    status = ctl_fetch_server(o, node_path, &node, err);
    if (status == 0)
        http_result_fini(&node);
    return status == -ENOENT
               ? ctl_no_such("node", o->id,
                             " (to set something of one that is still to come: rdmactl apply, "
                             "kind node)",
                             err)
               : status;
}

static int change_node(const struct ctl_options *o, const char *node_path, uint64_t *revision,
                       bool *drains, struct base_errbuf *err)
{
    struct http_result there, result;
    struct base_text body;
    struct ctl_resource set;
    char path[CTL_NODE_PATH_BYTES + 16], reason[CTL_REASON_BYTES],
        header[HEADER_BYTES] = "If-None-Match: *";
    const struct ctl_node_edit edit = {.what = o->command,
                                       .words = o->words,
                                       .word_count = o->word_count,
                                       .reason = reason_of(o, reason),
                                       .reason_said = o->reason != NULL,
                                       .grace_said = o->grace_said,
                                       .grace_ms = o->grace_ms};
    snprintf(path, sizeof path, "%s/settings", node_path);
    int status = fetch_settings(o, node_path, path, &there, err);
    if (status != 0)
        return status;
    base_text_init(&body, CTL_BODY_BYTES);
    status = ctl_edit_node(there.body, there.body_length, &edit, &body, revision, drains, err);
    if (status == 0) {
        const struct ctl_request request = {
            .method = "PUT", .path = path, .header = header, .body = base_text_str(&body)};
        if (*revision != 0)
            snprintf(header, sizeof header, "If-Match: \"%" PRIu64 "\"", *revision);
        status = ctl_call_server(o, &request, &result, err);
    }
    base_text_fini(&body);
    http_result_fini(&there);
    if (status == -EREMCHG)
        return base_err(err, status,
                        "somebody else has changed it at the same moment: look, and try again");
    if (status != 0)
        return status;
    status = ctl_decode_resource(resource_table_find("node"), result.body, result.body_length, &set,
                                 err);
    http_result_fini(&result);
    if (status != 0)
        return status;
    *revision = set.revision;
    if (o->json)
        status = ctl_json_print_of("node", set.json, err);
    ctl_resource_fini(&set);
    return status;
}

/* Labels are the metaserver's; what is said of workers is nothing until the agent does it. */
static int say_changed(const struct ctl_options *o, const char *path, uint64_t revision,
                       bool drains, struct base_errbuf *err)
{
    static const char *const said[] = {[CTL_NODE_LABEL] = "is labelled",
                                       [CTL_NODE_CORDON] = "is cordoned: it takes no new workers",
                                       [CTL_NODE_UNCORDON] = "takes workers",
                                       [CTL_NODE_DRAIN] =
                                           "drains: it takes no new workers, and those it has go"};
    enum ctl_force force = CTL_IN_FORCE;
    if (o->command != CTL_NODE_LABEL) {
        int status = ctl_node_settle(o, path, revision, &force, err);
        if (status != 0)
            return status;
    }
    if (!o->json && o->command == CTL_NODE_CORDON && drains)
        printf("node %s is draining, and goes on with it: rdmactl node uncordon %s ends that\n",
               o->id, o->id);
    else if (!o->json)
        printf("node %s %s\n", o->id,
               force == CTL_IN_FORCE ? said[o->command] : "has the setting stored");
    fflush(stdout);
    return 0;
}

int ctl_node_change(const struct ctl_options *o, struct base_errbuf *err)
{
    char path[CTL_NODE_PATH_BYTES];
    uint64_t revision;
    bool drains = false;
    int status = ctl_node_path(o->id, path, err);
    if (status == 0)
        status = change_node(o, path, &revision, &drains, err);
    if (status == 0)
        status = say_changed(o, path, revision, drains, err);
    return status == 0 && o->wait ? ctl_node_wait_until_empty(o, path, revision, err) : status;
}

/* ---- delete */

/* Whether a node is registered. -EBUSY: its agent is, or may be, alive, and would come again. */
static int look_for(const struct ctl_options *o, const char *path, bool *registered,
                    struct base_errbuf *err)
{
    struct http_result result;
    struct ctl_node node;
    int status = ctl_fetch_server(o, path, &result, err);
    *registered = status == 0;
    if (status != 0)
        return status == -ENOENT ? 0 : status;
    status = ctl_decode_node(result.body, result.body_length, &node, err);
    http_result_fini(&result);
    if (status == 0 && strcmp(node.state, "absent") == 0) {
        *registered = false;
        return 0;
    }
    if (status == 0 && strcmp(node.state, "expired") != 0)
        return base_err(err, -EBUSY,
                        "node %.70s is %s: its agent would register it again; end that first "
                        "(systemctl stop kedge-agentd there), after rdmactl node drain %.70s "
                        "--wait if it has workers",
                        o->id, node.state, o->id);
    return status;
}

/* What is not there is no error, but then *found is as it was. */
static int delete_path(const struct ctl_options *o, const char *path, bool *found,
                       struct base_errbuf *err)
{
    struct http_result result;
    const struct ctl_request request = {.method = "DELETE", .path = path};
    int status = ctl_call_server(o, &request, &result, err);
    if (status != 0)
        return status == -ENOENT ? 0 : status;
    http_result_fini(&result);
    *found = true;
    return 0;
}

int ctl_node_delete(const struct ctl_options *o, struct base_errbuf *err)
{
    char path[CTL_NODE_PATH_BYTES], settings[sizeof path + 16];
    bool registered = false, found = false;
    int status = ctl_node_path(o->id, path, err);
    if (status != 0)
        return status;
    status = look_for(o, path, &registered, err);
    snprintf(settings, sizeof settings, "%s/settings", path);
    if (status == 0 && registered)
        status = delete_path(o, path, &found, err);
    if (status == 0)
        status = delete_path(o, settings, &found, err);
    if (status != 0)
        return status;
    if (!found)
        return ctl_no_such("node", o->id, "", err);
    if (o->json)
        return ctl_json_deleted("node", o->id, err);
    printf("node %s is forgotten, with what was set of it\n", o->id);
    return 0;
}
