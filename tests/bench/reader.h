/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that does what a new one does until its first READ, in the steps that are measured, and
 * the one whose memory it READs. One thread each; failures are -errno with a sentence. */
#ifndef BENCH_READER_H
#define BENCH_READER_H

#include <kedge.h>

#include "perf.h"

/* A worker with eight bytes of the pattern that others may READ, named by the token. */
struct perf_target {
    struct kedge_session *s;
    char token[KEDGE_TOKEN_MAX];
};
/* Attaches to o->peer_socket, else o->socket. On failure nothing is left. */
int perf_target_open(const struct perf_options *o, struct perf_target *out, uint64_t *retries,
                     struct base_errbuf *err);
void perf_target_close(struct perf_target *t);

/* The caller sets the first two and zeroes the others; borrowed strings. */
struct perf_reader {
    const char *socket; /* of its agent */
    const char *token;  /* of the target */
    uint64_t retries;   /* times that the agent had no session ready */
    struct kedge_session *s;
    struct kedge_vqp *q;
    struct kedge_remote remote;
    void *memory;
    uint32_t lkey;
};
/* The steps, in this order. */
int perf_reader_attach(struct perf_reader *r, struct base_errbuf *err);
int perf_reader_memory(struct perf_reader *r, struct base_errbuf *err);
int perf_reader_import(struct perf_reader *r, struct base_errbuf *err);
int perf_reader_connect(struct perf_reader *r, struct base_errbuf *err); /* and makes the VQP */
int perf_reader_read(struct perf_reader *r, struct base_errbuf *err);
/* Posts a READ of so many bytes, which come to `at` of its memory, and waits for nothing. */
int perf_reader_post(struct perf_reader *r, uint64_t wr_id, uint64_t at, uint32_t size,
                     struct base_errbuf *err);
/* Whether the READ brought the target's bytes: -EBADMSG. */
int perf_reader_check(const struct perf_reader *r, struct base_errbuf *err);
/* Ends the session, if there is one. */
void perf_reader_close(struct perf_reader *r);

#endif
