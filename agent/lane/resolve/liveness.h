/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life: whether an endpoint answers, and what may be posted to it meanwhile. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_LIVENESS_H
#define LANE_LIVENESS_H

#include "lane_state.h"
#include "resolve/flow.h"

/* Whether nothing may be posted to it now: it is silent, and what is out already is enough to find
 * out when it speaks again. Picks the DCI where something may be. With rc its connection is its
 * own, and what waits there is in nobody's way. */
bool lane_flow_is_stuck(struct lane *l, struct flow *f);
/* It owes a sign of life: until that comes, one request to it is out at a time. */
void lane_flow_suspect(struct lane *l, struct flow *f);
/* Its silence is forgotten, if that was long ago. */
void lane_flow_forgive(struct lane *l, struct flow *f);
/* It has answered on another flow to it; and that flow, of a tenant in quarantine, begins with what
 * is known by the endpoint's own. */
void lane_flow_vouch(struct lane *l, struct flow *f);
void lane_flow_inherit(struct lane *l, struct flow *f, const struct flow *own);
/* It may have restarted: its record is looked up before it is used again. */
void lane_flow_look_up_again(struct lane *l, const struct flow *f);
/* It did not answer: its record is looked up, and unless that tells of another life what is posted
 * to it fails for so long. */
void lane_flow_doubt(struct lane *l, struct flow *f, uint64_t dead_ns);
/* A request to it is out no more, and that was a sign; one of life while it is suspect included. */
void lane_flow_heard(struct lane *l, struct flow *f, enum sign sign);

static inline void flow_posted(struct lane *l, struct flow *f, uint32_t requests)
{
    f->used_ns = l->now_ns;
    if (f->outstanding == 0)
        f->since_ns = l->now_ns;
    f->outstanding += requests;
}

#endif
