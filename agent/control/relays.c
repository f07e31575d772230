/* SPDX-License-Identifier: Apache-2.0 */
#include "relays.h"

#include "base/assert.h"
#include "lane_setup.h"
#include "pool.h"
#include "pools.h"

static void tell_lane(struct pool *p, uint32_t tag, int status)
{
    agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_RELAY_DONE,
                                                 .relayed = {.tag = tag, .status = status}});
}

void agent_relays_want(struct pool *p, const struct lane_event *e)
{
    struct pool *first = pool_endpoint(p);
    const struct agent_device *d = &p->device;
    BASE_ASSERT(first != p);
    const uintptr_t scratch = (uintptr_t)d->scratch.addr;
    agent_pool_command(
        first, &(struct lane_command){
                   .kind = LANE_COMMAND_RELAY,
                   .relay = {.addr = e->want_relay.addr,
                             .generation = e->want_relay.generation,
                             .local = scratch + (uint64_t)e->want_relay.place * LANE_SCRATCH_BYTES,
                             .rkey = e->want_relay.rkey,
                             .lkey = d->scratch_system_mr->lkey,
                             .bytes = e->want_relay.bytes,
                             .tag = e->want_relay.tag,
                             .lane = (uint8_t)p->lane_number,
                             .metaserver = e->want_relay.metaserver}});
}

void agent_relays_answer(struct pool *p, const struct lane_event *e)
{
    for (struct pool *l = p; l != NULL; l = agent_pools_next_lane(p, l))
        if (l->lane_number == e->relayed.lane)
            tell_lane(l, e->relayed.tag, e->relayed.status);
}
