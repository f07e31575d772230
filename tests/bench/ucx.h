/* SPDX-License-Identifier: Apache-2.0 */
/* What a user would pick instead on one host: UCX over shared memory, measured by its own
 * ucx_perftest in the same run, on the CPUs that worker and lane have. One thread; failures are
 * -errno with a sentence. */
#ifndef BENCH_UCX_H
#define BENCH_UCX_H

#include "perf.h"

/* Whether ucx_perftest can be run, before anything else is measured. */
int perf_ucx_find(struct base_errbuf *err);
/* Of read: its ucp_get; of send: its active messages, of which it times one way alone. */
int perf_ucx(const struct perf_options *o, struct perf_ucx *out, struct base_errbuf *err);
/* Prints a line, or with `t` appends "ucx":{...}, with a comma behind it. */
void perf_ucx_report(const struct perf_options *o, const struct perf_ucx *u, struct base_text *t);

#endif
