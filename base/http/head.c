/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request may look like.
 *
 * A proxy in front of us has read it too, and where the two of us find its end, or that of its
 * body, in different places, somebody else's request becomes a part of this one. So whatever can be
 * read in two ways is refused before a body is taken, and the connection is closed.
 *
 * libmicrohttpd reads leniently, and keeps what it has read in place: it writes NULs over ends of
 * lines and over colons. So where its strings lie shows whether there was anything between them but
 * what belongs there: a bare LF for CRLF, a NUL in a value, a line that was folded. That holds for
 * the version which Debian 12 has, and is looked at with that one alone. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/http/library.h"
#include "server_private.h"

enum {
    PARAMETERS_MAX = 64,
    /* Of the memory of a connection: a URI has at most one part, and one parameter takes one at
     * most. With less of it libmicrohttpd would stop in the middle, without an answer. The same
     * part may be cookies, which it copies. */
    URI_PARTS = 4,
    PARAMETER_PARTS = 256,
};

int http_head_look_at_uri(struct http_exchange *r, const char *uri, const char **why)
{
    const size_t bytes = r->connection->server->config.header_bytes;
    const size_t most = bytes / PARAMETER_PARTS;
    size_t parameters = 0;
    r->uri = uri;
    r->uri_length = strlen(uri);
    for (const char *p = strchr(uri, '?'); p != NULL; p = strchr(p + 1, '&'))
        parameters++;
    *why = "the URI is longer than all that this server takes";
    if (r->uri_length > bytes / URI_PARTS)
        return 414;
    *why = "the URI has more parameters than any request takes";
    return parameters > (most < PARAMETERS_MAX ? most : PARAMETERS_MAX) ? 414 : 0;
}

/* ---- headers */

enum once { HOST, LENGTH, CODING, EXPECT, ORIGIN, AUTHORIZATION, TYPE, ONCE };

static const char *const once_names[ONCE] = {
    [HOST] = "Host",        [LENGTH] = "Content-Length", [CODING] = "Transfer-Encoding",
    [EXPECT] = "Expect",    [ORIGIN] = "Origin",         [AUTHORIZATION] = "Authorization",
    [TYPE] = "Content-Type"};

struct head {
    const char *once[ONCE]; /* values; NULL: there is none */
    const char *next;       /* where the next header has to begin; NULL: that is not looked at */
    const char *wrong;      /* the first thing that is, or NULL */
};

static bool is_name(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    const char *p = text;
    while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
           (*p != '\0' && strchr(others, *p) != NULL))
        p++;
    return p != text && *p == '\0';
}

static bool is_value(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

static enum MHD_Result look_at_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct head *h = cls;
    (void)kind;
    value = value != NULL ? value : "";
    if (!is_name(name) || !is_value(value))
        h->wrong = "a header has characters that may not be in one";
    if (h->next != NULL && name != h->next)
        h->wrong = "a line of the head does not end with CRLF, is folded, or has a NUL in it";
    if (h->next != NULL)
        h->next = value + strlen(value) + 2;
    for (int i = 0; i < ONCE; i++)
        if (strcasecmp(name, once_names[i]) == 0) {
            if (h->once[i] != NULL)
                h->wrong = "a header that may be there once is there twice";
            h->once[i] = value;
        }
    return h->wrong == NULL ? MHD_YES : MHD_NO;
}

const char *http_library_version(void)
{
    return MHD_get_version();
}

const char *http_library_warning(const char *version)
{
    return strcmp(version, "0.9.75") == 0
               ? NULL
               : "libmicrohttpd is another version than was tested (0.9.75): whether a request's "
                 "head has a bare LF, a folded line or a NUL is not looked at";
}

static bool keeps_in_place(void)
{
    return http_library_warning(MHD_get_version()) == NULL;
}

/* Of the first line. NULL: it is not as it has to be. */
static const char *end_of_first_line(const struct http_exchange *r, const char *method,
                                     const char *version)
{
    if (r->uri != method + strlen(method) + 1 || version != r->uri + r->uri_length + 1)
        return NULL;
    return version + strlen(version) + 2;
}

static void read_headers(const struct http_exchange *r, const char *method, const char *version,
                         struct head *h)
{
    const bool in_place = keeps_in_place();
    *h = (struct head){.next = in_place ? end_of_first_line(r, method, version) : NULL};
    if (in_place && h->next == NULL)
        h->wrong = "the first line is not: METHOD, a blank, URI, a blank, HTTP/1.1";
    if (h->wrong != NULL)
        return;
    (void)MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, look_at_header, h);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (in_place && h->wrong == NULL && info != NULL && method + info->header_size != h->next + 2)
        h->wrong = "the head does not end with an empty line after CRLF, or has a NUL in it";
}

/* ---- hosts */

