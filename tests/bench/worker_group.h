/* SPDX-License-Identifier: Apache-2.0 */
/* A group of workers that are processes of their own and wait for each other before they go on. The
 * parent owns the group; it is shared with the processes, each of which writes its own member
 * alone.
 */
#ifndef BENCH_WORKER_GROUP_H
#define BENCH_WORKER_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <kedge.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hist.h"

enum { PERF_RENDEZVOUS = 2, PERF_PATIENCE_MS = 60000 };

struct perf_member {
    struct base_hist hist;     /* what it measured: nanoseconds */
    uint64_t retries;          /* times that the agent said -EAGAIN */
    uint64_t begin_ns, end_ns; /* base_clock_ns() */
    uint64_t faults, sleeps;   /* between these: of pages; times that it gave the processor up */
    uint64_t used_ns;          /* likewise: of a processor's time, its own */
    uint64_t agents_ns[2];     /* of it the agents' at these two times */
    struct base_errbuf err;
    int status;
};

struct perf_group {
    _Atomic uint32_t came[PERF_RENDEZVOUS]; /* how many; futexes */
    _Atomic uint32_t failed;                /* how many */
    bool tolerant; /* who has failed is not waited for; else the first failure ends all */
    _Atomic uint64_t met_ns[PERF_RENDEZVOUS]; /* base_clock_ns() when the last one came */
    uint32_t workers;
    /* Calibrated once, before the workers begin: that takes a processor for milliseconds, which is
     * no part of what they measure. */
    struct base_clock_fast clock;
    /* A member's is its own to write. They lie together, as in the message that a worker would have
     * them from: a page for each costs who reads them all more than what it does with them. */
    char (*token)[KEDGE_TOKEN_MAX];
    struct perf_member member[];
};

/* *out is the caller's. -ENOMEM. */
int perf_group_new(uint32_t workers, struct perf_group **out, struct base_errbuf *err);
void perf_group_free(struct perf_group *group);

/* Runs it in a process for each member, and waits for all of them. What it returns is the member's
 * status, with a sentence in the member's err; -EIO for a process that died. */
void perf_group_run(struct perf_group *group,
                    int (*run)(struct perf_group *group, uint32_t me, const void *user),
                    const void *user);
/* How many members' status is 0. When not all are, *status is the first that says more than that
 * another failed, with its sentence; else 0. */
uint32_t perf_group_judge(const struct perf_group *group, int *status, struct base_errbuf *err);

/* In a worker: waits without spinning until all have come to this point. -ECANCELED: another has
 * failed before, and the group does not tolerate it; -ETIMEDOUT after PERF_PATIENCE_MS. */
int perf_group_rendezvous(struct perf_group *group, int point);

#endif
