/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/decode.h"

/* A change waits for the store: one that nobody hears, as etcd without a quorum, is said by the
 * metaserver after five seconds, and with a reason. */
enum { CHANGE_TIMEOUT_MS = 10000 };

/* To be connected, where there is another to be asked; a SYN that is lost is repeated after 1 s. */
enum { NEXT_TIMEOUT_MS = 2000 };

enum { TIMEOUT_MS = 5000, PATH_BYTES = 108 /* sockaddr_un's */, QUERY_BYTES = 300 };

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

int ctl_add_encoded(char *path, size_t size, const char *name, const char *encoded,
                    struct base_errbuf *err)
{
    const size_t used = strlen(path);
    if (snprintf(path + used, size - used, "%c%s=%s", strchr(path, '?') == NULL ? '?' : '&', name,
                 encoded) < (int)(size - used))
        return 0;
    path[used] = '\0';
    return base_err(err, -EINVAL, "what is asked for is too long");
}

int ctl_add_query(char *path, size_t size, const char *name, const char *value,
                  struct base_errbuf *err)
{
    char encoded[QUERY_BYTES];
    if (value == NULL)
        return 0;
    if (ctl_percent_encode(value, encoded, sizeof encoded) != 0)
        return base_err(err, -EINVAL, "\"%.60s...\" is too long for a %s", value, name);
    return ctl_add_encoded(path, size, name, encoded, err);
}

int ctl_judge(const char *who, int http, const char *body, size_t bytes, struct base_errbuf *err)
{
    char detail[sizeof err->text];
    if (http >= 200 && http < 300)
        return 0;
    const struct base_error *row = base_error_of_http(http);
    ctl_decode_problem(body, bytes, detail, sizeof detail);
    return base_err(err, -row->errnum, "%s answers %d: %s", who, http,
                    detail[0] != '\0' ? detail : row->title);
}

static bool is_change(const char *method)
{
    return method != NULL && strcmp(method, "GET") != 0;
}

/* Whether a call failed by the one that was called, and not by what it was called with. */
static bool is_of_server(int status)
{
    return status == -ECONNREFUSED || status == -EHOSTUNREACH || status == -ETIMEDOUT ||
           status == -ECONNRESET || status == -EBADMSG || status == -EIO;
}

/* Turns an HTTP error into a sentence. */
static int judge_result(const char *who, struct http_result *result, struct base_errbuf *err)
{
    int status = ctl_judge(who, result->status, result->body, result->body_length, err);
    if (status != 0)
        http_result_fini(result);
    return status;
}

/* Says early and plainly what a failed connect would say in errnos. */
static int check_socket(const char *path, struct base_errbuf *err)
{
    if (strlen(path) >= PATH_BYTES)
        return base_err(err, -EINVAL,
                        "the path of the metaserver's socket has at most %d characters",
                        PATH_BYTES - 1);
    if (access(path, W_OK) == 0)
        return 0;
    if (errno == EACCES)
        return base_err(err, -EACCES,
                        "the metaserver's socket %.150s is not for this user: run rdmactl as root "
                        "(sudo) or as the metaserver's user; or with a token: --server URL "
                        "--token-file FILE, KEDGE_SERVER and KEDGE_TOKEN_FILE, or rdmactl context "
                        "set",
                        path);
    return base_err(err, -ECONNREFUSED,
                    "there is no metaserver at %.150s: %s (start kedge-metad, or say where it is: "
                    "--server URL or unix:PATH, KEDGE_SERVER, or rdmactl context set)",
                    path, strerror(errno));
}

/* Whether workers attach there: such a socket has messages, and whoever asks for a stream is told
 * that it has another type. */
static bool is_attach_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return false;
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool other =
        fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) != 0 && errno == EPROTOTYPE;
    if (fd >= 0)
        close(fd);
    return other;
}

/* Of an answer that there is nothing at this path: whether another daemon gave it. -ENOENT, or
 * -EINVAL and what to say instead. */
