/* SPDX-License-Identifier: Apache-2.0 */
#include "start_check.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/fds.h"
#include "base/hold.h"
#include "base/http/client.h"
#include "base/place.h"
#include "base/text.h"
#include "fabric/fault.h"
#include "fabric/model.h"
#include "fabric/providers.h"
#include "schema/certificate.h"
#include "bounds.h"
#include "metaserver_client.h"

static int check_lane_cpu(const struct agent_config *c, struct base_errbuf *err)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const bool known = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
    for (uint32_t i = 0; i < c->lane_cpu.count; i++)
        if (!known || !CPU_ISSET(c->lane_cpu.at[i], &cpus))
            return base_err(err, -EINVAL,
                            "lane_cpu = %llu: this process may not run there (see nproc, and the "
                            "unit's AllowedCPUs; or set lane_cpu = any)",
                            (unsigned long long)c->lane_cpu.at[i]);
    return 0;
}

static int check_fabric(const struct agent_config *c, struct base_errbuf *err)
{
    struct fault_plan plan;
    const struct fab_provider *provider = fab_provider_find(c->provider, err);
    if (provider == NULL)
        return -EINVAL;
    const int status =
        provider->check != NULL ? provider->check(c->device[0] != '\0' ? c->device : NULL, err) : 0;
    if (status != 0)
        return status;
    if (c->model[0] != '\0' && fab_model_find(c->model) == NULL)
        return base_err(err, -EINVAL, "model must be %s, or empty, not \"%.40s\"",
                        fab_model_names(), c->model);
    if (c->model[0] != '\0' && !provider->models)
        return base_err(err, -EINVAL,
                        "model = %s: a %s device has times of its own, and only a soft one those "
                        "of a model (leave it out)",
                        c->model, provider->name);
    return c->fault[0] == '\0' ? 0 : fault_plan_parse(c->fault, &plan, err);
}

static int check_places(const struct agent_config *c, struct base_errbuf *err)
{
    char setting[64];
    int status = base_place_directory(c->state_dir, "the state directory", "state_dir", err);
    if (status == 0)
        status = base_place_socket(c->socket, "socket", err);
    if (status == 0)
        status = base_place_socket(c->admin_socket, "admin_socket", err);
    for (uint32_t i = 0; i < c->tenants && status == 0; i++) {
        snprintf(setting, sizeof setting, "the socket of [tenant %s]", c->tenant[i].name);
        if (c->tenant[i].socket[0] != '\0')
            status = base_place_socket(c->tenant[i].socket, setting, err);
    }
    return status;
}

static int check_tls(const struct agent_config *config, struct base_errbuf *err)
{
    struct http_tls *tls;
    int status = agentd_metaserver_tls_open(config, &tls, err);
    if (status == 0)
        http_tls_free(tls);
    return status;
}

int agentd_start_check(const struct agent_config *config, struct base_errbuf *err)
{
    int status = check_fabric(config, err);
    if (status == 0)
        status = check_lane_cpu(config, err);
    if (status == 0)
        status = base_fds_provide(FDS_OF(config->max_sessions), config->max_sessions, "sessions",
                                  "max_sessions", err);
    if (status == 0)
        status = check_tls(config, err);
    return status == 0 ? check_places(config, err) : status;
}

bool agentd_start_check_token(const struct agent_config *config, const uint8_t gid[16],
                              struct base_errbuf *why)
{
    static const uint8_t unknown[16];
    char token[HTTP_TOKEN_BYTES], reason[128] = "holds no token", own[BASE_GID_TEXT] = "GID";
    if (config->token_file[0] == '\0')
        return true;
    const int status = http_token_read(config->token_file, token, NULL);
    explicit_bzero(token, sizeof token);
    if (status == 0)
        return true;
    if (status != -EINVAL)
        snprintf(reason, sizeof reason, "cannot be read (%s)", strerror(-status));
    if (memcmp(gid, unknown, sizeof unknown) != 0)
        (void)base_gid_format(gid, own);
    base_err(why, status,
             "its token_file %.160s %s: on the metaserver's host `rdmactl token create %.64s "
             "scope=agent node=%.64s gids=%s --secret-out FILE` makes one",
             config->token_file, reason, config->node, config->node, own);
    return false;
}

