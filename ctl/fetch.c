/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/decode.h"

enum { TIMEOUT_MS = 5000, URL_BYTES = 1024, PATH_BYTES = 108 /* sockaddr_un's */ };

int ctl_percent_encode(const char *text, char *out, size_t size)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    size_t used = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (used + 4 > size)
            return -EMSGSIZE;
        if (strchr(plain, *c) != NULL)
            out[used++] = *c;
        else
            used += (size_t)snprintf(out + used, 4, "%%%02X", (unsigned char)*c);
    }
    if (used >= size)
        return -EMSGSIZE;
    out[used] = '\0';
    return 0;
}

/* Turns an HTTP error into a sentence. */
static int judge(const char *who, struct kedge_http_result *result, struct kedge_errbuf *err)
{
    char detail[300];
    if (result->status >= 200 && result->status < 300)
        return 0;
    const struct kedge_error *row = kedge_error_of_http(result->status);
    ctl_decode_problem(result->body, result->body_length, detail, sizeof detail);
    int status = kedge_err(err, -row->errnum, "%s answers %d: %s", who, result->status,
                           detail[0] != '\0' ? detail : row->title);
    kedge_http_result_fini(result);
    return status;
}

int ctl_fetch_server(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                     struct kedge_errbuf *err)
{
    char url[URL_BYTES];
    struct kedge_errbuf why;
    int length = (int)strlen(o->server);
    while (length > 0 && o->server[length - 1] == '/')
        length--;
    if (snprintf(url, sizeof url, "%.*s%s", length, o->server, path) >= (int)sizeof url)
        return kedge_err(err, -EINVAL, "the URL is too long");
    struct kedge_http_call call = {.url = url, .timeout_ms = TIMEOUT_MS};
    int status = kedge_http_call(&call, out, &why);
    if (status != 0)
        return kedge_err(err, status, "%.380s (is kedge-metad running? name another with --server)",
                         why.text);
    return judge("the metaserver", out, err);
}

int ctl_fetch_agent(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                    struct kedge_errbuf *err)
{
    char url[URL_BYTES];
    struct kedge_errbuf why;
    if (strlen(o->agent_socket) >= PATH_BYTES)
        return kedge_err(err, -EINVAL, "the path of the agent's socket has at most %d characters",
                         PATH_BYTES - 1);
    if (access(o->agent_socket, F_OK) != 0)
        return kedge_err(err, -ECONNREFUSED,
                         "there is no agent at %.150s: %s (start kedge-agentd, or name its "
                         "admin_socket with --agent-socket)",
                         o->agent_socket, strerror(errno));
    if (access(o->agent_socket, W_OK) != 0)
        return kedge_err(err, -EACCES,
                         "the agent's socket %.150s is not for this user: run rdmactl as the "
                         "agent's user, or as root",
                         o->agent_socket);
    snprintf(url, sizeof url, "http://localhost%s", path);
    struct kedge_http_call call = {
        .url = url, .unix_path = o->agent_socket, .timeout_ms = TIMEOUT_MS};
    int status = kedge_http_call(&call, out, &why);
    if (status != 0)
        return kedge_err(err, status, "the agent at %.150s does not answer: %.200s",
                         o->agent_socket, why.text);
    return judge("the agent", out, err);
}
