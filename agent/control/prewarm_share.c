/* SPDX-License-Identifier: Apache-2.0 */
#include "control/prewarm_share.h"

#include <string.h>

bool agent_prewarm_share_allows(const struct prewarm_share *s, uint32_t tenant, uint32_t ready)
{
    return ready > s->taken[tenant - 1];
}

bool agent_prewarm_share_is_low(const struct prewarm_share *s, uint32_t ready, uint32_t wanted)
{
    if (ready >= wanted || 2 * ready < wanted)
        return ready < wanted;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (s->taken[i] >= ready)
            return true;
    return false;
}

void agent_prewarm_share_take(struct prewarm_share *s, uint32_t tenant, bool full)
{
    if (full && s->sum > 0)
        memset(s, 0, sizeof *s);
    s->taken[tenant - 1]++;
    s->sum++;
}

void agent_prewarm_share_made(struct prewarm_share *s)
{
    if (s->sum == 0)
        return;
    do
        s->last = (s->last + 1) % AGENT_TENANT_SLOTS;
    while (s->taken[s->last] == 0);
    s->taken[s->last]--;
    s->sum--;
}
