/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP calls: asynchronous ones in an event loop, and one that waits, for command line tools.
 *
 * A client belongs to one thread. Watch its one descriptor for reading and call run() when it is
 * readable; timers are inside it. Callbacks run inside run() and free() only, so never inside
 * call(). No redirects, no proxies, no cookies, HTTP and HTTPS alone; connections are kept. */
#ifndef BASE_HTTP_CLIENT_H
#define BASE_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http/tls.h"

struct http_client;

enum {
    HTTP_CALLS_MAX = 256,   /* under way in one client */
    HTTP_TOKEN_BYTES = 512, /* with the NUL */
};

/* Borrowed for the call that takes it. Zero or NULL: the default in parentheses, or none. */
struct http_call {
    const char *method;         /* (GET) */
    const char *url;            /* "http://127.0.0.1:7480/v1/nodes" */
    const char *unix_path;      /* connect there; the URL's host is then only a header */
    const char *const *headers; /* "Name: value", NULL at the end */
    const char *token;          /* shown as "Authorization: Bearer TOKEN"; NULL: none */
    const char *token_file;     /* likewise what is there when the call begins; NULL, "": none */
    const char *body;           /* NULL: none; is application/json if no header says else */
    size_t body_length;
    uint32_t connect_timeout_ms; /* (5000) */
    uint32_t timeout_ms;         /* of it all (10000; UINT32_MAX: none, for streams) */
    size_t max_response_bytes;   /* of the body (4 MiB); more is -EMSGSIZE. Not for on_data */
    const struct http_tls *tls;  /* HTTPS: whom to believe (the system's authorities), and what to
                                  * show (nothing) */
    /* A token may go over plain HTTP to another host, where whoever sees it has it (that is
     * -EPERM). */
    bool allow_plain_token;
    /* A stream: gets the body piece by piece, and `done` gets none. Return 0, or anything else to
     * end the call with -ECANCELED. Streams are for clients, not for http_call(). status is
     * the HTTP status. */
    int (*on_data)(void *user, int status, const char *bytes, size_t length);
    /* Likewise, but of an answer that is 2xx, and line by line: without their ends, NUL-terminated,
     * empty ones too; the last one counts only if it has its end. Of other answers `done` gets the
     * body. max_response_bytes is then of a line. */
    int (*on_line)(void *user, const char *line, size_t length);
    bool *sent; /* of http_call() alone: whether any of it went out, also when it failed; or NULL */
    uint32_t silence_timeout_ms; /* a call to which nothing comes for so long, from its start on,
                                  * ends with -ETIMEDOUT (0: that is no reason). Not for
                                  * http_call() */
};

/* Borrowed by the callback. */
struct http_answer {
    int status;       /* 100 .. 599, or -errno: -ECONNREFUSED, -EHOSTUNREACH (also a name that does
                       * not resolve), -ETIMEDOUT, -EMSGSIZE, -EBADMSG (no HTTP, or TLS failed),
                       * -ECONNRESET, -EINVAL (the URL), -ECANCELED, -ENOMEM, -EIO */
    const char *why;  /* a sentence when status < 0, else "" */
    const char *body; /* NUL-terminated, "" if none */
    size_t body_length;
    const char *content_type; /* "" if unknown */
    uint32_t retry_after_s;   /* for which it says to wait; 0: it does not say */
};

typedef void (*http_done)(void *user, const struct http_answer *answer);

/* The token in a file, without the blanks and ends of line after it. 0; or -errno and a sentence:
 * -EINVAL: there is no token in it. Blocks on the file. Any thread. */
int http_token_read(const char *path, char out[HTTP_TOKEN_BYTES], struct base_errbuf *err);
/* Whether others may read or write the file, whoever names it: a token that they may read is theirs
 * too. 0; or -EACCES and a sentence. */
int http_token_private(const char *path, struct base_errbuf *err);
/* Whether a text can be shown as a token: 0 or -EINVAL. */
int http_token_check(const char *token);
/* Whether nobody on a network sees what is sent to a URL: it is https://, or of this host's
 * loopback. */
bool http_url_is_private(const char *url);
/* Whether it is of this host's loopback, whatever its scheme. */
bool http_url_is_loopback(const char *url);

/* 0 and *out (the caller's), or -errno. */
int http_client_new(struct http_client **out);

/* Ends every call under way: its `done` gets -ECANCELED, and may not start another. Not from a
 * callback. NULL is allowed. */
void http_client_free(struct http_client *client);

/* Borrowed: watch it for reading. */
int http_client_fd(const struct http_client *client);

/* Does what can be done now, calling callbacks; never blocks. */
void http_client_run(struct http_client *client);

/* Starts a call. done is called exactly once, unless the call is cancelled. 0 and *id
 * (may be NULL; never 0, never used again), or -EAGAIN with HTTP_CALLS_MAX under way,
 * -EINVAL, -ENOMEM, -ENOKEY (the token cannot be read or shown), -EPERM (nor may it be, over plain
 * HTTP), -ECANCELED while the client is freed. May be called from a callback. */
int http_client_call(struct http_client *client, const struct http_call *call, http_done done,
                     void *user, uint64_t *id);

/* Ends a call without calling back. 0, or -ENOENT when it has ended. May be called from a
 * callback, on_data included. */
int http_client_cancel(struct http_client *client, uint64_t id);

/* What the waiting call returns; free it with http_result_fini(). */
struct http_result {
    int status;
    char *body; /* NUL-terminated, owned */
    size_t body_length;
    char content_type[64];
};

/* Calls and waits. 0 and *result whatever the HTTP status is, or -errno with a sentence in err
 * ("GET http://127.0.0.1:7480/v1/nodes failed: connection refused"). Any
 * thread. */
int http_call(const struct http_call *call, struct http_result *result, struct base_errbuf *err);
void http_result_fini(struct http_result *result);

#endif
