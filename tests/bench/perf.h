/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf: what its parts share. One thread; failures are -errno with a sentence. */
#ifndef BENCH_PERF_H
#define BENCH_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hist.h"
#include "base/text.h"
#include "figures.h"
#include "options.h"

struct ibv_wc;

/* What was measured. */
struct perf_result {
    struct base_hist hist; /* nanoseconds */
    uint64_t elapsed_ns;
    uint64_t retries;               /* times that the agent said -EAGAIN */
    uint64_t faults, sleeps;        /* mesh: of all workers, from their attach on */
    uint64_t workers_ns, agents_ns; /* mesh: of processors' time, and of --local's in elapsed_ns */
    bool verified;                  /* the bytes were looked at */
    /* memory: bytes of an agent that knows count peers, and of one that can know one alone */
    uint64_t large, small;
    /* isolation: hist is beside the bad neighbour, alone without it; what that posted, and how
     * much of it ended with an error */
    struct base_hist alone;
    uint64_t bad_posted, bad_failed;
    /* verbs-connect: medians of each step, and last of the whole, in a fresh process and in one
     * that keeps context and PD */
    struct perf_verbs {
        char device[64];
        uint8_t gid[16], peer_gid[16];
        uint64_t cold_ns[BENCH_STEPS + 1], warm_ns[BENCH_STEPS + 1];
        uint64_t cold_least_ns, warm_least_ns; /* the least of the whole */
    } verbs;
    uint64_t first_ns[PERF_FIRST_STEPS + 1], first_least_ns; /* first-read: the same */
    /* storm: how many workers READ, and what the agent did for it, where it was asked and has
     * connections (rc) */
    uint32_t worked, failed;
    struct base_errbuf first_failure;
    struct perf_connections {
        bool known;
        uint64_t requests, made; /* messages, and what came of them */
    } connections;
    struct perf_shared_core shared_core;
    struct perf_ucx ucx;
    struct perf_turns turns[2];
    struct perf_lookup lookup;
    struct perf_window window;
    struct perf_lane_windows lane_windows;
    struct perf_merged merged[PERF_ORDERS];
    struct perf_sent sent;
    struct perf_notified notified[PERF_NOTIFIES];
    struct perf_verbs_ratio verbs_data[PERF_VERBS_KINDS];
    struct perf_apart apart;
    struct perf_merge_way merge_ways[PERF_TRACES][PERF_MERGE_WAYS];
    struct perf_batches batches;
    struct perf_cut cut;
    struct perf_linked linked[PERF_CONNECTION_LOADS][PERF_CONNECTION_WINDOWS];
    struct perf_lanes lanes;
    struct perf_polled polled[PERF_LOADS][PERF_MODES];
};
void perf_report(const struct perf_options *o, const struct perf_result *r);

/* Appends "machine":{...}: what a figure was measured on. */
void perf_report_machine(struct base_text *t);

/* A way to do operations, `depth` of them at a time, in slots used in turn that end in order. */
struct perf_path {
    /* Posts slots first, first + 1, ... (modulo depth), count of them, as one list. */
    int (*post)(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err);
    /* How many completed, all successfully (may be 0). */
    int (*poll)(struct perf_path *path, struct base_errbuf *err);
    uint32_t depth;
};
/* Does count operations, depth at a time; one value in result->hist for each, from the doorbell of
 * its list to the poll that returned it. */
int perf_loop(struct perf_path *path, const struct base_clock_fast *clock, uint64_t count,
              struct perf_result *result, struct base_errbuf *err);

/* How far apart slots are in memory: not adjacent, so that no agent merges them. */
uint32_t perf_stride(uint32_t size);
/* The pattern that targets hold, and that WRITEs carry. */
void perf_pattern(void *memory, uint64_t bytes);
bool perf_pattern_holds(const void *memory, uint64_t offset, uint32_t bytes);

/* Likewise on the fabric itself, on a soft device made for it, against a process that sleeps. */
int perf_direct(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);

/* A metaserver and two agents of our own, and those that isolation kills, or the ones that renewal,
 * poll or merge compares with, on a soft device of their own. */
