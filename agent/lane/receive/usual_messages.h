/* SPDX-License-Identifier: Apache-2.0 */
/* The next message of a stream that was heard before, for a worker of the same tenant that has a
 * receive posted: known by one comparison with what the one before it said (schema/message_like.h).
 * Private to agent/lane, and the lane thread's.
 *
 * It asks for no more than the way of all messages does (receive/arrivals.c), and changes nothing
 * but what that costs: what it does not take goes that way, with nothing of it done. Whatever of a
 * stream may change (its peer's account, the stream, its hearer, the port) is looked at where it
 * is, each time; that tenants and guests are let in is not asked here, since one's own is. */
#ifndef LANE_USUAL_MESSAGES_H
#define LANE_USUAL_MESSAGES_H

#include "message_state.h"

struct schema_message;

/* Whether a receive has room for so much, and how that goes to the worker's memory, at which nobody
 * can keep us waiting. */
static inline bool receive_holds(const struct wr *receive, uint32_t bytes)
{
    for (int i = 0; bytes > 0 && i < receive->fab.num_sge; i++)
        bytes = bytes > receive->sge[i].length ? bytes - receive->sge[i].length : 0;
    return bytes == 0;
}

static inline void receive_copy(const struct session *s, const struct wr *receive,
                                const uint8_t *from, uint32_t bytes)
{
    for (int i = 0; bytes > 0; i++) {
        const struct ibv_sge *sge = &receive->sge[i];
        const uint32_t part = bytes < sge->length ? bytes : sge->length;
        memcpy(s->touch[sge->lkey] + sge->addr, from, part);
        from += part;
        bytes -= part;
    }
}

/* What is at `at`, and ended well: whether it was such a one, and is delivered. */
bool lane_usual_take(struct lane *l, const struct arrival *a, const uint8_t *at);
/* m is delivered to q as the next one of r: the one behind it may be known by it. */
void lane_usual_learn(struct lane *l, const struct schema_message *m, struct stream_receiver *r,
                      const struct vqp *q, const struct schema_cqe_sender *sender);

#endif
