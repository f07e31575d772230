/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "tls_private.h"

enum {
    CONNECT_TIMEOUT_MS = 5000, /* a lost SYN is repeated after 1 s, and after 3 s */
    TIMEOUT_MS = 10000,
    RESPONSE_BYTES = 4 << 20,
    KEEPALIVE_S = 15,
    TLS_CONNECTION_S = 600, /* a certificate that is renewed so long before its end is never shown
                             * after it */
};

/* Gives every line that is whole now; body holds the begin of the one that is not. Returns 0, or
 * why no more is wanted. */
static int take_lines(struct http_transfer *c, const char *bytes, size_t length)
{
    while (length > 0 && !c->cancelled) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end == NULL ? length : (size_t)(end - bytes);
        int status = base_text_append(&c->body, bytes, part);
        if (status != 0)
            return status;
        if (end == NULL)
            return 0;
        if (c->on_line(c->user, base_text_str(&c->body), c->body.length) != 0)
            return -ECANCELED;
        base_text_reset(&c->body);
        bytes += part + 1;
        length -= part + 1;
    }
    return 0;
}

static size_t take_data(char *bytes, size_t one, size_t length, void *arg)
{
    (void)one; /* always 1 */
    struct http_transfer *c = arg;
    long status = 0;
    if (c->cancelled)
        return CURL_WRITEFUNC_ERROR;
    if (c->silence_ns != 0)
        c->heard_at_ns = base_clock_ns();
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (c->on_data != NULL)
        c->error = c->on_data(c->user, (int)status, bytes, length) != 0 ? -ECANCELED : 0;
    else if (c->on_line != NULL && status >= 200 && status < 300)
        c->error = take_lines(c, bytes, length);
    else
        c->error = base_text_append(&c->body, bytes, length);
    return c->error == 0 && !c->cancelled ? length : CURL_WRITEFUNC_ERROR;
}

static int add_header(struct http_transfer *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);
    if (longer == NULL)
        return -ENOMEM;
    c->headers = longer;
    return 0;
}

/* The header has the secret; it is in no message and no log. */
static int add_token(struct http_transfer *c, const struct http_call *call)
{
    char token[HTTP_TOKEN_BYTES], line[sizeof token + 32];
    if (call->unix_path == NULL && !call->allow_plain_token && !http_url_is_private(call->url))
        return -EPERM;
    if (call->token != NULL && http_token_check(call->token) == 0)
        snprintf(token, sizeof token, "%s", call->token);
    else if (call->token != NULL || http_token_read(call->token_file, token, NULL) != 0)
        return -ENOKEY;
    snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    int status = add_header(c, line);
    explicit_bzero(token, sizeof token);
    explicit_bzero(line, sizeof line);
    return status;
}

static int set_headers(struct http_transfer *c, const struct http_call *call)
{
    bool typed = false;
    for (const char *const *h = call->headers; h != NULL && *h != NULL; h++) {
        if (strpbrk(*h, "\r\n") != NULL || strchr(*h, ':') == NULL)
            return -EINVAL;
        typed |= strncasecmp(*h, "Content-Type:", 13) == 0;
        if (add_header(c, *h) != 0)
            return -ENOMEM;
    }
    if (call->token != NULL || (call->token_file != NULL && call->token_file[0] != '\0')) {
        int status = add_token(c, call);
        if (status != 0)
            return status;
    }
    if (call->body != NULL && !typed && add_header(c, "Content-Type: application/json") != 0)
        return -ENOMEM;
    /* Without this libcurl waits a second for "100 Continue" before larger bodies. */
    if (add_header(c, "Expect:") != 0)
        return -ENOMEM;
    return curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK ? 0 : -ENOMEM;
}

static int set_method(CURL *easy, const struct http_call *call)
{
    const char *method = call->method != NULL ? call->method : "GET";
    bool sends = call->body != NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
    CURLcode e = CURLE_OK;
    if (method[0] == '\0' || method[strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] != '\0')
        return -EINVAL;
    if (sends) {
        e |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                              (curl_off_t)(call->body != NULL ? call->body_length : 0));
        e |= curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, call->body != NULL ? call->body : "");
    }
    if (strcmp(method, "HEAD") == 0 && !sends)
        e |= curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        e |= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    return e == CURLE_OK ? 0 : -ENOMEM;
}

