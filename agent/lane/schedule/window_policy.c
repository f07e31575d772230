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

/* Those that are out may be all of a peer that is silent, and nothing is learned until they fail.
 * A destination's window keeps its size: who waits there is its own. */
static bool is_silent(struct window_finder *f, const struct window_sample *s)
{
    f->rest_ns -= s->ns < f->rest_ns ? s->ns : f->rest_ns;
    f->silent_ns = s->ops > 0 || s->out == 0 || s->wanted <= s->floor ? 0 : f->silent_ns + s->ns;
    if (f->silent_ns >= WINDOW_SILENT_NS) {
        const uint32_t size = s->shared ? 0 : f->size;
        lane_window_finder_begin(f, f->policy);
        f->size = size;
        f->rest_ns = WINDOW_REST_NS;
    }
    return f->rest_ns > 0;
}

void lane_window_finder_take(struct window_finder *f, const struct window_sample *s)
{
    if (s->ns == 0 || s->ns > WINDOW_AWAY_NS)
        return;
    f->waits = false;
    if (s->ops == 0 && s->wanted > s->floor) /* what requests took is not what they take now */
        f->slowed = 0;
    if (!is_silent(f, s))
        f->policy->take(f, s);
    if (f->size != 0 && f->size < s->floor)
        f->size = s->floor;
}
