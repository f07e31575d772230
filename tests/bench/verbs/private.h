/* SPDX-License-Identifier: Apache-2.0 */
/* What open.c, program.c, pair.c and states.c share. */
#ifndef BENCH_VERBS_PRIVATE_H
#define BENCH_VERBS_PRIVATE_H

#include <infiniband/verbs.h>

#include "base/clock.h"
#include "program.h"

struct bench_program {
    struct base_clock_fast clock;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_port_attr port_attr;
    uint8_t port, gid_index;
    uint8_t gid[16];
    void *buffer; /* BENCH_BUFFER_BYTES, touched */
};

/* What one end tells the other. Both are on one host: no byte order. */
struct bench_address {
    uint8_t gid[16];
    uint32_t qpn, psn, lid, rkey;
    uint64_t addr, word; /* word: what is at addr */
};

/* -errnum, or -EIO for 0, with a sentence. */
int bench_failed(struct base_errbuf *err, const char *what, int errnum);
/* A PSN that nobody guesses. */
int bench_draw_psn(uint32_t *psn, struct base_errbuf *err);

/* The changes of an RC queue pair's state. access: what its peer may do; reads: how many READs may
 * be out at a time, from it and to it. */
int bench_to_init(const struct bench_program *p, struct ibv_qp *qp, unsigned access,
                  struct base_errbuf *err);
int bench_to_rtr(const struct bench_program *p, struct ibv_qp *qp, const struct bench_address *peer,
                 uint8_t reads, struct base_errbuf *err);
int bench_to_rts(struct ibv_qp *qp, uint32_t psn, uint8_t reads, struct base_errbuf *err);

#endif
