/* SPDX-License-Identifier: Apache-2.0 */
/* Between etcd_client.c (which endpoint), etcd_transfer.c (libcurl), etcd_error.c (what an answer
 * means) and etcd_settings.c. */
#ifndef METASERVER_STORE_ETCD_CLIENT_PRIVATE_H
#define METASERVER_STORE_ETCD_CLIENT_PRIVATE_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "etcd_client.h"

enum {
    META_ETCD_TOKEN_BYTES = 2048, /* JWTs are the long ones */
    META_ETCD_SECRET_BYTES = 512,
    META_ETCD_CLUSTER_BYTES = 24,
};

/* One HTTP exchange. */
struct meta_etcd_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct base_text body;
    const char *sends; /* of a request that is to be sent once at most: borrowed until its end */
    size_t length, sent;
    char why[CURL_ERROR_SIZE];
    bool added, over;
    CURLcode code; /* when it is over */
};

struct meta_etcd_client {
    char url[META_ETCD_ENDPOINTS_MAX][META_ETCD_URL_BYTES];
    uint64_t failed_ns[META_ETCD_ENDPOINTS_MAX]; /* when it failed last; 0: it did not since */
    uint32_t count, good;
    uint64_t usual_ns; /* that an answer takes */
    bool down;         /* the last call reached nobody: so the next one does not wait long */
    char user[128];
    char password_file[512], ca_file[512], cert_file[512], key_file[512]; /* "": none */
    char token[META_ETCD_TOKEN_BYTES];                                    /* "": none yet */
    char cluster[META_ETCD_CLUSTER_BYTES];                                /* "": not known yet */
    CURLM *multi;
    struct meta_etcd_transfer unary, stream;
    uint32_t stream_endpoint;
    size_t stream_used;  /* bytes of its body that were given */
    size_t stream_whole; /* bytes of what is left that have no end of a line */
    int stop_fd;
    _Atomic bool stopped;
};

/* What came of a request. */
enum meta_etcd_verdict {
    META_ETCD_DONE,
    META_ETCD_REFUSED,   /* for good: any endpoint would say so */
    META_ETCD_NOT_DONE,  /* another endpoint may do it */
    META_ETCD_NOT_KNOWN, /* likewise, but this one may have */
    META_ETCD_TOKEN,     /* was not done: it wants another token */
};

/* ---- etcd_settings.c */
int meta_etcd_read_settings(struct meta_etcd_client *c, const struct meta_store_etcd_config *config,
                            struct base_errbuf *err);
/* The password, or -errno and a sentence. */
int meta_etcd_read_password(const struct meta_etcd_client *c, char out[META_ETCD_SECRET_BYTES],
                            struct base_errbuf *err);

/* ---- etcd_transfer.c */
/* Prepares t for a POST. timeout_ms 0: none. -ENOMEM. The body of a stream is copied; any other is
 * borrowed until the transfer's end, and is sent once at most: libcurl sends again by itself what a
 * connection that it has kept did not answer, though it may have been done. */
int meta_etcd_transfer_begin(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                             const char *url, const char *path, const char *body, size_t length,
                             uint64_t timeout_ns, size_t max_bytes);
/* Waits until it is over: 0; or, when something is there of a stream that is waited for or the time
 * is over, -EAGAIN; -ECANCELED. */
int meta_etcd_transfer_wait(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                            uint64_t until_ns);
void meta_etcd_transfer_end(struct meta_etcd_client *c, struct meta_etcd_transfer *t);
void meta_etcd_transfer_fini(struct meta_etcd_client *c, struct meta_etcd_transfer *t);

/* ---- etcd_error.c */
/* What a transfer that is over says: *out is given with META_ETCD_DONE; else *status and a
 * sentence. */
enum meta_etcd_verdict meta_etcd_judge(struct meta_etcd_client *c, struct meta_etcd_transfer *t,
                                       uint32_t endpoint, json_t **out, int *status,
                                       struct base_errbuf *err);
/* Likewise an error that etcd said: its code in gRPC and its words. */
enum meta_etcd_verdict meta_etcd_judge_error(const char *url, int64_t code, const char *message,
                                             int *status, struct base_errbuf *err);
/* Whether it is the cluster that answered before, as the header in there says; else -EXDEV. */
bool meta_etcd_check_cluster(struct meta_etcd_client *c, const char *url, json_t *root, int *status,
                             struct base_errbuf *err);

#endif
