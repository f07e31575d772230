/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent counts, as its metrics say it at its admin socket. Any thread; failures are -errno
 * with a sentence. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Counters by their names, all pools' together; 0 for those that it does
 * not have, and then *all is false. */
int perf_counters(const char *admin_socket, const char *const *names, size_t count, uint64_t *out,
                  bool *all, struct base_errbuf *err);
/* The same of each lane of an agent's pool, where there are several: of names[i] and lane k at
 * out[i * PERF_MAX_LANES + k]. -ENOENT: one is missing. */
int perf_lane_counters(const char *admin_socket, const char *const *names, size_t count,
                       uint32_t lanes, uint64_t *out, struct base_errbuf *err);
#endif
