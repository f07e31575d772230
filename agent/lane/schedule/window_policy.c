/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/window_policy.h"

#include "agent/lane_stats.h"
#include "base/assert.h"

static const struct window_policy *const policies[LANE_WINDOW_POLICIES] = {
    [LANE_WINDOW_STATIC] = &lane_window_static,
    [LANE_WINDOW_LADDER] = &lane_window_ladder,
    [LANE_WINDOW_DELAY] = &lane_window_delay};

const struct window_policy *lane_window_policy(enum lane_window_policy which)
{
    BASE_ASSERT((unsigned)which < LANE_WINDOW_POLICIES);
    return policies[which];
}

const char *lane_window_policy_name(enum lane_window_policy which)
{
    return lane_window_policy(which)->name;
}

void lane_window_finder_begin(struct window_finder *f, const struct window_policy *policy)
{
    *f = (struct window_finder){.policy = policy};
    policy->begin(f);
}

void lane_window_finder_take(struct window_finder *f, const struct window_sample *s)
{
    if (s->ns == 0 || s->ns > WINDOW_AWAY_NS)
        return;
    f->waits = false;
    f->policy->take(f, s);
    if (f->size != 0 && f->size < s->floor)
        f->size = s->floor;
}
