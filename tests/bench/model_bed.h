/* SPDX-License-Identifier: Apache-2.0 */
/* Two cards of the cost model, in virtual time: what tests with --model measure on. One thread; the
 * same calls with the same seed lead to the same figures on every machine. */
#ifndef BENCH_MODEL_BED_H
#define BENCH_MODEL_BED_H

#include "base/error.h"
#include "fabric/model.h"
#include "fabric/sim.h"

enum { PERF_BED_QPS = 64 /* as --queue-pairs */, PERF_BED_SLOTS = 4096 };

struct perf_bed_node {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_qp *qp[PERF_BED_QPS];
};

/* Node 0 has RC queue pairs to node 1; each has so many bytes of memory, registered as a whole. */
struct perf_bed {
    struct sim_net *net;
    struct perf_bed_node node[2];
    uint32_t qps;
};

/* qps: up to PERF_BED_QPS of them, of so many slots each. On failure nothing is left. */
int perf_bed_open(struct perf_bed *bed, const struct model_preset *preset, uint64_t seed,
                  uint32_t qps, uint32_t slots, uint64_t bytes, struct base_errbuf *err);
void perf_bed_close(struct perf_bed *bed);
/* What node 0's card has counted. */
const struct fab_model_counters *perf_bed_counters(const struct perf_bed *bed);

#endif
