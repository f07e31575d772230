/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf verbs-data: what operations take through an agent, in turns with the same operations
 * on a program's own queue pairs, on the same device. */
#ifndef BENCH_VERBS_DATA_H
#define BENCH_VERBS_DATA_H

#include "perf.h"

/* Of o->socket's agent to o->peer_socket's, and of o->verbs' GID to its peer's. Fails when data is
 * not what was sent; how long it took, it says. */
int perf_verbs_data(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_verbs_data_report(const struct perf_options *o, const struct perf_result *r);

/* Its agents' side of SENDs, and of WRITEs with immediate: a worker that sends to a port of
 * another's, o->depth at a time. */
struct perf_sender;
int perf_sender_new(const struct perf_options *o, struct perf_result *r, struct perf_sender **out,
                    struct base_errbuf *err);
/* NULL is allowed. */
void perf_sender_free(struct perf_sender *s);
/* One of two: they share memory and the port. */
struct perf_path *perf_sender_path(struct perf_sender *s, bool with_immediate);
/* Empties where messages arrive; and whether all slots hold what was sent. */
void perf_sender_clear(struct perf_sender *s);
bool perf_sender_arrived(const struct perf_sender *s);

/* Batches of o->count WRITEs of PERF_VERBS_BLOCK bytes, one after the other. */
enum { PERF_VERBS_BLOCK = 4096, PERF_VERBS_BLOCKS = 256 /* of memory: 1 MiB */ };
struct perf_batcher;
int perf_batcher_new(const struct perf_options *o, struct perf_result *r, struct perf_batcher **out,
                     struct base_errbuf *err);
void perf_batcher_free(struct perf_batcher *b);
/* One of them, whose bytes are looked at. */
int perf_batcher_run(struct perf_batcher *b, uint64_t *ns, struct base_errbuf *err);

#endif