static int check_program(const char *socket, const char *wanted, struct base_errbuf *err)
{
    struct http_call call = {.method = "GET",
                             .url = "http://localhost/version",
                             .unix_path = socket,
                             .timeout_ms = TIMEOUT_MS};
    struct http_result result;
    struct ctl_pairs pairs = {.pair = NULL};
    struct base_errbuf why;
    const char *program = NULL;
    if (socket == NULL || http_call(&call, &result, &why) != 0)
        return -ENOENT;
    if (ctl_decode_pairs(result.body, result.body_length, &pairs, &why) == 0)
        program = ctl_pairs_find(&pairs, "program");
    int status = -ENOENT;
    if (program != NULL && strcmp(program, wanted) != 0)
        status = base_err(
            err, -EINVAL, "at %.150s there is %.40s, not %s: name the admin_socket of %s with %s",
            socket, program, wanted, wanted,
            strcmp(wanted, "kedge-metad") == 0 ? "--server unix:PATH" : "--agent-socket PATH");
    ctl_pairs_fini(&pairs);
    http_result_fini(&result);
    return status;
}

/* Where the token is from that was refused. */
static const char *token_source(const struct ctl_options *o)
{
    return o->token_file != NULL ? o->token_file : o->token != NULL ? "KEDGE_TOKEN" : NULL;
}

int ctl_read_token(const char *path, char out[HTTP_TOKEN_BYTES], struct base_errbuf *err)
{
    int status = http_token_private(path, err);
    if (status != 0)
        return status;
    /* A mistake of the command line, and nothing that a server has said: not "no such thing". */
    return http_token_read(path, out, err) != 0 ? -EINVAL : 0;
}

static size_t count_servers(const struct ctl_options *o)
{
    return o->servers != NULL ? o->servers->count : 1;
}

/* One command's metaservers are believed, and shown, the same: read once, and kept as long as the
 * program. */
static int open_tls(const struct ctl_options *o, const struct http_tls **out,
                    struct base_errbuf *err)
{
    static struct http_tls *opened;
    const struct http_tls_config files = {
        .ca_file = o->cacert, .cert_file = o->cert, .key_file = o->key};
    if (opened == NULL && http_tls_new(&files, &opened, err) != 0)
        return -EINVAL; /* a mistake of the command line, as in ctl_read_token() */
    *out = opened;
    return 0;
}

/* Of each that may be asked: which one that will be is not known when one of them is down. */
static int check_exposure(const struct ctl_options *o, struct base_errbuf *err)
{
    if (o->allow_plain_tokens || (o->token == NULL && o->token_file == NULL))
        return 0;
    for (size_t i = 0; i < count_servers(o); i++) {
        const char *server = o->servers != NULL ? o->servers->url[i] : o->server;
        if (strncmp(server, "unix:", 5) != 0 && !http_url_is_private(server))
            return base_err(
                err, -EPERM,
                "the token would cross the network to %.150s as it is, for everybody to see: say "
                "https://, or --allow-plain-tokens (allow_plain_tokens=yes of a context)",
                server);
    }
    return 0;
}

int ctl_target_of(const struct ctl_options *o, const char *path, struct ctl_target *out,
                  struct base_errbuf *err)
{
    const char *asked = ctl_server_asked(o);
    const char *socket = strncmp(asked, "unix:", 5) == 0 ? asked + 5 : NULL;
    const char *server = socket != NULL ? "http://localhost" : asked;
    int length = (int)strlen(server), status = 0;
    *out = (struct ctl_target){.unix_path = socket, .allow_plain_token = o->allow_plain_tokens};
    while (length > 0 && server[length - 1] == '/')
        length--;
    if (snprintf(out->url, sizeof out->url, "%.*s%s", length, server, path) >= (int)sizeof out->url)
        return base_err(err, -EINVAL, "the URL is too long");
    if (socket != NULL)
        status = check_socket(socket, err);
    if (status == 0)
        status = check_exposure(o, err);
    if (status == 0 && strncmp(server, "https:", 6) == 0)
        status = open_tls(o, &out->tls, err);
    if (status == 0 && o->token_file != NULL)
        status = ctl_read_token(o->token_file, out->token, err);
    if (status != 0 || o->token == NULL)
        return status;
    if (http_token_check(o->token) != 0)
        return base_err(err, -EINVAL, "KEDGE_TOKEN is set, but to no token: it has %s",
                        strlen(o->token) >= HTTP_TOKEN_BYTES ? "too many characters"
                                                             : "a blank, a newline or the like");
    snprintf(out->token, sizeof out->token, "%s", o->token);
    return 0;
}

