/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-perf's command line, and how much each of its options may be. One thread. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "program.h"

enum {
    PERF_MAX_DEPTH = 4096,
    PERF_MAX_SIZE = 1 << 20,
    PERF_MAX_WORKERS = 1000,
    PERF_MAX_STRANGERS = 100000, /* endpoints that connect, memory or isolation register */
    PERF_MAX_DEAD = 8,           /* agents that isolation kills */
    PERF_MAX_REGIONS = 64,       /* of renewal */
    PERF_MAX_CONNECTS = 1000,    /* repetitions of verbs-connect and first-read */
    PERF_FIRST_STEPS = 5,        /* of first-read */
    PERF_MAX_TURNS = 99,         /* of lookup and poll */
    PERF_MAX_BATCH = 100000,     /* descriptors */
    PERF_MAX_QPS = 64,           /* of window */
    PERF_MAX_LANES_MS = 600000,  /* of lanes */
    PERF_MAX_NAMES = 250,        /* of lookup: one a client, and a tenant has 256 */
    PERF_OTHER_UID = 65534,      /* of fairness's second tenant */
    PERF_SIGNATURE = 0x5a,       /* where the pattern in a target's memory begins */
};

enum perf_test {
    PERF_ATTACH,
    PERF_CONNECT,
    PERF_READ,
    PERF_WRITE,
    PERF_MESH,
    PERF_MEMORY,
    PERF_ISOLATION,
    PERF_CORES,
    PERF_VERBS_CONNECT,
    PERF_VERBS_DATA,
    PERF_FIRST_READ,
    PERF_STORM,
    PERF_FAIRNESS,
    PERF_RENEWAL,
    PERF_LOOKUP,
    PERF_WINDOW,
    PERF_POLL,
    PERF_MERGE,
    PERF_SEND,
    PERF_NOTIFY,
    PERF_BATCH,
    PERF_CUT,
    PERF_CONNECTIONS,
    PERF_LANES
};

/* The command line. Strings are argv's or literals. */
struct perf_options {
    enum perf_test test;
    const char *name;         /* of the test */
    const char *socket;       /* of the agent that is measured; NULL: libkedge's default */
    const char *peer_socket;  /* of the agent of the target; NULL: the same */
    const char *admin_socket; /* storm: of the agent that is measured; NULL: it is not asked */
    const char *server;       /* a metaserver, for connect --uncached */
    const char *bin;          /* where --local finds the daemons; NULL: beside kedge-perf */
    const char *transport;    /* of --local's agents; NULL: theirs by default */
    uint64_t count;
    uint32_t size, depth, workers, dead, silent;
    uint32_t regions, lease_ms; /* renewal: how many are used, and how long they are lent */
    uint32_t window_ops;        /* of --local's agents; 0: none */
    uint64_t window_bytes;
    const char *model;      /* the preset of the cost model; NULL: none */
    uint64_t work_ns, seed; /* of a worker of window for each request; and what decides */
    uint32_t lanes;         /* of --local's agents; 0: theirs by default */
    uint32_t qps;           /* window: queue pairs */
    bool windows;           /* one of them was said */
    bool lane;              /* window: of a lane, */
    const char *load;       /* in this load alone; NULL: in all */
    bool defaults;          /* nothing is set in [pool] */
    bool direct, local, json;
    bool cached, uncached; /* connect: one of them */
    bool by_device;        /* send: no message goes near */
    bool spin;             /* --direct: on the other processor */
    bool ucx;              /* read, send: UCX is measured too */
    bool wrong_keys;       /* isolation: the bad neighbour guesses keys of the live node */
    bool storm;            /* lookup: nodes register meanwhile */
    struct bench_choice
        verbs;        /* verbs-connect, verbs-data: device and GIDs; --local: the device, or NULL */
    const char *gids; /* --local on a device: of the metaserver and of two agents */
    /* Set when a test has started itself anew for one repetition: the port of verbs-connect's peer,
     * the token of first-read's target; else 0 and NULL. */
    uint16_t child_port;
    const char *token;
    const char *local_device; /* --local's, of soft; else NULL */
    int agent_pid[2];         /* --local's; else 0 */
    /* Of --local's further agents: isolation's, to be killed; renewal's, with long leases; poll's,
     * by events and busy; merge's, that merges nothing. */
    const char *more_socket[PERF_MAX_DEAD];
    int more_pid[PERF_MAX_DEAD];
    int worker_cpu, lane_cpu; /* if: */
    bool pinned;              /* --local put the worker and the lanes on CPUs of their own */
};

/* What --help prints. */
extern const char perf_options_help[];
/* 0; 1 when --help or --version was answered; -EINVAL. */
int perf_options_parse(int argc, char **argv, struct perf_options *out, struct base_errbuf *err);
/* Of the cost model: what goes together, and what is usual. For perf_options_parse(). */
int perf_options_check_model(struct perf_options *o, struct base_errbuf *err);

#endif
