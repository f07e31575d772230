/* SPDX-License-Identifier: Apache-2.0 */
#include "request/mr_shares.h"

#include "agent/reserve.h"
#include "lane_state.h"
#include "schedule/quota.h"
#include "session_state.h"

static const uint64_t SHARES_NS = 1000000;

static uint32_t has_mrs(const struct lane_quota *q)
{
    return atomic_load_explicit(&q->mrs, memory_order_relaxed);
}

static uint32_t lacks_mrs(const struct lane_quota *q)
{
    return lane_reserve_lacks(has_mrs(q),
                              atomic_load_explicit(&q->reserved_mrs, memory_order_relaxed));
}

static void look_at_shares(struct lane *l)
{
    l->shares.used = l->shares.kept = 0;
    l->shares.due_ns = l->now_ns + SHARES_NS;
    for (uint32_t i = 0; i < l->config.max_tenants; i++) {
        l->shares.used += has_mrs(&l->config.quotas[i]);
        l->shares.kept += lacks_mrs(&l->config.quotas[i]);
    }
    COUNT(l, shares_compared, l->config.max_tenants);
}

bool lane_mr_shares_leave_room(struct lane *l, const struct session *s)
{
    if (l->config.quotas == NULL)
        return true;
    if (l->now_ns >= l->shares.due_ns)
        look_at_shares(l);
    return lane_reserve_leaves(l->config.max_mrs, l->shares.used, l->shares.kept,
                               lacks_mrs(s->quota));
}

bool lane_mr_share_take(struct lane *l, const struct session *s)
{
    struct lane_quota *q = s->quota;
    const bool lacked = lacks_mrs(q) > 0;
    if (!lane_quota_take(q, LANE_QUOTA_MRS, &q->mrs, q->max_mrs))
        return false;
    l->shares.used++;
    l->shares.kept -= lacked && l->shares.kept > 0;
    return true;
}

void lane_mr_share_give(struct lane *l, const struct session *s)
{
    lane_quota_give(&s->quota->mrs);
    l->shares.used -= l->shares.used > 0;
    l->shares.kept += lacks_mrs(s->quota) > 0;
}
