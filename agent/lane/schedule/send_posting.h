/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs as they are posted: their headers, one by one (schedule/sends.h says when) and in runs.
 * Private to agent/lane, and the lane thread's.
 *
 * A run is of SENDs of one VQP that stand one behind the other in its ring (request/message_run.c),
 * none of which has to be looked at closely: what they have in common is looked at once, and
 * counted once behind the last. It changes nothing but what that costs. */
#ifndef LANE_SEND_POSTING_H
#define LANE_SEND_POSTING_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/message_like.h"
#include "transmit/wr.h"

struct lane;
struct physical_qp;
struct schema_message;
struct vqp;
struct vqp_messages;

/* What all messages of t's stream say, into m: without what is one's own. */
void lane_send_describe(const struct vqp_messages *t, struct schema_message *m);

struct send_run {
    struct vqp *q;
    struct physical_qp *p;
    const struct schema_message_like *like; /* what each header says */
    uint32_t number, credit, epoch;         /* of the next one */
    uint32_t most;                          /* so many may go */
    uint32_t count, behind;                 /* behind: those that are chained behind others */
    uint32_t place;                         /* of its peer */
    bool is_near;                           /* by no device (schedule/near_sends.h) */
    uint64_t bytes;
    int64_t room; /* in bytes, of its queue pair and its windows; less than 0: none */
};

/* Whether a run of q's may begin: all that one SEND is asked before it goes is so, for `most` of
 * them at the most, or fewer: r->most, at least 1. Then lane_send_run_end() follows, whatever
 * happens. False: the first of them is to be looked at closely. */
bool lane_send_run_begin(struct lane *l, struct vqp *q, uint32_t most, struct send_run *r);
/* Whether there is room for one more, of so many bytes. */
bool lane_send_run_takes(const struct lane *l, const struct send_run *r, uint64_t bytes);
/* It goes. Filled: its worker's name for it, and what it has of payload in sge[1], of w->length. */
void lane_send_run_post(struct lane *l, struct send_run *r, struct wr *w);
void lane_send_run_end(struct lane *l, struct send_run *r);

#endif
