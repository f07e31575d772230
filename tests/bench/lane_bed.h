/* SPDX-License-Identifier: Apache-2.0 */
/* A lane as agents have it, on cards of the cost model, in virtual time: workers write into their
 * rings, and nodes that only serve are at the other end. The tables that it READs are filled by
 * hand. One thread; the same calls with the same seed lead to the same figures on every machine. */
#ifndef BENCH_LANE_BED_H
#define BENCH_LANE_BED_H

#include "agent/lane.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/hist.h"
#include "base/random.h"
#include "fabric/model.h"
#include "fabric/sim.h"
#include "schema/session.h"

enum {
    LANE_BED_NODES = 9,  /* the lane's, and those that serve */
    LANE_BED_LINKS = 24, /* connections of the lane: some are kept for endpoints that have none */
    LANE_BED_WORKERS = 96,
    LANE_BED_TENANTS = 2,
    LANE_BED_SLOTS = 64,       /* of a ring */
    LANE_BED_REGION = 16 << 20 /* bytes of each node's region, which begins at address */
};
#define LANE_BED_ADDRESS 0x10000ull

struct lane_bed;
struct lane_bed_worker;

/* What of a lane is not as agents have it by default. */
struct lane_bed_kind {
    enum lane_window_policy policy;
    bool apart;           /* nothing is merged */
    bool ring_each;       /* a doorbell for each work request, as if nothing were chained */
    uint32_t doorbell_ns; /* that the lane's processor takes for one */
    uint32_t cut_bytes;   /* longer READs and WRITEs go in pieces of so much; 0: as one */
    uint64_t region;      /* bytes of each node's; 0: LANE_BED_REGION */
    uint32_t connections; /* that an endpoint may have; 0: one */
};

/* The worker's next request: op, flags, and of `post` the address, the length, and `offset` in its
 * memory, which is all of the region. */
typedef void lane_bed_choose_fn(struct lane_bed_worker *worker, struct base_prng *prng,
                                struct schema_sq_desc *d);

/* A worker with one queue pair: it takes work_ns for each request on average, has up to depth out,
 * and begins at a time. With bursts it is awake for on_ns of each on_ns + off_ns. Its requests are
 * WRITEs of `size` bytes, all to one place, or what `choose` says. */
struct lane_bed_worker {
    uint32_t tenant, node; /* node: to whom, from 1 */
    uint32_t size, depth;
    uint64_t work_ns, begins_ns, on_ns, off_ns;
    lane_bed_choose_fn *choose;
    void *user;                /* choose's */
    struct base_hist *latency; /* NULL: not measured; from its ring to its completion, in ns */
    /* -- the bed's */
    struct base_heap_node ready; /* when its next request is */
    struct fab_mem rw, ro;
    struct lane_memory *memory;
    uint32_t id, sq_tail, cq_head, out;
    bool stopped; /* its next one is ready, and too many are out */
    uint64_t posted_ns[LANE_BED_SLOTS];
    uint64_t bytes, requests;
};

struct lane_bed_node {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_mem mem;
    struct fab_mr *mr;
};

struct lane_bed {
    struct sim_net *net;
    struct lane_bed_kind kind;
    uint64_t rung;   /* doorbells that time went by for */
    uint32_t nodes;  /* that serve */
    uint32_t linked; /* connections that the lane has asked for, and got */
    struct lane_bed_node node[LANE_BED_NODES];
    struct schema_table endpoints, regions[LANE_BED_NODES];
    struct fab_mem scratch;
    struct lane *lane;
    void *peers;
    struct lane_quota quota[LANE_BED_TENANTS];
    struct lane_bed_worker worker[LANE_BED_WORKERS];
    uint32_t workers;
    struct base_heap ready;
    struct base_prng prng;
    uint64_t serial, begun_ns, failed;
};

/* nodes: up to LANE_BED_NODES - 1. On failure nothing is left. */
int lane_bed_open(struct lane_bed *bed, const struct model_preset *preset, uint64_t seed,
                  uint32_t nodes, const struct lane_bed_kind *kind, struct base_errbuf *err);
/* Of each node, with as many bytes as it was said; of node 0 it is all workers' memory. */
uint8_t *lane_bed_region(const struct lane_bed *bed, uint32_t node);
/* What the lane's card has counted. */
const struct fab_model_counters *lane_bed_counters(const struct lane_bed *bed);
void lane_bed_close(struct lane_bed *bed);
/* Attaches and connects it. */
int lane_bed_join(struct lane_bed *bed, const struct lane_bed_worker *worker,
                  struct base_errbuf *err);
/* Limits of the device and of each destination; 0: none. */
void lane_bed_limit(struct lane_bed *bed, uint64_t device_ops, uint64_t destination_ops);
/* The workers begin, if they have not, and all goes on for so long. */
int lane_bed_run(struct lane_bed *bed, uint64_t ns, struct base_errbuf *err);

#endif
