/* SPDX-License-Identifier: Apache-2.0 */
#include "superseded.h"

#include "agent.h"
#include "control/world_log.h"
#include "pool.h"
#include "register_json.h"

enum { POOLS_OF_A_LIFE = 1 << 12 };

uint32_t agent_superseded_least_incarnation(uint32_t known)
{
    return known == 0                                 ? 0
           : known < UINT32_MAX - 1 - POOLS_OF_A_LIFE ? known + 1 + POOLS_OF_A_LIFE
                                                      : known + 1;
}

bool agent_registration_is_superseded(struct registration *r, const json_t *problem,
                                      const char **why)
{
    struct pool *p = r->pool;
    const uint32_t bit = 1u << (r - p->registration);
    uint64_t known = 0;
    if (!agent_register_json_number(problem, "known_incarnation", UINT32_MAX - 1, &known) ||
        known < p->agent->incarnation)
        return false;
    if (p->agent->restarted_for_mask & bit) {
        *why = "another agent registers as this node: give each host a `node` of its own, then "
               "restart this agent";
        return false;
    }
    world_log(p->world, BASE_LOG_WARN,
              "a later incarnation of this node is known: beginning anew above it",
              "metaserver=\"%s\" incarnation=%u known=%u", r->url, p->agent->incarnation,
              (uint32_t)known);
    if (p->agent->superseded_by < known)
        p->agent->superseded_by = (uint32_t)known;
    p->agent->restarted_for_mask |= bit;
    world_stop(p->world);
    return true;
}
