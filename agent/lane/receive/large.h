/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages that come (docs/messages.md#large-messages): the receive that its worker has
 * posted becomes a READ of their payload, on a VQP of the session's that no worker names, and a
 * receive again when that is over. Private to agent/lane, and the lane thread's.
 *
 * Invariant: while a message is READ its stream takes nothing else, and holds no credit; whatever
 * ends it otherwise leaves the receive posted, and its sender is told to announce it again. */
#ifndef LANE_LARGE_H
#define LANE_LARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_config.h"
#include "message_state.h"

enum large_state {
    LARGE_FINDS,   /* its sender's endpoint is looked up, or no VQP is free */
    LARGE_READS,   /* a READ of it is queued or out */
    LARGE_DELIVERS /* all of it is here, and there are no two places for its completion */
};

struct large_read {
    struct wr *receive; /* NULL: the place is free */
    struct stream_receiver *stream;
    uint64_t name; /* the stream's, and which of it: it may have been forgotten meanwhile */
    uint32_t number;
    uint32_t session, share;
    uint16_t hears, hears_gen; /* the VQP that the receive was posted on */
    uint16_t own;              /* READS: the VQP that it is READ on; else 0, which is a worker's */
    uint8_t state;             /* enum large_state */
    uint8_t with_imm, parts;
    uint32_t imm, from_tenant, length;
    uint32_t done, reads; /* bytes that are here; of the present READ */
    struct schema_part part[SCHEMA_PARTS_MOST];
    struct ibv_sge sge[SCHEMA_MAX_SGE]; /* the receive's own, as its worker names them */
    int num_sge;
    uint64_t since_ns;
    uint32_t next_free; /* place + 1 */
    TAILQ_ENTRY(large_read) by_use;
};

/* 0 or -ENOMEM; freed in either case. */
int lane_larges_new(struct lane *l, uint32_t places);
void lane_larges_free(struct lane *l);
/* Whether there is room for one more for q, of a sender of that tenant. */
bool lane_large_has_room(const struct lane *l, const struct vqp *q, uint32_t tenant);
/* m, the next one of its stream, has parts, and is not longer than `receive`, which q had posted
 * and is no longer its own. There is room. */
void lane_large_begin(struct lane *l, struct stream_receiver *r, struct vqp *q, struct wr *receive,
                      const struct schema_message *m, const struct schema_part *parts);
/* Takes what has been READ. */
void lane_larges_go_on(struct lane *l);
/* Now and then: those that wait. */
void lane_larges_look(struct lane *l);

#endif