struct perf_local {
    char device[64], work[64];
    char socket[2 + PERF_MAX_DEAD][96]; /* of the agents */
    char admin_socket[112];             /* of the first */
    char server[64];                    /* URL */
    int pid[3 + PERF_MAX_DEAD];         /* metaserver, agents; 0: none */
    bool pinned;                        /* to these */
    int worker_cpu, lane_cpu;
};
/* Keeps the second of those two CPUs busy, and the caller on the first. */
int perf_spinner_start(struct base_errbuf *err);
void perf_spinner_stop(void);
/* Two CPUs that we may use, for the worker and for the lanes: how many there are of them. */
int perf_first_cpus(int cpu[2]);
/* Starts them and waits until they are ready; points o at them. On failure nothing is left. */
int perf_local_start(struct perf_local *l, struct perf_options *o, struct base_errbuf *err);
/* Ends them and removes their directories. */
void perf_local_stop(struct perf_local *l);

/* Endpoints that no agent has met: registered with o->server under GIDs made of `prefix`. A
 * metaserver without DC is told of queue pairs that are to READ its table, at the GID `host`; NULL:
 * it has DC. */
struct perf_unknown_nodes {
    uint8_t prefix[8];
    uint64_t registered; /* nodes */
};
int perf_unknown_nodes_add(const struct perf_options *o, const uint8_t host[16],
                           struct perf_unknown_nodes *s, struct base_errbuf *err);
void perf_unknown_nodes_remove(const struct perf_options *o, struct perf_unknown_nodes *s);
void perf_unknown_gid(const struct perf_unknown_nodes *s, uint64_t number, uint8_t gid[16]);

/* The tests of workers: they attach to the agents that o names. */
int perf_attach(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_connect(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_one_sided(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_memory(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_cores(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_verbs_connect(const struct perf_options *o, struct perf_result *r,
                       struct base_errbuf *err);
void perf_verbs_report(const struct perf_options *o, const struct perf_result *r);
int perf_first_read(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_first_report(const struct perf_options *o, const struct perf_result *r);
int perf_storm(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
/* hist: of the many; alone: of the one. */
int perf_fairness(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_fairness_report(const struct perf_options *o, const struct perf_result *r);
int perf_renewal(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_lookup(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_lookup_report(const struct perf_options *o, const struct perf_result *r);
void perf_renewal_report(const struct perf_options *o, const struct perf_result *r);
int perf_window(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
/* window --lane; its loads, for sentences. */
const char *perf_window_loads(void);
bool perf_window_has_load(const char *name);
int perf_window_lane(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_window_lane_report(const struct perf_options *o, const struct perf_result *r);
void perf_window_report(const struct perf_options *o, const struct perf_result *r);
int perf_poll(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_poll_report(const struct perf_options *o, const struct perf_result *r);
int perf_send(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_send_report(const struct perf_options *o, const struct perf_result *r);
int perf_notify(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_notify_report(const struct perf_options *o, const struct perf_result *r);
int perf_batch(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_batch_report(const struct perf_options *o, const struct perf_result *r);
int perf_merge(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_merge_apart(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_merge_model(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_merge_model_report(const struct perf_options *o, const struct perf_result *r);
void perf_merge_report(const struct perf_options *o, const struct perf_result *r);
int perf_cut(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_cut_report(const struct perf_options *o, const struct perf_result *r);
int perf_connections(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_connections_report(const struct perf_options *o, const struct perf_result *r);
int perf_lanes(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
void perf_lanes_report(const struct perf_options *o, const struct perf_result *r);
int perf_mesh(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);
int perf_isolation(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err);

/* A worker of o->socket that READs or WRITEs memory of one of o->peer_socket. */
struct perf_worker;
int perf_worker_new(const struct perf_options *o, struct perf_result *r, struct perf_worker **out,
                    struct base_errbuf *err);
/* Does o->count operations, after some that are not measured; the bytes are looked at. */
int perf_worker_measure(struct perf_worker *w, const struct perf_options *o, struct perf_result *r,
                        struct base_errbuf *err);

/* Its READs or WRITEs, once some were measured: of a depth as o had it. */
struct perf_path *perf_worker_path(struct perf_worker *w);
struct kedge_session *perf_worker_session(const struct perf_worker *w);

/* NULL is allowed. */
void perf_worker_free(struct perf_worker *w);

struct kedge_session;
/* Opens a session; when the agent has none ready it tries again when that says, for two minutes,
 * counting in *retries. */
int perf_open(const char *socket, struct kedge_session **out, uint64_t *retries,
              struct base_errbuf *err);
/* status, with libkedge's sentence in err. */
int perf_failed(int status, const char *what, struct base_errbuf *err);
/* A request of a worker's did: -EIO, and what its completion says. */
int perf_failed_with(const struct ibv_wc *wc, const char *what, struct base_errbuf *err);

#endif