void ctl_aim(struct http_call *call, const struct ctl_target *target)
{
    call->url = target->url;
    call->unix_path = target->unix_path;
    call->token = target->token[0] != '\0' ? target->token : NULL;
    call->tls = target->tls;
    call->allow_plain_token = target->allow_plain_token;
}

/* What a call that has no answer failed with, in a sentence. */
static int judge_failure(const struct ctl_options *o, const struct http_call *call, int status,
                         const char *why, struct base_errbuf *err)
{
    const char *asked = ctl_server_asked(o), *path = call->unix_path;
    const bool lost = *call->sent && is_change(call->method);
    const char *doubt =
        lost ? ": whether it was done is not known: look before you say it again" : "";
    if (status == -ECONNREFUSED && path != NULL && is_attach_socket(path))
        return base_err(err, -EINVAL,
                        "%.150s is where workers attach to an agent: name the admin_socket of "
                        "kedge-metad with --server unix:PATH",
                        path);
    if (status == -ECONNREFUSED && path != NULL)
        return base_err(err, status,
                        "there is no metaserver at %.150s: nobody listens there any more (start "
                        "kedge-metad, and look into its log for why it ended)",
                        path);
    if (status == -ETIMEDOUT && !*call->sent && path == NULL)
        return base_err(err, status,
                        "the metaserver at %.150s cannot be reached within %u s (is its host up, "
                        "or a packet filter between?)",
                        asked, call->connect_timeout_ms / 1000);
    if (status == -ETIMEDOUT)
        return base_err(
            err, status,
            "the metaserver at %.150s does not answer within %u s (is kedge-metad under "
            "SIGSTOP, a debugger or a frozen control group, or a packet filter between?)%s",
            asked, call->timeout_ms / 1000, doubt);
    if (status == -EBADMSG && strncmp(asked, "https://", 8) == 0)
        return base_err(err, status, "%.380s%s", why, doubt);
    return base_err(err, status, "%.380s%s%s", why,
                    count_servers(o) == 1 ? " (is kedge-metad running? name another with --server)"
                                          : "",
                    doubt);
}

/* Asks the one whose turn it is. *elsewhere: it has not answered, and another may be asked in its
 * place, since nothing is done twice by that: a change that was sent may have been done, though
 * nobody has said so. */
static int call_one(const struct ctl_options *o, const struct ctl_request *request,
                    struct http_result *out, bool *elsewhere, struct base_errbuf *err)
{
    struct ctl_target target;
    struct base_errbuf why;
    bool sent = false;
    const char *const headers[] = {request->header, NULL};
    const bool changes = is_change(request->method);
    int status = ctl_target_of(o, request->path, &target, err);
    *elsewhere = status == -ECONNREFUSED; /* of a socket that is not there */
    if (status != 0)
        return status;
    struct http_call call = {.method = request->method,
                             .headers = headers,
                             .body = request->body,
                             .body_length = request->body != NULL ? strlen(request->body) : 0,
                             .connect_timeout_ms =
                                 count_servers(o) > 1 ? NEXT_TIMEOUT_MS : TIMEOUT_MS,
                             .timeout_ms = request->timeout_ms != 0 ? request->timeout_ms
                                           : changes                ? (unsigned)CHANGE_TIMEOUT_MS
                                                                    : (unsigned)TIMEOUT_MS,
                             .sent = &sent};
    ctl_aim(&call, &target);
    status = http_call(&call, out, &why);
    if (status != 0) {
        *elsewhere = !(sent && changes) && is_of_server(status);
        return judge_failure(o, &call, status, why.text, err);
    }
    status = judge_result("the metaserver", out, err);
    if (status == -ENOENT && check_program(target.unix_path, "kedge-metad", err) != -ENOENT)
        return -EINVAL;
    if (status == -EKEYREJECTED && token_source(o) != NULL) {
        why = *err;
        return base_err(err, status, "%.300s (the token is that of %.150s)", why.text,
                        token_source(o));
    }
    return status;
}

bool ctl_server_next(const struct ctl_options *o, const char *why)
{
    struct ctl_servers *s = o->servers;
    if (s == NULL || s->count < 2)
        return false;
    const char *from = s->url[s->at];
    s->at = (s->at + 1) % s->count;
    fprintf(stderr, "note: %s is asked in place of %s: %s\n", s->url[s->at], from, why);
    return true;
}

