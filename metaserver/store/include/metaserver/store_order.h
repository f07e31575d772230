/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver has done to a shared store, and what it hears of others there, as one sequence.
 *
 * A job is told of when everything that the store did before it has been heard, and nothing that it
 * did after: whoever applies both one after the other has what the store has. Nothing is heard
 * while a job is with the store, since whether it comes before or behind is not known until then.
 * Where the store was put back, what was done before is told of before what it holds now.
 *
 * One thread, which also has what submits. */
#ifndef METASERVER_STORE_ORDER_H
#define METASERVER_STORE_ORDER_H

#include "metaserver/store_job.h"
#include "metaserver/store_watch.h"

/* A job is told of no later than this after its end, also if the store cannot be heard. */
#define META_STORE_ORDER_NS UINT64_C(5000000000)

struct meta_store_order {
    void (*hear)(void *user, const struct meta_store_heard *heard); /* borrowed for the call */
    void *user;
    uint64_t reached;            /* private from here on: the last place that was heard */
    uint32_t with_store;         /* jobs */
    struct meta_store_jobs over; /* not told of, in the order of their places */
    struct meta_store_heard_list heard;
    uint64_t now;
};

void meta_store_order_init(struct meta_store_order *o,
                           void (*hear)(void *user, const struct meta_store_heard *heard),
                           void *user);
/* Frees what was not heard. No job is there. */
void meta_store_order_fini(struct meta_store_order *o);

/* Before the job is submitted, with its done() set: that is called in its turn from now on. The
 * store's worker calls the one that this puts in its place. */
void meta_store_order_add(struct meta_store_order *o, struct meta_store_job *job);
/* Takes what the watch has given. */
void meta_store_order_put(struct meta_store_order *o, struct meta_store_heard *heard);
/* Hears what is its turn, and tells of one job at most. True: it has told of one: what follows from
 * that has to be carried out before this is called again, which is due then. */
bool meta_store_order_run(struct meta_store_order *o, uint64_t now);
/* Whether nothing waits to be heard. */
bool meta_store_order_is_idle(const struct meta_store_order *o);

#endif
