/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/near_sends.h"

#include "base/assert.h"
#include "lane_state.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "vqp_state.h"

/* Its stream is open over there, and goes on. */
static bool is_open(const struct vqp_messages *t)
{
    const struct stream_sender *k = &t->sender;
    return k->known && (t->failed | t->rewinds) == 0 && t->bad == 0 && !k->out.one_by_one;
}

/* What the device was given last was a SEND, so that a receive has ended behind all that it has
 * WRITTEN: that a WRITE has ended says less (docs/messages.md#notifications). */
static bool may_go(const struct lane *l, const struct vqp *q)
{
    const struct vqp_messages *t = q->messages;
    return !l->config.by_device && message_peer_is_self(l, t->sender.to) && is_open(t) &&
           q->begun >= BEGUN_BY_SEND && l->now_ns >= t->near.again_ns;
}

/* Nothing of it that the device had is to be heard of. What goes again since its receiver did not
 * know of it may have been there all the same, and not seen, nor what was WRITTEN before it. */
static bool is_acknowledged(const struct vqp_messages *t)
{
    const struct stream_out *out = &t->sender.out;
    return out->first == out->posted || (int32_t)(out->first - t->near.wired) >= 0;
}

/* What is left to others is so however many VQPs a tenant has (Choudhury and Hahne's dynamic
 * thresholds). */
static bool has_share(const struct lane *l, const struct vqp *q)
{
    const struct near_list *all = &l->messages->nears;
    const struct near_tenant *n = &all->tenants[q->session->tenant_slot];
    return all->bytes < NEAR_ALL && n->bytes < NEAR_SHARE * (NEAR_ALL - all->bytes);
}

/* Whoever sends nothing but messages waits once, until the device has none of them. Where others
 * come in between too that would be again and again: those do not wait. */
enum near_way lane_near_ask(struct lane *l, const struct vqp *q)
{
    const struct vqp_messages *t = q->messages;
    if (!may_go(l, q) || !has_share(l, q))
        return t->near.waits ? NEAR_WAITS : NEAR_BY_DEVICE;
    if (t->near.waits)
        return t->near.bytes < NEAR_EACH ? NEAR_GOES : NEAR_WAITS;
    if (q->outstanding == 0 && is_acknowledged(t))
        return NEAR_GOES;
    const bool goes_again = t->sender.out.first == t->sender.out.next;
    return q->begun == BEGUN_BY_SENDS && !goes_again ? NEAR_WAITS : NEAR_BY_DEVICE;
}

void lane_near_wait(struct lane *l, struct vqp *q, uint32_t first, uint32_t count, uint32_t counted)
{
    struct vqp_messages *t = q->messages;
    struct near_list *all = &l->messages->nears;
    BASE_ASSERT(q->outstanding == 0);
    q->kept += count;
    if (!t->near.waits) {
        t->near.waits = 1;
        t->near.next = first;
        t->near.tenant = &all->tenants[q->session->tenant_slot];
        if (TAILQ_EMPTY(&t->near.tenant->vqps))
            TAILQ_INSERT_TAIL(&all->waiting, t->near.tenant, by_turn);
        TAILQ_INSERT_TAIL(&t->near.tenant->vqps, t, near.by_near);
    }
    t->near.bytes += counted;
    t->near.tenant->bytes += counted;
    all->bytes += counted;
    large_sends_note(t, first, false); /* none is announced */
    lane_sender_stamp(&t->sender, l->now_ns);
    messages_join_actives(l, t);
    l->did += count;
    messages_wait(l);
}

void lane_near_post(struct lane *l, struct vqp *q, struct wr *w)
{
    struct vqp_messages *t = q->messages;
    BASE_ASSERT(w->vkey == t->sender.out.next);
    w->fab.compare_add = (uintptr_t)t;
    w->back = BACK_ENDED;
    queue_push(&t->kept, w);
    lane_stream_out_posted(&t->sender.out, messages_clock(l));
    lane_near_wait(l, q, w->vkey, 1, near_counts(near_length(w)));
}

void lane_near_leave(struct lane *l, struct vqp_messages *t)
{
    struct near_list *all = &l->messages->nears;
    struct near_tenant *n = t->near.tenant;
    if (!t->near.waits)
        return;
    TAILQ_REMOVE(&n->vqps, t, near.by_near);
    if (TAILQ_EMPTY(&n->vqps))
        TAILQ_REMOVE(&all->waiting, n, by_turn);
    BASE_ASSERT(all->bytes >= t->near.bytes && n->bytes >= t->near.bytes);
    all->bytes -= t->near.bytes;
    n->bytes -= t->near.bytes;
    t->near.bytes = t->near.done = 0;
    t->near.waits = t->near.looks = 0;
}

void lane_near_took(struct lane *l, struct vqp_messages *t, uint32_t next, uint32_t counted,
                    uint64_t bytes)
{
    struct near_list *all = &l->messages->nears;
    const uint32_t count = next - t->near.next;
    /* One that is not taken counts when it goes by the device. */
    session_count_posted(&t->q->session->memory->shown, count, bytes);
    t->near.next = next;
    t->near.bytes -= counted;
    t->near.tenant->bytes -= counted;
    all->bytes -= counted;
    if (next == t->sender.out.next)
        lane_near_leave(l, t);
}

void lane_near_refused(struct lane *l, struct vqp_messages *t)
{
    t->near.again_ns = l->now_ns + NEAR_AGAIN_US * 1000ull;
    lane_near_leave(l, t);
}
