/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP call as an easy handle of libcurl: what the client and the waiting call share. */
#ifndef BASE_HTTP_TRANSFER_H
#define BASE_HTTP_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/http/client.h"
#include "base/text.h"

struct http_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct base_text body; /* of the answer */
    int error;             /* why the body was not taken: -EMSGSIZE, -ECANCELED, -ENOMEM */
    bool cancelled;        /* nobody is told any more */
    bool added;            /* to the client's multi handle */
    int (*on_data)(void *user, int status, const char *bytes, size_t length);
    int (*on_line)(void *user, const char *line, size_t length);
    uint64_t silence_ns;  /* 0: no bound */
    uint64_t heard_at_ns; /* when something came last, or it began */
    http_done done;
    void *user;
    uint64_t id;
    char why[CURL_ERROR_SIZE];
    TAILQ_ENTRY(http_transfer) link;
};

/* Checks and copies all of `call`. 0 and *out (http_transfer_free() it), or -EINVAL, -ENOMEM. */
int http_transfer_new(const struct http_call *call, void *user, struct http_transfer **out);
void http_transfer_free(struct http_transfer *c);

/* What happened, borrowed from c. */
struct http_answer http_transfer_answer(struct http_transfer *c, CURLcode code);

#endif
