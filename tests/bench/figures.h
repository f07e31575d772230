/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf: what those of its tests find that have more to say than one histogram. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stdint.h>

#include "base/hist.h"
#include "fabric/model.h"

/* Of cores: the time of a loop while the other processor rests, and while it computes. */
struct perf_shared_core {
    uint64_t alone_ns, beside_ns;
};

/* Of --ucx: medians, and what its own program says of a second. */
struct perf_ucx {
    double p50_ns, per_second;
};

/* Of a kind of turns of renewal: [0] regions that are lent for short, [1] for long. */
struct perf_turns {
    uint64_t p50_ns, p99_ns, p999_ns; /* medians of the turns' */
    uint64_t max_ns;                  /* of all */
    uint64_t renewals;                /* records READ again while requests went on, */
    uint64_t waits;     /* and with requests waiting, but for those of a turn's start */
    uint64_t endpoints; /* endpoints' records READ again */
};

/* Of lookup: how it is done, in turns. */
enum perf_way { PERF_BY_READ, PERF_BY_HTTP, PERF_BY_SOCKET, PERF_WAYS };
struct perf_lookup_way {
    struct base_hist hist;                 /* of one lookup */
    double rate;                           /* a second, of all clients: the median of the turns */
    double ratio, least_ratio, most_ratio; /* of READs in the same turn, to these */
};
struct perf_lookup {
    struct perf_lookup_way way[PERF_WAYS];
    /* From a name to the first byte, with an owner that the agent has never met, and with one that
     * it knows; and READs of tables of names, endpoints and regions for it. */
    uint64_t cold_ns, warm_ns, cold_reads[3], warm_reads[3];
};

/* Of window: throughput of so many workers with so large a window, the first of which is none. */
enum { PERF_WINDOWS = 7, PERF_POINTS = 15 };
struct perf_window {
    uint32_t windows, points;
    uint32_t ops[PERF_WINDOWS], workers[PERF_POINTS];
    struct perf_window_point {
        double per_second;
        struct fab_model_counters counters; /* of the card of whoever posts */
    } point[PERF_POINTS][PERF_WINDOWS];
};

/* Of window --lane: of each load, and which part one worker has beside another tenant's many, by
 * policy. */
enum { PERF_LANE_LOADS = 5, PERF_POLICIES = 3 };
struct perf_lane_windows {
    struct perf_lane_load {
        struct perf_lane_point {
            double gb_per_s;
            uint32_t device_ops, destination_ops; /* that were set */
            uint32_t found_ops;                   /* of the device, at the end */
        } none, best, found[PERF_POLICIES];
    } load[PERF_LANE_LOADS];
    double beside[PERF_POLICIES];
};

/* Of send: medians of the turns, by agents and on the fabric itself; and the first's times of the
 * second's in the same turn. */
enum { PERF_SEND_AGENT, PERF_SEND_DIRECT, PERF_SENDS, PERF_SEND_TURNS = 5 };
struct perf_sent {
    double p50_ns[PERF_SENDS], per_second[PERF_SENDS];
    double ratio, least_ratio, most_ratio;
};

/* Of notify: what is posted, medians of its turns, and how many times as long as a WRITE, or as a
 * list of them alone, that took in the same turn. */
enum perf_notify {
    PERF_WRITE_ALONE,
    PERF_WRITE_COUNTED,
    PERF_WRITE_IMM,
    PERF_LIST_ALONE,
    PERF_LIST_COUNTED,
    PERF_NOTIFIES
};
enum { PERF_NOTIFY_TURNS = 5, PERF_NOTIFY_LIST = 16 /* WRITEs */ };
struct perf_notified {
    double p50_ns, ratio, least_ratio, most_ratio;
};

/* Of verbs-data: medians of the turns, through an agent and on queue pairs of a program's own; and
 * the first's times of the second's in the same turn. Of a batch the time of the whole. */
