/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are processes of their own and meet before they go on. The parent owns the hall; it
 * is shared with the processes, each of which writes its own seat alone. */
#ifndef BENCH_HALL_H
#define BENCH_HALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <kedge.h>

#include "base/error.h"
#include "base/hist.h"

enum { PERF_MEETINGS = 2, PERF_PATIENCE_MS = 60000 };

struct perf_seat {
    char token[KEDGE_TOKEN_MAX];
    struct kedge_hist hist; /* what it measured: nanoseconds */
    uint64_t retries;       /* times that the agent said -EAGAIN */
    uint64_t end_ns;        /* kedge_clock_ns() */
    struct kedge_errbuf err;
    int status;
};

struct perf_hall {
    _Atomic uint32_t came[PERF_MEETINGS]; /* how many; futexes */
    _Atomic uint32_t failed;              /* how many */
    bool tolerant; /* meetings are of those that have not failed; else the first failure ends all */
    _Atomic uint64_t met_ns[PERF_MEETINGS]; /* kedge_clock_ns() when the last one came */
    uint32_t workers;
    struct perf_seat seat[];
};

/* *out is the caller's. -ENOMEM. */
int perf_hall_new(uint32_t workers, struct perf_hall **out, struct kedge_errbuf *err);
void perf_hall_free(struct perf_hall *hall);

/* Runs it in a process for each seat, and waits for all of them. What it returns is the seat's
 * status, with a sentence in the seat's err; -EIO for a process that died. */
void perf_hall_run(struct perf_hall *hall,
                   int (*run)(struct perf_hall *hall, uint32_t me, const void *user),
                   const void *user);
/* How many seats' status is 0. When not all are, *status is the first that says more than that
 * another failed, with its sentence; else 0. */
uint32_t perf_hall_judge(const struct perf_hall *hall, int *status, struct kedge_errbuf *err);

/* In a worker: waits without spinning until all have come to this meeting. -ECANCELED: another has
 * failed before, and the hall does not tolerate it; -ETIMEDOUT after PERF_PATIENCE_MS. */
int perf_hall_meet(struct perf_hall *hall, int meeting);

#endif