bool agentd_start_check_shown(const struct agent_config *config, struct base_errbuf *why)
{
    for (uint32_t i = 0; i < config->metaservers; i++) {
        const char *url = config->metaserver[i];
        const bool tls = strncmp(url, "https://", 8) == 0;
        const bool shows = config->token_file[0] != '\0' &&
                           (config->allow_plain_tokens || http_url_is_private(url));
        if (shows || (tls && config->cert_file[0] != '\0'))
            continue;
        if (config->token_file[0] != '\0')
            base_err(why, -EPERM,
                     "show no token to %.160s, where others would see it: say https://, or "
                     "allow_plain_tokens = yes",
                     url);
        else if (config->cert_file[0] != '\0')
            base_err(why, -EPERM, "show no certificate to %.160s: say https://", url);
        else
            base_err(why, -EPERM,
                     "be let in only by metaservers with access = open: token_file is not set");
        return false;
    }
    return true;
}

static bool lists_gid(const struct http_certificate *c, const uint8_t gid[16])
{
    for (unsigned i = 0; i < c->ips; i++)
        if (memcmp(c->ip[i], gid, sizeof c->ip[i]) == 0)
            return true;
    return false;
}

/* What metaserver/config/access.c asks of who shows it. Where there is a token beside it, a
 * certificate need not name a node, nor list a GID. */
bool agentd_start_check_names(const struct agent_config *config,
                              const struct http_certificate *shown, struct base_errbuf *why)
{
    static const uint8_t unknown[16];
    const bool token = config->token_file[0] != '\0';
    const char *node = schema_certificate_node(shown->uri);
    char wrong[128 + HTTP_CERTIFICATE_TEXT] = "", gid[BASE_GID_TEXT] = "its GID";
    const bool known = memcmp(config->gid, unknown, sizeof unknown) != 0;
    if (known)
        (void)base_gid_format(config->gid, gid);
    if (shown->uri[0] == '\0' && token)
        return true;
    if (shown->uri[0] == '\0')
        snprintf(wrong, sizeof wrong, "names no node");
    else if (node == NULL)
        snprintf(wrong, sizeof wrong, "names no node by its URI %.100s", shown->uri);
    else if (strcmp(node, config->node) != 0)
        snprintf(wrong, sizeof wrong, "is for node %.63s, and not for %.63s", node, config->node);
    else if (known && !(token && shown->ips == 0) && !lists_gid(shown, config->gid))
        snprintf(wrong, sizeof wrong, "does not list the GID %s%s", gid,
                 shown->ips == 0 ? ", nor any" : "");
    if (wrong[0] == '\0')
        return true;
    base_err(why, -EINVAL,
             "the certificate in %.160s %s: put one there with the URI " SCHEMA_CERTIFICATE_NODE
             "%.64s and the address %s, which is taken without a restart",
             config->cert_file, wrong, config->node, gid);
    return false;
}

/* Files that cannot be read are agentd_start_check()'s, which has said so. */
bool agentd_start_check_certificate(const struct agent_config *config, struct base_errbuf *why)
{
    struct http_certificate own;
    struct http_tls *tls = NULL;
    bool shown = false;
    for (uint32_t i = 0; i < config->metaservers; i++)
        shown |= strncmp(config->metaserver[i], "https://", 8) == 0;
    if (!shown || config->cert_file[0] == '\0' ||
        agentd_metaserver_tls_open(config, &tls, NULL) != 0)
        return true;
    const int status = http_tls_own(tls, &own);
    http_tls_free(tls);
    if (status == -EINVAL)
        base_err(why, status,
                 "the certificate in %.160s names two nodes, or more than %d addresses: put one "
                 "there of this node alone, which is taken without a restart",
                 config->cert_file, HTTP_CERTIFICATE_IPS);
    return status == -EINVAL ? false : status != 0 || agentd_start_check_names(config, &own, why);
}

bool agentd_start_check_privacy(const struct agent_config *config, struct base_errbuf *why)
{
    return config->token_file[0] == '\0' || http_token_private(config->token_file, why) == 0;
}

bool agentd_start_check_holes(struct base_errbuf *why)
{
    int status = base_hold_try();
    if (status != 0) {
        base_err(why, status,
                 "pages cannot be held in a pipe: %s: let the agent call vmsplice() "
                 "(SystemCallFilter of its unit)",
                 strerror(-status));
        return false;
    }
    status = base_memfd_try_whole();
    if (status != 0)
        base_err(why, status, "%s: %s", strerror(-status),
                 status == -EPERM
                     ? "give the agent CAP_LINUX_IMMUTABLE (AmbientCapabilities of its unit)"
                     : "run Linux 6.0 or newer");
    return status == 0;
}
