/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/decode.h"

enum { TIMEOUT_MS = 5000, PATH_BYTES = 108 /* sockaddr_un's */ };

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

int ctl_judge(const char *who, int http, const char *body, size_t bytes, struct kedge_errbuf *err)
{
    char detail[300];
    if (http >= 200 && http < 300)
        return 0;
    const struct kedge_error *row = kedge_error_of_http(http);
    ctl_decode_problem(body, bytes, detail, sizeof detail);
    return kedge_err(err, -row->errnum, "%s answers %d: %s", who, http,
                     detail[0] != '\0' ? detail : row->title);
}

/* Turns an HTTP error into a sentence. */
static int judge(const char *who, struct kedge_http_result *result, struct kedge_errbuf *err)
{
    int status = ctl_judge(who, result->status, result->body, result->body_length, err);
    if (status != 0)
        kedge_http_result_fini(result);
    return status;
}

int ctl_server_url(const struct ctl_options *o, const char *path, char *out, size_t size,
                   struct kedge_errbuf *err)
{
    int length = (int)strlen(o->server);
    while (length > 0 && o->server[length - 1] == '/')
        length--;
    if (snprintf(out, size, "%.*s%s", length, o->server, path) >= (int)size)
        return kedge_err(err, -EINVAL, "the URL is too long");
    return 0;
}

int ctl_call_server(const struct ctl_options *o, const struct ctl_request *request,
                    struct kedge_http_result *out, struct kedge_errbuf *err)
{
    char url[CTL_URL_BYTES];
    struct kedge_errbuf why;
    const char *const headers[] = {request->header, NULL};
    int status = ctl_server_url(o, request->path, url, sizeof url, err);
    if (status != 0)
        return status;
    struct kedge_http_call call = {.method = request->method,
                                   .url = url,
                                   .headers = headers,
                                   .body = request->body,
                                   .body_length = request->body != NULL ? strlen(request->body) : 0,
                                   .timeout_ms = TIMEOUT_MS};
    status = kedge_http_call(&call, out, &why);
    if (status != 0)
        return kedge_err(err, status, "%.380s (is kedge-metad running? name another with --server)",
                         why.text);
    return judge("the metaserver", out, err);
}

int ctl_fetch_server(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                     struct kedge_errbuf *err)
{
    const struct ctl_request request = {.method = "GET", .path = path};
    return ctl_call_server(o, &request, out, err);
}

int ctl_fetch_agent(const struct ctl_options *o, const char *path, struct kedge_http_result *out,
                    struct kedge_errbuf *err)
{
    char url[CTL_URL_BYTES];
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
