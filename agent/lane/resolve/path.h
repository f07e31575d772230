/* SPDX-License-Identifier: Apache-2.0 */
/* The way to an endpoint. Private to agent/lane, and the lane thread's. */
#ifndef LANE_PATH_H
#define LANE_PATH_H

#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/liveness.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

/* Where what goes to it is posted. A connection only while it has a path. */
static inline struct physical_qp *flow_phys(const struct lane *l, const struct flow *f)
{
    return f->rc ? f->link : &l->phys[l->dci[f->dci]];
}

/* w goes to it, and to the endpoint that is at that place now. */
static inline void flow_address(const struct lane *l, struct flow *f, uint32_t peer_slot,
                                struct wr *w)
{
    const struct peer *peer = &l->peers[peer_slot];
    w->flow = f;
    w->fab.ah = f->ah;
    w->fab.dest_qpn = peer->dctn;
    w->fab.dc_key = peer->dc_key;
}

/* Whether there is a path to it; asks for one if not, for that session's tenant, and its state
 * says whether it is under way. Its record is fresh. */
bool lane_flow_has_path(struct lane *l, struct flow *f, const struct session *s);
/* A WANT_PATH; with rc the connection is counted already. */
void lane_flow_ask_for_path(struct lane *l, struct flow *f);
void lane_flow_take_path(struct lane *l, struct flow *f, const struct lane_command *c);
/* This node's own address is another: whatever leads to it was made with the former. */
void lane_flow_readdress(struct lane *l, struct flow *f);
/* It goes, if there is one; nothing is out on it. */
void lane_flow_drop_path(struct lane *l, struct flow *f);
/* rc: nothing is out on its connection, which goes. */
void lane_flow_drop_link(struct lane *l, struct flow *f);
/* One more is made, for that tenant; and came to nothing. */
void lane_flow_count_link(struct lane *l, struct flow *f, uint32_t tenant_slot);
/* rc: its connection broke. */
void lane_flow_lost_link(struct lane *l, struct flow *f);

/* DC: the record of the peer in that slot names another LID, or another MTU. */
void lane_flows_outdate(struct lane *l, uint32_t slot);
/* A request to it is out no more, and that was no sign of life. */
void lane_flow_failed(struct lane *l, struct flow *f, enum sign sign);

/* A request to it is out no more. */
static inline void flow_completed(struct lane *l, struct flow *f, enum sign sign)
{
    f->outstanding--;
    if (f->drains != NULL && f->outstanding == 0)
        lane_flow_drop_link(l, f);
    if (sign == SIGN_LIFE && f->liveness == LIVE_PROVEN && !f->doubted)
        f->since_ns = f->heard_ns = l->now_ns; /* nothing else comes of it */
    else if (sign == SIGN_LIFE)
        lane_flow_heard(l, f, sign);
    else
        lane_flow_failed(l, f, sign);
}

#endif
