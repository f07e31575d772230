/* SPDX-License-Identifier: Apache-2.0 */
/* A client of etcd's JSON gateway: requests that wait for their answer, and one stream beside them.
 *
 * It goes from one endpoint to the next and stays with the one that answered last. One thread; but
 * for meta_etcd_stop(), which any may call. */
#ifndef METASERVER_STORE_ETCD_CLIENT_H
#define METASERVER_STORE_ETCD_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "metaserver/store_etcd.h"

enum {
    META_ETCD_ENDPOINTS_MAX = 16,
    META_ETCD_URL_BYTES = 256,
    META_ETCD_ANSWER_BYTES = 16 << 20, /* of one answer */
    META_ETCD_LINE_BYTES = 64 << 20,   /* of one line of a stream, and what is behind it */
};

struct meta_etcd_client;

/* A request's settings. Strings are borrowed. */
struct meta_etcd_call {
    const char *path; /* "/v3/kv/txn" */
    const char *body;
    size_t length;
    uint64_t deadline_ns; /* on base_clock_ns() */
    bool once;            /* is sent to no second endpoint, once a first may have done it */
    bool large;           /* the answer may take a while */
};

/* 0 and *out, or -errno and a sentence: -EINVAL, -EACCES, -ENOENT, -ENOMEM. */
int meta_etcd_client_new(const struct meta_store_etcd_config *config, struct meta_etcd_client **out,
                         struct base_errbuf *err);
void meta_etcd_client_free(struct meta_etcd_client *c);

/* 0 and *out (json_decref() it), an object. Else a sentence, and
 *   -ETIMEDOUT  the request was sent, and it is not known whether it was done;
 *   -EBUSY      it was not: nobody answers, or etcd has no leader;
 *   -ERANGE     what it asks for was compacted away, or is of a revision to come;
 *   -EXDEV      another cluster answers than before (meta_etcd_forget_cluster());
 *   -ENOENT     no such lease;   -ENOSPC   etcd's disk is full;   -EACCES   not allowed;
 *   -EPROTO     its certificate is not believed;
 *   -EMSGSIZE, -EBADMSG, -EINVAL, -EIO, -ENOMEM, -ECANCELED (stopped). */
int meta_etcd_call(struct meta_etcd_client *c, const struct meta_etcd_call *call, json_t **out,
                   struct base_errbuf *err);
/* What was known of the cluster: the next one that answers is it. */
void meta_etcd_forget_cluster(struct meta_etcd_client *c);
/* The endpoint that a sentence is to name: the one that answered last. */
const char *meta_etcd_endpoint(const struct meta_etcd_client *c);
/* Any thread: calls return -ECANCELED from now on. */
void meta_etcd_stop(struct meta_etcd_client *c);
bool meta_etcd_stopped(const struct meta_etcd_client *c);
/* The owner's thread, when nobody else has it any more: they work again, to say good-bye. */
void meta_etcd_resume(struct meta_etcd_client *c);
/* Does nothing for a while, or until it is stopped. */
void meta_etcd_wait(struct meta_etcd_client *c, uint64_t wait_ns);

/* The member under either of its names in JSON ("mod_revision", "modRevision"); NULL: there is
 * none.
 */
json_t *meta_etcd_get(json_t *object, const char *name);

/* ---- the stream; there is one at most */

/* Begins it at the endpoint that answered last, in place of a former one. Errors as a call's. */
int meta_etcd_stream_open(struct meta_etcd_client *c, const char *path, const char *body,
                          struct base_errbuf *err);
void meta_etcd_stream_close(struct meta_etcd_client *c);
/* The next line that is whole, what is in its "result": 1 and *out, an object (json_decref() it);
 * 0: there is none yet; or, when the stream has ended, gives an error, is too long or is none of
 * JSON, -errno (as a call's) and a sentence. Blocks for wait_ns at most. */
int meta_etcd_stream_next(struct meta_etcd_client *c, uint64_t wait_ns, json_t **out,
                          struct base_errbuf *err);
/* Whether another endpoint has answered since it was opened. */
bool meta_etcd_stream_is_elsewhere(const struct meta_etcd_client *c);

#endif