bool ctl_is_for_another(int http_status)
{
    return http_status == 429 || http_status == 503;
}

bool ctl_server_go_on(const struct ctl_options *o, const char *why)
{
    if (!ctl_server_next(o, why))
        return false;
    sleep(1);
    return true;
}

int ctl_call_server(const struct ctl_options *o, const struct ctl_request *request,
                    struct http_result *out, struct base_errbuf *err)
{
    const size_t count = count_servers(o);
    struct base_errbuf why;
    bool elsewhere;
    int status = 0;
    for (size_t tried = 1; tried <= count; tried++) {
        status = call_one(o, request, out, &elsewhere, err);
        if (!elsewhere)
            return status;
        if (tried < count)
            (void)ctl_server_next(o, err->text);
    }
    if (count == 1)
        return status;
    why = *err;
    return base_err(err, status, "none of the %zu metaservers can be asked; of the last: %.380s",
                    count, why.text);
}

int ctl_fetch_server(const struct ctl_options *o, const char *path, struct http_result *out,
                     struct base_errbuf *err)
{
    const struct ctl_request request = {.method = "GET", .path = path};
    return ctl_call_server(o, &request, out, err);
}

int ctl_target_find(const struct ctl_options *o, const char *path, struct ctl_target *out,
                    struct base_errbuf *err)
{
    struct http_result result;
    if (count_servers(o) > 1) {
        const int status = ctl_fetch_server(o, "/version", &result, err);
        if (status != 0)
            return status;
        http_result_fini(&result);
    }
    return ctl_target_of(o, path, out, err);
}

static int call_agent(const struct ctl_options *o, const char *method, const char *path,
                      unsigned timeout_ms, struct http_result *out, struct base_errbuf *err)
{
    char url[CTL_URL_BYTES];
    struct base_errbuf why;
    if (strlen(o->agent_socket) >= PATH_BYTES)
        return base_err(err, -EINVAL, "the path of the agent's socket has at most %d characters",
                        PATH_BYTES - 1);
    if (access(o->agent_socket, F_OK) != 0)
        return base_err(err, -ECONNREFUSED,
                        "there is no agent at %.150s: %s (start kedge-agentd, or name its "
                        "admin_socket with --agent-socket)",
                        o->agent_socket, strerror(errno));
    if (access(o->agent_socket, W_OK) != 0)
        return base_err(err, -EACCES,
                        "the agent's socket %.150s is not for this user: run rdmactl as the "
                        "agent's user, or as root",
                        o->agent_socket);
    snprintf(url, sizeof url, "http://localhost%s", path);
    struct http_call call = {
        .method = method, .url = url, .unix_path = o->agent_socket, .timeout_ms = timeout_ms};
    int status = http_call(&call, out, &why);
    if (status == -ECONNREFUSED && is_attach_socket(o->agent_socket))
        return base_err(err, -EINVAL,
                        "%.150s is where workers attach: name the agent's admin_socket with "
                        "--agent-socket",
                        o->agent_socket);
    if (status == -ECONNREFUSED)
        return base_err(err, status,
                        "there is no agent at %.150s: nobody listens there any more (start "
                        "kedge-agentd, and look into its log for why it ended)",
                        o->agent_socket);
    if (status == -ETIMEDOUT)
        return base_err(err, status,
                        "the agent at %.150s does not answer within %u s (is kedge-agentd under "
                        "SIGSTOP, a debugger or a frozen control group, or without a processor?)",
                        o->agent_socket, timeout_ms / 1000);
    if (status != 0)
        return base_err(err, status, "the agent at %.150s does not answer: %.200s", o->agent_socket,
                        why.text);
    status = judge_result("the agent", out, err);
    return status == -ENOENT && check_program(o->agent_socket, "kedge-agentd", err) != -ENOENT
               ? -EINVAL
               : status;
}

int ctl_fetch_agent(const struct ctl_options *o, const char *path, struct http_result *out,
                    struct base_errbuf *err)
{
    return call_agent(o, "GET", path, TIMEOUT_MS, out, err);
}

int ctl_delete_agent(const struct ctl_options *o, const char *path, unsigned timeout_ms,
                     struct http_result *out, struct base_errbuf *err)
{
    return call_agent(o, "DELETE", path, timeout_ms, out, err);
}
