/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the metaserver and the local agent. Blocks, 5 s at most unless it is said.
 *
 * Of several metaservers (ctl/servers.h) the next is asked where one cannot be, or does not answer;
 * but a change that was sent to one is not sent to another, since it may have been done. */
#ifndef CTL_FETCH_H
#define CTL_FETCH_H

#include "base/http/client.h"
#include "ctl/options.h"

/* From the metaserver. 0 and a 2xx answer in *out (fini it), or -errno with a sentence that says
 * what to do; an HTTP error becomes the errno of its row. */
int ctl_fetch_server(const struct ctl_options *o, const char *path, struct http_result *out,
                     struct base_errbuf *err);
enum { CTL_URL_BYTES = 1024 };

/* Borrowed. */
struct ctl_request {
    const char *method, *path;
    const char *header;  /* one more, "Name: value"; or NULL */
    const char *body;    /* JSON; or NULL */
    unsigned timeout_ms; /* 0: 5 s */
};
/* Any request to the metaserver, otherwise as above. */
int ctl_call_server(const struct ctl_options *o, const struct ctl_request *request,
                    struct http_result *out, struct base_errbuf *err);
/* Of several metaservers the next one is asked from now on, which is said to standard error, with
 * why. False: there is no other. */
bool ctl_server_next(const struct ctl_options *o, const char *why);
/* The same where a stream has ended, and blocks for a second: those that end as soon as they begin
 * do not follow each other at once. */
bool ctl_server_go_on(const struct ctl_options *o, const char *why);
/* Of an answer: 429 or 503, with which a metaserver that is behind, full or stopping says so. */
bool ctl_is_for_another(int http_status);
/* Where a call to the metaserver goes, and what it shows; all that a http_call borrows. */
struct ctl_target {
    char url[CTL_URL_BYTES];
    const char *unix_path;        /* or NULL */
    char token[HTTP_TOKEN_BYTES]; /* ""; none */
    const struct http_tls *tls;   /* as long as the program; or NULL */
    bool allow_plain_token;
};
/* Of a path there. 0, or -EINVAL, -EACCES, ... and a sentence: the server's name, or the token. */
int ctl_target_of(const struct ctl_options *o, const char *path, struct ctl_target *out,
                  struct base_errbuf *err);
/* The same for what is no call of this file, as a stream: of one that answers, where there are
 * several. */
int ctl_target_find(const struct ctl_options *o, const char *path, struct ctl_target *out,
                    struct base_errbuf *err);
/* Puts it into a call. */
void ctl_aim(struct http_call *call, const struct ctl_target *target);
/* 0 for a 2xx; else the errno of the HTTP status' row, and a sentence with what the body says. */
int ctl_judge(const char *who, int http, const char *body, size_t bytes, struct base_errbuf *err);

/* The same from the agent's admin socket. */
int ctl_fetch_agent(const struct ctl_options *o, const char *path, struct http_result *out,
                    struct base_errbuf *err);

/* DELETE of a path there, which takes effect before it is answered: waits timeout_ms. */
int ctl_delete_agent(const struct ctl_options *o, const char *path, unsigned timeout_ms,
                     struct http_result *out, struct base_errbuf *err);

/* text as a part of a URL's path or query. -EMSGSIZE when it does not fit. */
int ctl_percent_encode(const char *text, char *out, size_t size);
/* A token, or another secret, from a file. 0; -EACCES: others may read or write it; -EINVAL: it
 * cannot be read, or holds none. */
int ctl_read_token(const char *path, char out[HTTP_TOKEN_BYTES], struct base_errbuf *err);

/* Append "name=value" to a path of size bytes, with what it takes before; NULL: nothing. 0 or
 * -EINVAL: it does not fit. */
int ctl_add_query(char *path, size_t size, const char *name, const char *value,
                  struct base_errbuf *err);
int ctl_add_encoded(char *path, size_t size, const char *name, const char *encoded,
                    struct base_errbuf *err);

#endif