static CURLcode set_blob(CURL *easy, CURLoption option, const gnutls_datum_t *bytes)
{
    struct curl_blob blob = {.data = bytes->data, .len = bytes->size, .flags = CURL_BLOB_COPY};
    return bytes->data == NULL ? CURLE_OK : curl_easy_setopt(easy, option, &blob);
}

/* What was read and checked, not the files, which may be half written by now. libcurl keeps no
 * connection for a call that shows another certificate, or believes in others. A handshake is whole
 * each time: what was revoked does not come in by a former one. */
static CURLcode set_tls(CURL *easy, const struct http_tls *tls)
{
    const struct http_tls_loaded *now = tls->now;
    CURLcode e = set_blob(easy, CURLOPT_SSLCERT_BLOB, &now->file[HTTP_TLS_CERT]);
    e |= set_blob(easy, CURLOPT_SSLKEY_BLOB, &now->file[HTTP_TLS_KEY]);
    e |= set_blob(easy, CURLOPT_CAINFO_BLOB, &now->file[HTTP_TLS_CA]);
    if (now->file[HTTP_TLS_CA].data != NULL) /* those alone, and none of the system's */
        e |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (tls->path[HTTP_TLS_CRL] != NULL)
        e |= curl_easy_setopt(easy, CURLOPT_CRLFILE, tls->path[HTTP_TLS_CRL]);
    e |= curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    e |= curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, (long)TLS_CONNECTION_S);
    return e;
}

static int set_options(struct http_transfer *c, const struct http_call *call)
{
    CURL *easy = c->easy;
    uint32_t connect_ms =
        call->connect_timeout_ms != 0 ? call->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    uint32_t all_ms = call->timeout_ms != 0 ? call->timeout_ms : TIMEOUT_MS;
    CURLcode e = CURLE_OK;
    e |= curl_easy_setopt(easy, CURLOPT_URL, call->url);
    e |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    e |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    e |= curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* nor one from the environment */
    e |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    e |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "kedge/" KEDGE_VERSION);
    e |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    e |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, all_ms == UINT32_MAX ? 0L : (long)all_ms);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    e |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    e |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->why);
    e |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_data);
    e |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    e |= curl_easy_setopt(easy, CURLOPT_PRIVATE, c);
    if (call->unix_path != NULL)
        e |= curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, call->unix_path);
    e |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (call->tls != NULL)
        e |= set_tls(easy, call->tls);
    return e == CURLE_OK ? 0 : -ENOMEM;
}

int http_transfer_new(const struct http_call *call, void *user, struct http_transfer **out)
{
    if (call->url == NULL)
        return -EINVAL;
    struct http_transfer *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    size_t most = call->max_response_bytes != 0 ? call->max_response_bytes : RESPONSE_BYTES;
    base_text_init(&c->body, most);
    c->on_data = call->on_data;
    c->on_line = call->on_line;
    c->silence_ns = call->silence_timeout_ms * BASE_NS_PER_MS;
    c->heard_at_ns = base_clock_ns();
    c->user = user;
    c->easy = curl_easy_init();
    int status = c->easy == NULL ? -ENOMEM : set_options(c, call);
    if (status == 0)
        status = set_method(c->easy, call);
    if (status == 0)
        status = set_headers(c, call);
    if (status != 0) {
        http_transfer_free(c);
        return status;
    }
    *out = c;
    return 0;
}

void http_transfer_free(struct http_transfer *c)
{
    if (c == NULL)
        return;
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    base_text_fini(&c->body);
    free(c);
}

static bool has_plain_url(const struct http_transfer *c)
{
    char *url = NULL;
    curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url);
    return url != NULL && strncasecmp(url, "http:", 5) == 0;
}

/* The server says something that is no HTTP: as one with TLS does, before it closes. */
static bool is_other_protocol(const struct http_transfer *c, CURLcode code)
{
    return has_plain_url(c) && (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_GOT_NOTHING);
}

static int errno_of(const struct http_transfer *c, CURLcode code)
{
    long os = 0;
    if (c->error != 0)
        return c->error;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return -EHOSTUNREACH;
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &os);
        return os == ENETUNREACH || os == EHOSTUNREACH ? -EHOSTUNREACH : -ECONNREFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_UNSUPPORTED_PROTOCOL:
        return is_other_protocol(c, code) ? -EBADMSG : -EINVAL;
    case CURLE_URL_MALFORMAT:
        return -EINVAL;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return -ECONNRESET;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return -EBADMSG;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    case CURLE_ABORTED_BY_CALLBACK:
        return -ECANCELED;
    default:
        return -EIO;
    }
}

