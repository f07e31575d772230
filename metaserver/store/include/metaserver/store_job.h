/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction that whoever submits it hears of later. */
#ifndef METASERVER_STORE_JOB_H
#define METASERVER_STORE_JOB_H

#include <sys/queue.h>

#include "metaserver/store.h"

/* A transaction that is told of later. The job, and what it points to, is the store's from when it
 * is submitted until done(), which may free it. */
struct meta_store_job {
    struct meta_store_txn txn;
    struct meta_store_outcome outcome;
    void (*done)(struct meta_store_job *job);
    STAILQ_ENTRY(meta_store_job) link;        /* of who has it */
    uint64_t due;                             /* likewise */
    void (*tell)(struct meta_store_job *job); /* of store_order.h, likewise */
    struct meta_store_order *order;
};
STAILQ_HEAD(meta_store_jobs, meta_store_job);

#endif