/* Its length without the port; 0: it is none. */
static size_t host_length(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    const size_t length = strlen(host);
    if (n == 0 || n > length ||
        strspn(host + (host[0] == '['), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789.-_:") +
                2 * (size_t)(host[0] == '[') <
            n)
        return 0;
    if (host[n] == '\0')
        return n;
    const size_t digits = strspn(host + n + 1, "0123456789");
    return host[n] == ':' && digits <= 5 && n + 1 + digits == length ? n : 0;
}

static bool is_listed(const char *hosts, const char *name, size_t length)
{
    while (*hosts != '\0') {
        const size_t n = strcspn(hosts, ", ");
        if (n == length && strncasecmp(hosts, name, n) == 0)
            return true;
        hosts += n + strspn(hosts + n, ", ");
    }
    return false;
}

/* Of this host's loopback itself, whoever resolves names: that, an address, or what is listed. */
static bool is_ours(const struct http_server *s, const char *host, size_t length)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    if (host[0] == '[' || (length == 9 && strncasecmp(host, "localhost", 9) == 0) ||
        is_listed(s->hosts, host, length))
        return true;
    if (length >= sizeof text)
        return false;
    memcpy(text, host, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

static bool is_our_origin(const struct http_server *s, const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    const size_t length = at == NULL ? 0 : host_length(at + 3);
    return length > 0 && (strcasecmp(at + 3, host) == 0 || is_listed(s->hosts, at + 3, length));
}

/* "http://host/path" is as good as "/path" with that Host. False: its host is another one. */
static bool take_absolute(struct http_exchange *r, const char *host)
{
    const char *path = r->public.path, *at = strstr(path, "://");
    if (path[0] == '/' || strcmp(path, "*") == 0)
        return true;
    if (at == NULL ||
        (strncasecmp(path, "http://", 7) != 0 && strncasecmp(path, "https://", 8) != 0))
        return false;
    at += 3;
    const size_t length = strcspn(at, "/");
    r->public.path = at[length] == '/' ? at + length : "/";
    return strlen(host) == length && strncasecmp(at, host, length) == 0;
}

/* ---- all of it */

static void refuse_head(struct http_exchange *r, int status, const char *why)
{
    r->closes = true;
    if (r->reject != 0)
        return;
    r->reject = status;
    r->why = why;
}

static void look_at_body(struct http_exchange *r, const struct head *h)
{
    const char *coding = h->once[CODING];
    if (coding != NULL && h->once[LENGTH] != NULL)
        refuse_head(r, 400, "Content-Length and Transfer-Encoding exclude each other");
    else if (coding != NULL && strcasecmp(coding, "chunked") == 0)
        refuse_head(r, 411, "a body in chunks is not taken: say its Content-Length");
    else if (coding != NULL)
        refuse_head(r, 501, "no transfer coding is known here: say a body's Content-Length");
    else if (h->once[EXPECT] != NULL && strcasecmp(h->once[EXPECT], "100-continue") != 0)
        refuse_head(r, 417, "the one expectation that is known is 100-continue");
}

static void look_at_host(struct http_exchange *r, const struct head *h, const char *version)
{
    const struct http_server *s = r->connection->server;
    const char *host = h->once[HOST];
    if (host == NULL && strcmp(version, "HTTP/1.0") == 0)
        host = "localhost"; /* which had no Host */
    const size_t length = host == NULL ? 0 : host_length(host);
    if (length == 0) {
        refuse_head(r, 400, "a request needs one Host, and that must be HOST or HOST:PORT");
    } else if (!take_absolute(r, host)) {
        refuse_head(r, 400, "the URI is neither a path nor one of the host that Host names");
    } else if (s->hosts != NULL && r->connection->on_loopback) {
        if (!is_ours(s, host, length))
            refuse_head(
                r, 403,
                "on loopback the Host must be localhost, an address, or one of `hosts` in the "
                "configuration");
        else if (h->once[ORIGIN] != NULL && !is_our_origin(s, h->once[ORIGIN], host))
            refuse_head(r, 403,
                        "on loopback the Origin must be the Host, or one of `hosts` in the "
                        "configuration");
    }
}

void http_head_look(struct http_exchange *r, const char *method, const char *version)
{
    struct head h;
    read_headers(r, method, version, &h);
    if (h.wrong != NULL)
        refuse_head(r, 400, h.wrong);
    else if (!is_name(method))
        refuse_head(r, 400, "the method has characters that may not be in one");
    else if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        refuse_head(r, 505, "HTTP/1.1 and HTTP/1.0 are known");
    look_at_body(r, &h);
    look_at_host(r, &h, version);
}

static const char *header_of(const struct http_exchange *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

bool http_head_leaves_no_room(const struct http_exchange *r)
{
    const char *cookie = header_of(r, MHD_HTTP_HEADER_COOKIE);
    return cookie != NULL &&
           strlen(cookie) > r->connection->server->config.header_bytes / URI_PARTS;
}

/* Such a head has no number for the length of its body, or there was no memory for its cookies. */
int http_head_find_fault(struct http_exchange *r, const char **why)
{
    const char *length = header_of(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t bytes;
    *why = "the headers are larger than all that this server takes";
    if (length == NULL || base_parse_u64(length, 0, UINT64_MAX, &bytes) == 0)
        return 431;
    *why = "the body is too large";
    if (length[0] != '\0' && strspn(length, "0123456789") == strlen(length))
        return 413;
    *why = "Content-Length has other characters than digits, or none";
    return 400;
}
