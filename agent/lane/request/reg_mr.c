/* SPDX-License-Identifier: Apache-2.0 */
#include "request/reg_mr.h"

#include <errno.h>

#include "lane_state.h"
#include "request/dedicated_mr.h"
#include "request/mr_shares.h"
#include "request/region.h"
#include "request/reply.h"
#include "session_state.h"

static const uint32_t KINDS = SCHEMA_REG_FENCED | SCHEMA_REG_LEASE_ONLY;

static bool is_sound(const struct session *s, const struct schema_sq_desc *d)
{
    const uint32_t arena = d->reg_mr.arena;
    const uint64_t offset = d->reg_mr.offset, length = d->reg_mr.length;
    return (d->reg_mr.access & REGION_ACCESS) != 0 &&
           (d->reg_mr.access & ~(REGION_ACCESS | KINDS)) == 0 &&
           (d->reg_mr.access & KINDS) != KINDS && arena < s->arenas && length != 0 &&
           offset <= s->arena[arena].bytes && length <= s->arena[arena].bytes - offset &&
           d->reg_mr.vaddr <= UINT64_MAX - length;
}

/* A peer checks that an atomic is aligned by the name of the region, and devices by its place: a
 * request that is good by the one and not by the other would break a queue pair. */
static bool is_congruent(const struct session *s, const struct schema_sq_desc *d)
{
    const uint64_t place = s->arena[d->reg_mr.arena].iova + d->reg_mr.offset;
    return ((d->reg_mr.vaddr ^ place) & 7) == 0;
}

int lane_region_add(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                    uint32_t *vkey, uint8_t secret[16])
{
    if (!is_sound(s, d))
        return -EINVAL;
    if (!is_congruent(s, d))
        return -EFAULT;
    if ((d->reg_mr.access & SCHEMA_RECORD_ATOMIC) != 0 && !s->caps->atomics)
        return -EOPNOTSUPP;
    if ((!lane_region_has_own(l, d) && (s->forced_arenas >> d->reg_mr.arena & 1) != 0) ||
        s->lending.tag != 0) { /* that has a place already */
        s->registering.asked = *d;
        s->registering.held = true;
        return -EINPROGRESS;
    }
    struct region *region = s->regions_used < s->max_regions ? lane_region_place(s) : NULL;
    if (region != NULL && !lane_mr_shares_leave_room(l, s))
        return -ENOSPC;
    if (region == NULL || !lane_mr_share_take(l, s))
        return -EDQUOT;
    const struct lane_arena *arena = &s->arena[d->reg_mr.arena];
    const struct lane_arena at = {.rkey = arena->rkey, .iova = arena->iova + d->reg_mr.offset};
    if (!lane_region_has_own(l, d))
        return lane_region_publish(l, s, region, d, &at, vkey, secret);
    lane_dedicated_want(l, s, region, d);
    return -EINPROGRESS;
}

/* Why lane_region_add() failed. */
static uint32_t reason_of(const struct session *s, int status)
{
    if (status == -EDQUOT)
        return s->regions_used == s->max_regions ? SCHEMA_REASON_QUOTA : SCHEMA_REASON_QUOTA_MRS;
    return status == -ENOSPC       ? SCHEMA_REASON_MRS
           : status == -EOPNOTSUPP ? SCHEMA_REASON_ATOMICS
           : status == -EFAULT     ? SCHEMA_REASON_ALIGNMENT
                                   : 0;
}

void lane_region_register(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    uint32_t vkey = 0;
    uint8_t secret[16] = {0};
    const int status = lane_region_add(l, s, d, &vkey, secret);
    const uint32_t reason = reason_of(s, status);
    if (reason == SCHEMA_REASON_QUOTA_MRS)
        vkey = atomic_load_explicit(&s->quota->max_mrs, memory_order_relaxed);
    if (status != -EINPROGRESS)
        lane_session_reply(l, s, status, reason, vkey, 0, secret);
}
