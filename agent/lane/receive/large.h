/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages that come (docs/messages.md#large-messages): the receive that its worker has
 * posted becomes a READ of their payload, on a VQP of the session's that no worker names, and a
 * receive again when that is over. Private to agent/lane, and the lane thread's.
 *
 * Several of a stream are READ at a time, on one such VQP, and are delivered in their order.
 *
 * Invariant: while a message is READ its stream takes nothing else but large ones behind it, and
 * holds no credit; whatever ends it otherwise leaves the receive posted, and its sender is told to
 * announce it again, and those behind it, when none of them is READ any more. */
#ifndef LANE_LARGE_H
#define LANE_LARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_config.h"
#include "message_state.h"

enum large_state {
    LARGE_FINDS,   /* its sender's endpoint is looked up, no VQP is free, or it is not its turn */
    LARGE_READS,   /* a READ of it is queued or out */
    LARGE_DELIVERS /* all of it is here: one before it is not, or its completion has no places */
};

struct large_read {
    struct wr *receive; /* NULL: the place is free */
    struct stream_receiver *stream;
    uint64_t life; /* the stream's, and which of it: it may have been forgotten meanwhile */
    uint32_t number;
    uint64_t name, taken; /* the stream's; which of the receives that its hearer had posted */
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
/* Whether there is room for one more for q, of a sender of that tenant: the first of a stream. */
bool lane_large_has_room(const struct lane *l, const struct vqp *q, uint32_t tenant);
/* Whether m, which comes behind those of r that are READ, may be READ with them, into q's next
 * receive: else it is dropped, and may come again when those are over. */
bool lane_large_may_join(struct lane *l, const struct stream_receiver *r, const struct vqp *q,
                         const struct schema_message *m);
/* m, the next one of its stream, has parts, and is not longer than `receive`, which q had posted
 * and is no longer its own. There is room. */
void lane_large_begin(struct lane *l, struct stream_receiver *r, struct vqp *q, struct wr *receive,
                      const struct schema_message *m, const struct schema_part *parts);
/* Takes what has been READ. */
void lane_larges_go_on(struct lane *l);
/* Now and then: those that wait. */
void lane_larges_look(struct lane *l);

/* Of a stream that is there, none before it is READ. */
static inline bool large_is_first(const struct large_read *g)
{
    return g->stream->life != g->life || g->stream->in.next == g->number;
}

#endif
