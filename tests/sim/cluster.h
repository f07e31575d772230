/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cluster from its beginning to its end: hosts with an agent and workers each, hosts
 * with a metaserver each, and the network between them. One seed decides all of it. One thread, one
 * cluster at a time. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "worker_process.h"

enum { CLUSTER_NODES = 1024, CLUSTER_METASERVERS = 4, CLUSTER_WORKERS = 16 };
/* Two clocks may differ by a thousandth (docs/leases.md): what an owner's wait is stretched by. */
enum { CLUSTER_CLOCK_PPM = 500, CLUSTER_CLOCK_PPM_MOST = 900000 };

enum { CLUSTER_ARENA_LEAST = 64 << 10, CLUSTER_ARENA_USUAL = 256 << 10 };

/* The pause of workers that do nothing. */
static const uint64_t CLUSTER_NO_TURN_NS = 1ull << 55;

struct play_cluster_settings {
    uint64_t seed;
    uint32_t nodes, metaservers, workers; /* workers: of each node */
    uint64_t duration_ns;                 /* until it is told to end */
    uint64_t pause_ns;                    /* of a worker, between two bursts, on average */
    uint64_t operation_ns; /* or from one operation of a worker to the next, on average: then
                            * pause_ns is about three of it; 0: pauses alone decide */
    uint32_t change_ppm;   /* as worker_process.h has it */
    uint64_t arena_bytes;  /* CLUSTER_ARENA_LEAST or more */
    uint32_t clock_ppm;    /* so many millionths the clock of an agent's host is off, at most */
    uint32_t slack_ms;   /* that devices may take to see a doorbell, whatever they claim; 0: none */
    bool shared;         /* all metaservers have one store */
    bool hybrid;         /* agents have both transports, or either (cluster_transports.c) */
    bool messages;       /* agents carry messages, and workers send some (worker_mail.c) */
    bool liar;           /* one of the agents lies (liar.h) */
    uint32_t lanes;      /* of each agent's own pool; 0: one */
    uint32_t pool_lanes; /* of pools that operators say, at most; 0: one */
    bool faults;
    const uint8_t *left_out; /* bit i: fault i does not happen; NULL: all do */
    FILE *trace;             /* NULL: nobody reads it */
    uint64_t trace_from_ns;
};

struct play_cluster_result {
    const char *violation; /* NULL: there was none; borrowed until the next cluster */
    uint64_t hash;         /* of the story: the same for the same seed and settings */
    uint64_t simulated_ns, events, net_events;
    uint64_t accesses; /* to workers' memory that were held against whose it is, and what is lent */
    uint64_t merged;   /* requests that went in the work request of another */
    uint64_t transfers; /* of virtual queue pairs, from DC to a connection or back; the caller's to
                           fill in (transfers.h) */
    uint64_t lies;      /* of the agent that lies */
    uint64_t faults;    /* that have happened, of: */
    uint32_t planned;
    struct play_worker_counts workers; /* all together */
};

/* How many faults there are for its seed, if none is left out. */
uint32_t play_cluster_faults(const struct play_cluster_settings *settings);
void play_cluster_run(const struct play_cluster_settings *settings,
                      struct play_cluster_result *result);

/* Of the cluster that runs. */
uint32_t play_cluster_lanes(void);
#endif
