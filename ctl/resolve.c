/* SPDX-License-Identifier: Apache-2.0 */
/* Where what the command line does not say comes from.
 *
 * Option, environment, context, built-in default: the first that says it. --context is an option,
 * so that it stands in place of the environment. A context's token goes to its own server alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/options.h"

static const char *read_environment(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *not_empty(const char *value)
{
    return value != NULL && value[0] != '\0' ? value : NULL;
}

int ctl_output_check(const char *of, const char *output, struct base_errbuf *err)
{
    if (strcmp(output, "json") == 0 || strcmp(output, "wide") == 0 ||
        strcmp(output, "table") == 0 || strcmp(output, "yaml") == 0)
        return 0;
    return base_err(err, -EINVAL, "%s must be table, wide, json or yaml, not \"%.40s\"", of,
                    output);
}

void ctl_options_output(struct ctl_options *o, const char *output)
{
    o->output = output;
    o->yaml = output != NULL && strcmp(output, "yaml") == 0;
    o->json = o->yaml || (output != NULL && strcmp(output, "json") == 0);
    o->wide = output != NULL && strcmp(output, "wide") == 0;
}

const char *ctl_context_chosen(const struct ctl_options *o, const struct ctl_contexts *contexts)
{
    const char *name = o->context != NULL ? o->context : read_environment("KEDGE_CONTEXT");
    if (name == NULL)
        name = not_empty(contexts->current);
    return name != NULL && strcmp(name, CTL_NO_CONTEXT) != 0 ? name : NULL;
}

bool ctl_context_none(const struct ctl_options *o)
{
    const char *name = o->context != NULL ? o->context : read_environment("KEDGE_CONTEXT");
    return name != NULL && strcmp(name, CTL_NO_CONTEXT) == 0;
}

static int find_context(const struct ctl_options *o, struct ctl_contexts *contexts,
                        const struct ctl_context **out, struct base_errbuf *err)
{
    const char *name = ctl_context_chosen(o, contexts);
    *out = name != NULL ? ctl_contexts_find(contexts, name) : NULL;
    if (name == NULL || *out != NULL)
        return 0;
    if (contexts->path[0] == '\0')
        return base_err(err, -ENOENT,
                        "there is no context \"%.60s\": neither XDG_CONFIG_HOME nor HOME says "
                        "where contexts are",
                        name);
    return base_err(err, -ENOENT,
                    "there is no context \"%.60s\", which %s names, in %.200s: see rdmactl "
                    "context list, or make it with rdmactl context set",
                    name,
                    o->context != NULL                          ? "--context"
                    : read_environment("KEDGE_CONTEXT") != NULL ? "KEDGE_CONTEXT"
                                                                : "its \"current\"",
                    contexts->path);
}

/* A token in argv or in a process' environment can be seen by others or is inherited by everything;
 * so a file comes first. `with`: the context whose server is asked; or NULL. */
static void resolve_token(struct ctl_options *o, const struct ctl_context *with)
{
    if (o->token_file != NULL)
        return;
    if (o->context == NULL) {
        o->token = read_environment("KEDGE_TOKEN");
        if (o->token == NULL)
            o->token_file = read_environment("KEDGE_TOKEN_FILE");
    }
    if (o->token == NULL && o->token_file == NULL && with != NULL)
        o->token_file = not_empty(with->token_file);
}

/* A context's go with its server, as its token does. A certificate and its key are of one place. */
static void resolve_tls(struct ctl_options *o, const struct ctl_context *with)
{
    const bool asks_environment = o->context == NULL;
    const bool own_pair = o->cert != NULL || o->key != NULL;
    if (o->cacert == NULL && asks_environment)
        o->cacert = read_environment("KEDGE_CACERT");
    if (o->cacert == NULL && with != NULL)
        o->cacert = not_empty(with->cacert);
    if (!own_pair && asks_environment) {
        o->cert = read_environment("KEDGE_CERT");
        o->key = read_environment("KEDGE_KEY");
    }
    if (o->cert == NULL && o->key == NULL && with != NULL) {
        o->cert = not_empty(with->cert);
        o->key = not_empty(with->key);
    }
    o->allow_plain_tokens |= with != NULL && strcmp(with->allow_plain_tokens, "yes") == 0;
}

const char *ctl_server_asked(const struct ctl_options *o)
{
    return o->servers != NULL ? o->servers->url[o->servers->at] : o->server;
}

int ctl_options_resolve(struct ctl_options *o, struct ctl_contexts *contexts,
                        struct ctl_servers *servers, struct base_errbuf *err)
{
    const struct ctl_context *c;
    const bool asks_environment = o->context == NULL;
    int status = find_context(o, contexts, &c, err);
    if (status != 0)
        return status;
    if (o->server == NULL && asks_environment &&
        (o->server = read_environment("KEDGE_SERVER")) != NULL)
        status = ctl_server_check("KEDGE_SERVER", o->server, err);
    if (status != 0)
        return status;
    resolve_token(o, o->server == NULL ? c : NULL);
    resolve_tls(o, o->server == NULL ? c : NULL);
    if (o->server == NULL && c != NULL)
        o->server = not_empty(c->server);
    if (o->server == NULL)
        o->server = CTL_DEFAULT_SERVER;
    status = ctl_servers_parse("server", o->server, servers, err);
    if (status != 0)
        return status;
    o->servers = servers;
    if (o->agent_socket == NULL && asks_environment)
        o->agent_socket = read_environment("KEDGE_AGENT_ADMIN");
    if (o->agent_socket == NULL && c != NULL)
        o->agent_socket = not_empty(c->agent_socket);
    if (o->agent_socket == NULL)
        o->agent_socket = CTL_DEFAULT_AGENT_SOCKET;
    if (o->output == NULL && c != NULL)
        ctl_options_output(o, not_empty(c->output));
    return 0;
}