/* What libcurl says, and what to do. */
static const char *add_hint(struct http_transfer *c, const char *hint)
{
    const size_t used = strlen(c->why);
    snprintf(c->why + used, sizeof c->why - used, "%s(%s)", used > 0 ? " " : "", hint);
    return c->why;
}

static const char *reason_of(struct http_transfer *c, CURLcode code, int status)
{
    if (status == -EMSGSIZE)
        return "the answer is larger than expected";
    if (status == -ECANCELED)
        return "it was given up";
    if (c->error == -ETIMEDOUT)
        return "nothing came for too long";
    if (code == CURLE_SSL_CONNECT_ERROR)
        return add_hint(c, "a server without TLS is http://");
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return add_hint(c, strstr(c->why, "subject name") != NULL
                               ? "so the server's certificate is not believed: it is of other "
                                 "names: ask by one of them, or have one issued with this one"
                               : "so the server's certificate is not believed: renew it there, or "
                                 "name the authority that it is of: --cacert of a command, "
                                 "trusted_ca_file in settings");
    if (is_other_protocol(c, code))
        return add_hint(c, "a server with TLS is https://");
    return c->why[0] != '\0' ? c->why : curl_easy_strerror(code);
}

struct http_answer http_transfer_answer(struct http_transfer *c, CURLcode code)
{
    long status = 0;
    curl_off_t retry_s = 0;
    char *type = NULL;
    if (code != CURLE_OK) {
        int error = errno_of(c, code);
        return (struct http_answer){
            .status = error, .why = reason_of(c, code, error), .body = "", .content_type = ""};
    }
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_s);
    retry_s = retry_s < 0 ? 0 : retry_s > UINT32_MAX ? UINT32_MAX : retry_s;
    if (c->on_line != NULL && status >= 200 && status < 300)
        base_text_reset(&c->body); /* the begin of a line that has no end */
    return (struct http_answer){.status = (int)status,
                                .why = "",
                                .body = base_text_str(&c->body),
                                .body_length = c->body.length,
                                .content_type = type != NULL ? type : "",
                                .retry_after_s = (uint32_t)retry_s};
}

int http_call(const struct http_call *call, struct http_result *result, struct base_errbuf *err)
{
    const char *method = call->method != NULL ? call->method : "GET";
    struct http_transfer *c = NULL;
    int status;
    if (call->sent != NULL)
        *call->sent = false;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return base_err(err, -ENOMEM, "cannot start an HTTP client: out of memory");
    status = call->on_data != NULL || call->on_line != NULL ? -EINVAL
                                                            : http_transfer_new(call, NULL, &c);
    if (status != 0) {
        base_err(err, status, "%s %s: %s", method, call->url != NULL ? call->url : "(no URL)",
                 status == -ENOMEM   ? "out of memory"
                 : status == -ENOKEY ? "its token cannot be read, or is none"
                 : status == -EPERM  ? "the token would cross the network as it is, for everybody "
                                       "to see: say https://, or allow it by name"
                                     : "a malformed method or header");
        goto cleanup;
    }
    const CURLcode code = curl_easy_perform(c->easy);
    long sent = 0;
    curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (call->sent != NULL)
        *call->sent = sent > 0;
    struct http_answer a = http_transfer_answer(c, code);
    if (a.status < 0) {
        status = base_err(err, a.status, "%s %s failed: %s", method, call->url, a.why);
        goto cleanup;
    }
    struct http_result r = {.status = a.status, .body_length = a.body_length};
    snprintf(r.content_type, sizeof r.content_type, "%s", a.content_type);
    r.body = malloc(a.body_length + 1);
    if (r.body == NULL) {
        status = base_err(err, -ENOMEM, "%s %s failed: out of memory", method, call->url);
        goto cleanup;
    }
    memcpy(r.body, a.body, a.body_length + 1);
    *result = r;
cleanup:
    http_transfer_free(c);
    curl_global_cleanup();
    return status;
}

void http_result_fini(struct http_result *result)
{
    free(result->body);
    *result = (struct http_result){0};
}
