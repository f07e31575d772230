/* SPDX-License-Identifier: Apache-2.0 */
/* A store that is as unkind as one that is asked through submit() may be, for tests: it carries out
 * what is submitted some steps later, tells of it some steps after that, both in an order that a
 * seed chooses, and fails when the seed says so, having changed nothing. It answers from step()
 * alone. One thread. */
#ifndef METASERVER_STORE_LATE_H
#define METASERVER_STORE_LATE_H

#include "base/random.h"
#include "metaserver/store_job.h"

struct meta_store_late {
    struct meta_store *store; /* borrowed */
    uint32_t most_steps;      /* that each of both takes: from 1 to so many */
    uint32_t fail_percent;    /* of all */
    bool stands_still;        /* steps happen, and nothing comes of them */
    uint32_t under_way;
    struct base_prng random; /* private from here on */
    uint64_t step;
    struct meta_store_jobs waiting, over; /* the latter: carried out, and not told of */
};

void meta_store_late_init(struct meta_store_late *l, struct meta_store *store, uint64_t seed);
/* The job, and what its transaction points to, is the store's until done(). */
void meta_store_late_submit(struct meta_store_late *l, struct meta_store_job *job);
/* One step goes by. */
void meta_store_late_step(struct meta_store_late *l);

#endif