enum perf_verbs_kind {
    PERF_VERBS_READ,
    PERF_VERBS_WRITE,
    PERF_VERBS_SEND,
    PERF_VERBS_NOTIFY,
    PERF_VERBS_BATCH,
    PERF_VERBS_KINDS
};
enum { PERF_VERBS_TURNS = 5 };
struct perf_verbs_ratio {
    double agent_ns, verbs_ns, agent_per_second, verbs_per_second;
    double ratio, least_ratio, most_ratio, rate_ratio;
};

/* Of merge: where workers write, and how many work requests that was for the device. */
enum perf_order { PERF_RUNS, PERF_STRIPES, PERF_RANDOM, PERF_ORDERS };
struct perf_merged {
    uint64_t writes, work_requests;
};
/* Of merge: READs that are not merged, by agents that merge and that do not; medians of the turns.
 */
struct perf_apart {
    double off_p50_ns, on_p50_ns, off_p99_ns, on_p99_ns;
    double p50_ratio, p99_ratio; /* of those in the same turn */
};
/* Of merge on a card of the model: of each trace, with neither merging nor chaining, one, and both.
 */
enum { PERF_TRACES = 2, PERF_MERGE_WAYS = 4 };
struct perf_merge_way {
    double per_second;
    uint64_t requests, work_requests, doorbells;
};

/* Of batch: medians of the turns. */
enum { PERF_BATCH_TURNS = 5 };
struct perf_batches {
    uint64_t prepare_ns, rounds; /* rounds: batches that others' READs were beside of */
    double small_gb_per_s, large_gb_per_s, beside_gb_per_s; /* beside: of the small ones */
    double alone_p50_ns, beside_p50_ns, alone_p99_ns, beside_p99_ns;
    double ratio, p99_ratio; /* of those in the same turn */
};

/* Of lanes: what each did in the second half of the time; sessions that came home, also of that
 * half, and that were refused; and how many times the mean of lanes the busiest one has posted. */
enum { PERF_MAX_LANES = 8 };
struct perf_lanes {
    double per_second[PERF_MAX_LANES];
    uint64_t lodgers[PERF_MAX_LANES];
    uint64_t moves, moves_late, refused;
    double at_first, even, even_median, even_worst; /* these: of the second half, and its steps */
};

/* Of cut: latencies of short READs, and what their neighbour gets, by the size of its requests and
 * how they are cut. */
enum { PERF_CUT_SIZES = 5, PERF_CUTS = 3 };
struct perf_cut_point {
    uint64_t p50_ns, p99_ns;
    double gb_per_s;
};
struct perf_cut {
    struct perf_cut_point alone, beside[PERF_CUT_SIZES][PERF_CUTS];
};

/* Of connections: requests a second, by how many an endpoint may have, without a window and with
 * the usual one. */
enum { PERF_CONNECTION_LOADS = 4, PERF_CONNECTION_WINDOWS = 2, PERF_CONNECTION_COUNTS = 4 };
struct perf_linked {
    double per_second[PERF_CONNECTION_COUNTS];
};

/* Of poll: what a lane is given to do, and how it polls meanwhile. */
enum perf_load { PERF_DENSE, PERF_MEDIUM, PERF_SPARSE, PERF_SAME, PERF_IDLE, PERF_LOADS };
/* PERF_DESCRIPTOR: the lane as with PERF_ADAPTIVE, and its worker waits in epoll_wait(). */
enum perf_mode { PERF_BUSY, PERF_ADAPTIVE, PERF_EVENT, PERF_DESCRIPTOR, PERF_MODES };
struct perf_polled {                       /* medians of the turns */
    double per_second;                     /* READs */
    double ratio, least_ratio, most_ratio; /* of these in the same turn, to busy's */
    double switches, interrupts;           /* of agent and worker, of the host: for 1000 READs */
    double share;                          /* of a processor: the agent's */
};

#endif
