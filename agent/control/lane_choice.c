/* SPDX-License-Identifier: Apache-2.0 */
#include "control/lane_choice.h"

#include "base/clock.h"

#include <stdbool.h>

#include "base/assert.h"

/* Whether it has so much more to do that who comes is better off elsewhere. */
static bool is_crowded(const struct lane_load *lane, uint64_t least_rate)
{
    return lane->rate > LANE_LITTLE && lane->rate / LANE_TIMES_MORE > least_rate;
}

/* By sessions, then by what they do. */
static bool has_less(const struct lane_load *a, const struct lane_load *b)
{
    return a->sessions != b->sessions ? a->sessions < b->sessions : a->rate < b->rate;
}

uint32_t agent_lane_choose(const struct lane_load *lane, uint32_t count)
{
    uint64_t least_rate = UINT64_MAX;
    uint32_t least = count, home = count;
    BASE_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++)
        least_rate = lane[i].rate < least_rate ? lane[i].rate : least_rate;
    for (uint32_t i = 0; i < count; i++) {
        if (is_crowded(&lane[i], least_rate))
            continue;
        if (least == count || has_less(&lane[i], &lane[least]))
            least = i;
        if (lane[i].of_tenant > 0 && (home == count || has_less(&lane[i], &lane[home])))
            home = i;
    }
    BASE_ASSERT(least < count); /* the one with the least to do is not crowded */
    return home < count && lane[home].sessions < lane[least].sessions + LANE_TOGETHER ? home
                                                                                      : least;
}

bool agent_lanes_are_uneven(struct lane_balance *b, const struct lane_load *lane, uint32_t count)
{
    uint32_t most = 0, least = 0;
    for (uint32_t i = 1; i < count; i++) {
        most = lane[i].rate > lane[most].rate ? i : most;
        least = lane[i].rate < lane[least].rate ? i : least;
    }
    const uint64_t gap = lane[most].rate - lane[least].rate;
    const bool uneven = gap > LANE_LITTLE && gap > lane[least].rate / 2;
    const bool same = b->looks > 0 && b->from == most && b->to == least;
    b->looks = !uneven ? 0 : same ? b->looks + 1 : 1;
    b->from = most;
    b->to = least;
    b->gap = gap;
    return b->looks >= LANE_UNEVEN_LOOKS;
}

/* The gap that is left. */
static uint64_t gap_after(uint64_t gap, uint64_t rate)
{
    return gap > 2 * rate ? gap - 2 * rate : 2 * rate - gap;
}

bool agent_lanes_would_be_even(const struct lane_balance *b, uint64_t rate, uint64_t best)
{
    const uint64_t left = gap_after(b->gap, rate);
    return rate > 0 && rate < b->gap && left <= b->gap - b->gap / 4 &&
           (best == 0 || left < gap_after(b->gap, best));
}

bool agent_lane_may_lodge(uint32_t own, uint32_t left)
{
    return left > 0 && own <= left;
}

void agent_lane_rest_begin(struct lane_rest *r, uint64_t stayed_ns, uint64_t now_ns)
{
    const uint64_t least_ns = LANE_REST_MS * BASE_NS_PER_MS;
    const bool brief = stayed_ns <= least_ns;
    r->until_ns = now_ns + (least_ns << (brief ? r->brief : 0));
    r->brief = !brief ? 0 : r->brief < LANE_REST_DOUBLINGS ? r->brief + 1 : r->brief;
    r->refused = 0;
}

void agent_lane_rest_refused(struct lane_rest *r, uint64_t now_ns)
{
    r->until_ns = now_ns + (LANE_REST_MS * BASE_NS_PER_MS << r->refused);
    r->refused += r->refused < LANE_REST_DOUBLINGS;
}

uint32_t agent_lane_connections(uint32_t all, uint32_t lanes, bool rc_alone)
{
    const uint32_t part = (all + lanes - 1) / lanes;
    const uint32_t least = all < LANE_CONNECTIONS_LEAST ? all : LANE_CONNECTIONS_LEAST;
    return rc_alone && part < least ? least : part;
}

static uint64_t part_of(uint64_t all, uint32_t parts, uint32_t number)
{
    const uint64_t part = all / parts + (number < all % parts);
    return all > 0 && part == 0 ? 1 : part;
}

struct agent_limits agent_limits_part(struct agent_limits all, uint32_t parts, uint32_t number)
{
    return (struct agent_limits){.bytes = part_of(all.bytes, parts, number),
                                 .ops = part_of(all.ops, parts, number)};
}
