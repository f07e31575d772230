/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/large_sends.h"

#include <string.h>

#include "lending_state.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "transmit/returned.h"
#include "vqp_state.h"

/* What a READ may take beside the time for which a receiver may have no buffer: 15 MB/s, which is
 * little for a wire that many share. */
enum { NS_A_BYTE = 64 };

void lane_large_send_begin(struct wr *w, const struct schema_sge *pieces, uint32_t count)
{
    struct large_send *n = large_send_of(w);
    *n = (struct large_send){.bytes = w->length};
    for (uint32_t i = 0; i < count; i++)
        if (pieces[i].length != 0)
            n->part[n->parts++] = pieces[i];
    w->special |= SPECIAL_LARGE;
    w->length = n->parts * SCHEMA_PART_BYTES;
    w->fab.num_sge = 1;
}

static uint32_t arenas_of(const struct large_send *n)
{
    uint32_t arenas = 0;
    for (uint32_t i = 0; i < n->parts; i++)
        arenas |= 1u << n->part[i].arena;
    return arenas;
}

/* From the session's list the layer above takes it. */
static void want_lending(struct lane *l, struct session *s, uint32_t arenas)
{
    s->lending.wants |= arenas;
    messages_list_lending(l, s);
}

static void end_lending(struct lane *l, struct session *s)
{
    s->lending.ends = 1;
    messages_list_lending(l, s);
}

/* Since it was announced, and was the first that is not acknowledged. */
static bool is_over_time(const struct lane *l, const struct vqp_messages *t, const struct wr *w,
                         uint64_t clock_ns)
{
    const struct large_send *n = large_send_of(w);
    const uint64_t since_ns = n->since_ns > t->first_ns ? n->since_ns : t->first_ns;
    return n->since_ns != 0 && w->vkey == t->sender.out.first &&
           clock_ns - since_ns >= l->res.messages.refused_ns + NS_A_BYTE * n->bytes;
}

enum vqp_wait lane_large_send_may_post(struct lane *l, struct vqp *q, struct wr *w,
                                       uint64_t clock_ns, uint32_t *reason)
{
    struct session *s = q->session;
    const struct large_send *n = large_send_of(w);
    uint32_t missing = 0;
    if (is_over_time(l, q->messages, w, clock_ns)) {
        *reason = SCHEMA_REASON_RECEIVER;
        return WAIT_NOTHING;
    }
    for (uint32_t left = arenas_of(n); left != 0; left &= left - 1) {
        const uint32_t arena = (uint32_t)__builtin_ctzll(left);
        if (!lending_has(&s->lending, arena))
            missing |= 1u << arena;
    }
    if (missing == 0)
        return WAIT_NOTHING;
    if (l->now_ns < s->lending.again_ns && s->lending.refused != 0) {
        *reason = s->lending.refused;
        return WAIT_NOTHING;
    }
    want_lending(l, s, missing);
    return WAIT_LENDING;
}

uint32_t lane_large_send_write(struct vqp *q, struct wr *w, uint64_t clock_ns,
                               struct schema_message *m, void *behind)
{
    const struct lending *lent = &q->session->lending;
    struct large_send *n = large_send_of(w);
    struct schema_part parts[SCHEMA_PARTS_MOST];
    for (uint32_t i = 0; i < n->parts; i++)
        parts[i] = (struct schema_part){.addr = n->part[i].offset,
                                        .length = n->part[i].length,
                                        .vkey = lent->vkey[n->part[i].arena]};
    m->parts = (uint8_t)n->parts;
    m->length = (uint32_t)n->bytes;
    n->generation = lent->gone + 1;
    q->messages->large_generation = n->generation;
    if (q->messages->large_end == 0 || (int32_t)(w->vkey - q->messages->large_end) >= 0)
        q->messages->large_end = w->vkey + 1;
    n->since_ns = n->since_ns != 0 ? n->since_ns : clock_ns;
    schema_parts_write(parts, n->parts, behind);
    return n->parts * SCHEMA_PART_BYTES;
}

bool lane_large_send_is_late(const struct lane *l, const struct vqp_messages *t, uint64_t clock_ns)
{
    const struct wr *w = t->kept.head;
    return w != NULL && (w->special & SPECIAL_LARGE) && t->sender.out.asked == 0 &&
           is_over_time(l, t, w, clock_ns);
}

bool lane_large_send_is_first(const struct vqp_messages *t)
{
    const struct wr *w = t->kept.head;
    return w != NULL && w->vkey == t->sender.out.first && (w->special & SPECIAL_LARGE) != 0;
}

void lane_large_send_let_go(struct vqp_messages *t)
{
    t->let_go = 1;
}

/* Where the VQP never had an address none was announced. */
static bool is_lent(const struct vqp *q, uint32_t generation)
{
    const struct vqp_messages *t = q->messages;
    return t != NULL && !t->let_go && generation > q->session->lending.gone;
}

bool lane_large_send_holds(struct lane *l, struct vqp *q, struct wr *w)
{
    if (!(w->special & SPECIAL_LARGE) || !is_lent(q, large_send_of(w)->generation))
        return false;
    end_lending(l, q->session);
    return true;
}

void lane_large_send_fail(struct wr *w, enum ibv_wc_status status)
{
    large_send_of(w)->status = status;
}

enum ibv_wc_status lane_large_sends_fail_before(struct vqp_messages *t, const struct wr *w,
                                                enum ibv_wc_status status)
{
    struct wr *first = t->kept.head;
    if (status != IBV_WC_RETRY_EXC_ERR || first == NULL || (int32_t)(first->vkey - w->vkey) > 0)
        return status;
    lane_large_send_fail(first, status);
    return IBV_WC_WR_FLUSH_ERR;
}

enum ibv_wc_status lane_large_send_status(const struct wr *w)
{
    const uint32_t status = large_send_of(w)->status;
    return status != 0 ? (enum ibv_wc_status)status : IBV_WC_WR_FLUSH_ERR;
}

uint32_t lane_large_send_reason(const struct wr *w)
{
    const uint32_t status = large_send_of(w)->status;
    if (status != 0)
        return reason_of_end((enum ibv_wc_status)status);
    /* Behind one that its receiver has refused nothing is taken. */
    const bool was_written = large_send_of(w)->since_ns != 0;
    return was_written && !messages_of_wr(w)->let_go ? SCHEMA_REASON_UNDER_WAY
                                                     : SCHEMA_REASON_BEHIND;
}

void lane_large_send_end(struct lane *l, struct vqp *q)
{
    const struct vqp_messages *t = q->messages;
    const bool any = t->large_generation != 0 && (int32_t)(t->large_end - t->sender.out.first) > 0;
    if (any && is_lent(q, t->large_generation))
        end_lending(l, q->session);
}
