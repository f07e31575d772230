/* SPDX-License-Identifier: Apache-2.0 */
/* This node's address is another. Sessions, their regions and what waits in their queues live;
 * paths to peers are asked for anew, and where peers know the node by another name from now on, so
 * is its MR table, whose place and seed follow from that name. */
#include "resolve/readdress.h"

#include <string.h>

#include "lane_state.h"
#include "resolve/flow.h"
#include "resolve/path.h"
#include "transmit/lane_events.h"

enum { READDRESSED = 64 /* flows, in one pass */ };

void lane_readdress(struct lane *l, const struct lane_command *c, uint32_t lost)
{
    memcpy(l->config.gid, c->readdress.gid, sizeof l->config.gid);
    l->config.incarnation = c->readdress.incarnation;
    l->readdress_lost += lost;
    memset(l->silence, 0, sizeof l->silence);
    l->readdress_hand = 0;
    l->readdressing++;
    l->changed = 1;
    l->housekeeping_ns = 0;
}

/* A few at a time: there may be more of them than the control side's ring of events holds. What is
 * posted with a former path meanwhile ends or goes again as on any that breaks. The caller has
 * posted what is chained: it names the former address handles, which the control side may destroy
 * as soon as it hears of them. */
void lane_readdress_go_on(struct lane *l)
{
    const uint32_t high = flows_ever(l);
    for (uint32_t i = 0; i < READDRESSED && l->readdress_hand < high; i++) {
        if (!lane_may_tell(l))
            return;
        struct flow *f = &l->flows[l->readdress_hand++];
        if (f->used)
            lane_flow_readdress(l, f);
    }
    if (l->readdress_hand < high)
        return;
    if (l->proof.flow.used)
        lane_flow_readdress(l, &l->proof.flow);
    for (; l->readdressing > 0; l->readdressing--)
        lane_event_push(
            l, &(struct lane_event){.kind = LANE_EVENT_READDRESSED, .reason = l->readdress_lost});
    l->readdress_lost = 0;
}
