/* SPDX-License-Identifier: Apache-2.0 */
/* What a VQP is: whom it is bound to, and that it is no more. What it posts is in vqp.c. */
#include "base/assert.h"
#include "lane_state.h"
#include "schedule/quota.h"
#include "schedule/sends.h"
#include "schedule/vqp.h"
#include "schedule/wait_queue.h"
#include "session_state.h"

static const uint8_t vqp_moves[VQP_STATES][VQP_STATES] = {
    /* from each to the column's */
    [VQP_FREE] = {[VQP_CONNECTED] = 1},
    [VQP_CONNECTED] = {[0 ... VQP_STATES - 1] = 1},
    [VQP_CUTTING] = {[VQP_FREE] = 1, [VQP_CONNECTED] = 1, [VQP_ERROR] = 1},
    [VQP_ERROR] = {[VQP_FREE] = 1, [VQP_CONNECTED] = 1},
    [VQP_ADDRESSED] = {[VQP_FREE] = 1, [VQP_CONNECTED] = 1, [VQP_ERROR] = 1, [VQP_ADDRESSED] = 1},
};

void lane_vqp_move(struct vqp *q, enum vqp_state to)
{
    BASE_ASSERT(vqp_moves[q->state][to]);
    q->state = (uint8_t)to;
}

/* Nothing of it is queued any more. */
static void release_vqp(struct lane *l, struct vqp *q)
{
    vqp_forget_flow(q);
    if (!vqp_is_own(q)) {
        lane_quota_give(&q->session->quota->vqps);
        COUNT(l, vqps, -1);
    }
    lane_vqp_move(q, VQP_FREE);
}

/* It is connected to nobody, and above all not to whom it was before; its posts will say why. */
static void deny_vqp(struct lane *l, struct vqp *q, uint32_t reason)
{
    if (q->state != VQP_FREE)
        release_vqp(l, q);
    q->denied = (uint8_t)reason;
}

/* The caller has made sure that nothing of it is queued or out. */
void lane_vqp_bind(struct lane *l, struct session *s, struct vqp *q, const struct schema_sq_desc *d)
{
    struct lane_quota *quota = s->quota;
    q->denied = 0;
    q->begun = BEGUN_NOT;
    q->path_ns = 0;
    q->session = s;
    q->region = l->cache;
    if (!lane_quota_ask(quota, l->now_ns)) {
        deny_vqp(l, q, SCHEMA_REASON_QUOTA_CONTROL_OPS);
        return;
    }
    if (q->state == VQP_FREE) {
        if (!lane_quota_take(quota, LANE_QUOTA_VQPS, &quota->vqps, quota->max_vqps)) {
            deny_vqp(l, q, SCHEMA_REASON_QUOTA_VQPS);
            return;
        }
        COUNT(l, vqps, 1);
    }
    vqp_forget_flow(q);
    lane_sends_forget_address(l, q);
    q->flowless_ns = 0;
    q->gen = d->vqp_gen;
    if (q->index >= s->vqps_high)
        s->vqps_high = q->index + 1;
    q->peer_slot = d->bind.peer_slot;
    q->peer_gen = d->bind.peer_gen;
    lane_vqp_move(q, VQP_CONNECTED);
}

void lane_vqp_open_own(struct lane *l, struct session *s, struct vqp *q, uint32_t slot,
                       uint32_t gen)
{
    BASE_ASSERT(q->index >= s->max_vqps && !vqp_is_busy(q));
    if (q->state != VQP_FREE)
        lane_vqp_stop_waiting(l, q);
    q->session = s;
    vqp_forget_flow(q);
    q->region = l->cache;
    q->begun = BEGUN; /* it follows nobody into another life */
    q->path_ns = q->flowless_ns = 0;
    q->peer_slot = slot;
    q->peer_gen = gen;
    s->vqps_high = s->vqp_places;
    lane_vqp_move(q, VQP_CONNECTED);
}

bool lane_vqp_address(struct lane *l, struct vqp *q, const struct schema_sq_desc *d)
{
    if ((q->state != VQP_CONNECTED && q->state != VQP_ADDRESSED) || q->gen != d->vqp_gen)
        return true; /* its first SEND says so */
    if (!lane_sends_address(l, q, d))
        return false;
    lane_vqp_move(q, VQP_ADDRESSED);
    return true;
}

void lane_vqp_destroy(struct lane *l, struct vqp *q)
{
    if (q->messages != NULL) {
        if (q->state == VQP_FREE)
            q->gen++;
        lane_sends_end(l, q);
    }
    if (q->state == VQP_FREE)
        return;
    q->gen++; /* what is out completes unseen */
    lane_vqp_stop_waiting(l, q);
    session_count(&q->session->memory->shown.queued, -(int)q->queue.count);
    queue_append(&q->session->flushing, &q->queue);
    release_vqp(l, q);
}
