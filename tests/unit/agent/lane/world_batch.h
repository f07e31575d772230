/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of the world's workers. */
#ifndef UNIT_AGENT_LANE_WORLD_BATCH_H
#define UNIT_AGENT_LANE_WORLD_BATCH_H

#include "world.h"

/* Of the lanes of worlds to come, for batches; at first 1 MiB. */
extern uint64_t world_batch_bytes;

struct world_batch {
    struct world_worker *worker;
    uint32_t number, gen;
    uint32_t arena; /* of what is filled from now on; the worker's own is 0 */
};

/* An entry of world_rw()'s shape. */
struct schema_batch_entry world_entry(uint64_t offset, uint32_t length, uint32_t vkey,
                                      uint64_t remote_offset);
/* BATCH_NEW: its status. */
int world_batch_new(struct world *w, struct world_worker *k, uint32_t count,
                    struct world_batch *out);
/* BATCH_FILLs of its arena, until the lane has taken them. */
void world_batch_fill(struct world *w, const struct world_batch *b, uint8_t op,
                      const struct schema_batch_entry *entries, uint32_t count);
/* BATCH_READY, BATCH_CANCEL or BATCH_FREE: its status; out may be NULL. */
int world_batch_ask(struct world *w, const struct world_batch *b, uint8_t op,
                    struct schema_reply *out);
/* All of that, which succeeds. */
struct world_batch world_batch_make(struct world *w, struct world_worker *k, uint8_t op,
                                    const struct schema_batch_entry *entries, uint32_t count);
void world_batch_post(struct world *w, const struct world_batch *b, uint64_t wr_id, uint16_t vqp,
                      uint16_t vqp_gen);
const struct schema_batch_shown *world_batch_shown(const struct world_batch *b);

#endif
