/* SPDX-License-Identifier: Apache-2.0 */
/* The bad neighbours of isolation.c: processes of their own, told what to do. */
#ifndef BENCH_ISOLATION_H
#define BENCH_ISOLATION_H

#include <stdatomic.h>

#include "perf.h"

enum mode { IDLE, BUSY, OVER };

/* Shared with the bad neighbour. */
struct neighbour {
    _Atomic int mode, now; /* enum mode: what is wanted, and what is so */
    _Atomic uint64_t posted, failed;
    _Atomic int status; /* of its beginning */
    struct base_errbuf err;
};

/* wrong_keys.c: posts to the live node, under keys that it never had, as fast as it can; attaches
 * anew whenever the agent has had enough of that. */
_Noreturn void wrong_keys_run(const struct perf_options *o, struct neighbour *shared);

#endif
