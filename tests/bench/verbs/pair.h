/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that keeps its connection open has of verbs without Kedge: two RC queue pairs on
 * two GIDs of one device, connected with each other, that READ, WRITE and SEND. Like program.h it
 * calls libibverbs itself and nothing of fabric/.
 *
 * One thread has both ends. Failures are -errno with a sentence. */
#ifndef BENCH_VERBS_PAIR_H
#define BENCH_VERBS_PAIR_H

#include "program.h"

enum bench_op {
    BENCH_OP_READ,
    BENCH_OP_WRITE,
    BENCH_OP_SEND,
    BENCH_OP_WRITE_IMM /* whose receive takes no buffer */
};

/* Requests are in `depth` slots, of `size` bytes each, `stride` apart at both ends: no more than
 * BENCH_BUFFER_BYTES in all. */
struct bench_slots {
    uint32_t depth, size, stride;
};

struct bench_pair;
/* Connected, and with two receives for each slot. *out is the caller's. */
int bench_pair_open(const struct bench_choice *c, const struct bench_slots *slots,
                    struct bench_pair **out, struct base_errbuf *err);
/* NULL is allowed. */
void bench_pair_close(struct bench_pair *p);

/* Memory of the end that posts, and of the other one, BENCH_BUFFER_BYTES each: borrowed until
 * closed. */
void *bench_pair_near(const struct bench_pair *p);
void *bench_pair_far(const struct bench_pair *p);

/* Posts slots first, first + 1, ... (modulo depth), count of them, as one list, each signalled. */
int bench_pair_post(struct bench_pair *p, enum bench_op op, uint32_t first, uint32_t count,
                    struct base_errbuf *err);
/* Posts each receive that has ended again. Returns how many requests completed, all well. */
int bench_pair_poll(struct bench_pair *p, struct base_errbuf *err);

#endif
