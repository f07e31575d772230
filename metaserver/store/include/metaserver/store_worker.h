/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a thread of its own: what is submitted is carried out there, one after the other in
 * the order in which it came, so that a disk that is slow keeps nobody waiting but those who asked
 * for it.
 *
 * Everything here is called on the owner's thread, and so is done(). The store is the worker's from
 * new to free: nobody else calls it. */
#ifndef METASERVER_STORE_WORKER_H
#define METASERVER_STORE_WORKER_H

#include "metaserver/store_job.h"

struct meta_store_worker;

/* Begins the thread. The store is borrowed until free. -errno and a sentence. */
int meta_store_worker_new(struct meta_store *store, struct meta_store_worker **out,
                          struct base_errbuf *err);
/* Nothing may be under way, and done() has been called for all of it. NULL is allowed. */
void meta_store_worker_free(struct meta_store_worker *w);

/* The job, and what its transaction points to, is the worker's until done(). Never blocks. */
void meta_store_worker_submit(struct meta_store_worker *w, struct meta_store_job *job);
/* May be read when run() has something to do. */
int meta_store_worker_fd(const struct meta_store_worker *w);
/* Calls done() of all that is over. Returns of how many. */
unsigned meta_store_worker_run(struct meta_store_worker *w);
/* Blocks until nothing is under way any more: 0; or, after so long, -ETIMEDOUT. */
int meta_store_worker_settle(struct meta_store_worker *w, uint64_t timeout_ns);

#endif
