/* SPDX-License-Identifier: Apache-2.0 */
/* A cost model of an RNIC: what a device takes for what it is told to do, as published measurements
 * of a few cards say it, for devices that are none (`soft`, `sim`). Whatever figure comes of it is
 * one of a model, and says so: struct fab has the name. */
#ifndef FABRIC_MODEL_H
#define FABRIC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_preset; /* fabric/model/preset.h */

/* What a device with a model has counted since it was opened. Its owning thread's: of `soft` it is
 * true when no lane posts or polls meanwhile. */
struct fab_model_counters {
    uint64_t work_requests; /* that it was given */
    uint64_t doorbells;     /* that were rung for them, one for each list */
    uint64_t bytes;         /* that they named */
    uint64_t mmio_bytes;    /* that a CPU wrote to it */
    uint64_t dma_reads;  /* that it made: of requests, pieces of payload, what its caches missed */
    uint64_t cqes;       /* that it wrote */
    uint64_t served;     /* requests of others that it carried out */
    uint64_t reconnects; /* of DCIs that went to another target */
    uint64_t wqe_misses; /* requests, or pages of them, fetched once more: too much was out */
    uint64_t qp_misses;  /* contexts of queue pairs fetched: too many were in use */
    uint64_t most_ops;   /* requests that were out at a time, at most */
    uint64_t most_bytes; /* and their bytes */
};

/* The model of an open device. The provider's. */
struct fab_model {
    const char *preset; /* a literal: "connectx-3" */
    struct fab_model_counters counters;
};

/* NULL: there is none of that name. */
const struct model_preset *fab_model_find(const char *name);
/* "connectx-3, connectx-4 or connect-ib", for sentences. A literal. */
const char *fab_model_names(void);
const char *fab_model_name(const struct model_preset *preset);
/* Whether the card has DC at all: a device with its model offers none otherwise. */
bool fab_model_has_dc(const struct model_preset *preset);

#endif
