/* SPDX-License-Identifier: Apache-2.0 */
/* This node's address is another. Sessions, their regions and what waits in their queues live;
 * paths to peers are asked for anew, and where peers know the node by another name from now on, so
 * is its MR table, whose place and seed follow from that name. */
#include <string.h>

#include "internal.h"
#include "transmit/events.h"

enum { READDRESSED = 64 /* flows, in one pass */ };

/* Its record goes over with its key; nobody who READs the former table renews a lease by it. */
static bool move_region(struct lane *l, struct schema_table *to, const struct region *region)
{
    struct schema_table *from = l->res.mr_table;
    struct schema_mr_record r;
    const uint8_t *window =
        from->slots + (size_t)schema_mr_home(&from->desc, region->vkey) * SCHEMA_RECORD_BYTES;
    if (schema_mr_find(&from->desc, window, region->vkey, &r) != 0)
        return false;
    (void)schema_table_remove(from, &r);
    return schema_table_put(to, &r) >= 0;
}

static uint32_t move_regions(struct lane *l, struct schema_table *to)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < l->config.max_sessions; i++) {
        struct session *s = &l->sessions[i];
        for (uint32_t k = 0; s->state != SESSION_NONE && k < region_places(s); k++)
            if (s->regions[k].lease.state == LANE_LEASE_LIVE)
                lost += !move_region(l, to, &s->regions[k]);
    }
    l->res.mr_table = to;
    return lost;
}

void lane_readdress(struct lane *l, const struct lane_command *c)
{
    memcpy(l->config.gid, c->readdress.gid, sizeof l->config.gid);
    l->config.incarnation = c->readdress.incarnation;
    if (c->readdress.mr_table != NULL)
        l->readdress_lost += move_regions(l, c->readdress.mr_table);
    memset(l->silence, 0, sizeof l->silence);
    l->readdress_hand = 0;
    l->readdressing++;
    l->changed = 1;
    l->housekeeping_ns = 0;
}

/* A few at a time: there may be more of them than the control side's ring of events holds. What is
 * posted with a former path meanwhile ends or goes again as on any that breaks. */
void lane_readdress_go_on(struct lane *l)
{
    const uint32_t high = flows_ever(l);
    for (uint32_t i = 0; i < READDRESSED && l->readdress_hand < high; i++) {
        if (!lane_may_tell(l))
            return;
        struct flow *f = &l->flows[l->readdress_hand++];
        if (f->used)
            flow_readdress(l, f);
    }
    if (l->readdress_hand < high)
        return;
    if (l->proof.flow.used)
        flow_readdress(l, &l->proof.flow);
    for (; l->readdressing > 0; l->readdressing--)
        lane_event_push(
            l, &(struct lane_event){.kind = LANE_EVENT_READDRESSED, .reason = l->readdress_lost});
    l->readdress_lost = 0;
}
