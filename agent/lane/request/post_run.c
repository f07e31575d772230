/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken from a ring, and most of it in runs: posts of one piece, one behind the other, of
 * one VQP to one region, of which nothing has to be looked at closely.
 *
 * What they have in common is looked at once, and counted once behind the last. A run changes
 * nothing but what that costs: a request that it does not take is taken as any is (intake.c), from
 * a copy of its own. */
#include "request/intake.h"

#include <string.h>

#include "lane_state.h"
#include "request/active.h"
#include "request/ending.h"
#include "request/message_run.h"
#include "request/reply.h"
#include "request/ring_copy.h"
#include "resolve/liveness.h"
#include "schedule/turn_bytes.h"
#include "schedule/unseen_writes.h"
#include "schedule/usual.h"
#include "schedule/window_run.h"
#include "session_state.h"
#include "transmit/merge.h"
#include "transmit/operation.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

struct post_run {
    const struct operation *op;
    struct session *s;
    struct vqp *q;
    struct physical_qp *p;
    const struct cached *region;
    uint64_t header;        /* of each, but for SIGNALED */
    uint32_t most;          /* bytes of one */
    uint32_t count, behind; /* behind: those that are chained behind others */
    uint64_t bytes;
    int64_t room; /* in bytes, of its queue pair and its windows; less than 0: none */
};

/* One piece of some bytes, and no flag that asks for more. */
static bool is_plain(const struct schema_sq_desc *d, const struct operation *op)
{
    return op->kind == OPERATION_POST && op->bytes == 0 && d->num_sge == 1 && slot_count(d) == 1 &&
           (d->flags & ~SCHEMA_OP_SIGNALED) == 0;
}

/* What all of it have in common, by its first one. */
static bool begin_run(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                      struct post_run *r)
{
    const struct operation *op = operation_of(d->op);
    struct vqp *q = &s->vqps[d->vqp];
    if (!is_plain(d, op) || d->vqp >= s->max_vqps || d->vqp_gen != q->gen || !vqp_is_usual(l, q) ||
        !region_is_usual(l, q, d->post.vkey, op))
        return false;
    *r = (struct post_run){.op = op,
                           .s = s,
                           .q = q,
                           .p = flow_phys(l, q->flow),
                           .region = q->region,
                           .header = slot_header(d),
                           .most = l->config.cut_bytes};
    if (r->p == NULL || !physical_qp_works(r->p) || l->config.streams)
        return false;
    r->room = (int64_t)(r->p->pass_bytes - r->p->bytes);
    return true;
}

/* It is in its own memory, in the region, and there is room for it. */
static inline bool has_place(const struct post_run *r, const struct schema_sq_desc *d)
{
    const struct session *s = r->s;
    const struct schema_mr_record *m = &r->region->record;
    const uint64_t remote = d->post.remote_addr, local = d->post.offset;
    const uint32_t length = d->post.length, arena = d->post.arena;
    const struct physical_qp *p = r->p;
    return d->post.vkey == m->vkey && length != 0 && length <= r->most && arena < s->arenas &&
           local <= s->arena[arena].bytes && length <= s->arena[arena].bytes - local &&
           remote >= m->vaddr && length <= m->length && remote - m->vaddr <= m->length - length &&
           p->tail - p->head < p->pass_ops && (int64_t)(r->bytes + length) <= r->room;
}

static inline void fill_request(const struct lane *l, const struct post_run *r,
                                const struct schema_sq_desc *d, struct wr *w)
{
    const struct schema_mr_record *m = &r->region->record;
    const struct lane_arena *a = &r->s->arena[d->post.arena];
    const uint8_t signaled = d->flags & SCHEMA_OP_SIGNALED;
    w->session = r->s;
    w->op = r->op;
    w->wr_id = d->post.wr_id;
    w->remote_addr = d->post.remote_addr;
    w->length = d->post.length;
    w->vkey = d->post.vkey;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->special = 0;
    w->kind = WR_WORKER;
    w->signaled = signaled;
    w->refused = 0;
    wr_part(w);
    w->sge[0] = (struct ibv_sge){
        .addr = a->iova + d->post.offset, .length = d->post.length, .lkey = a->lkey};
    w->fab.sg_list = w->sge;
    w->fab.num_sge = 1;
    w->fab.opcode = r->op->opcode;
    w->fab.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    lease_stamp(w, r->region);
    w->fab.remote_addr = m->raddr + (d->post.remote_addr - m->vaddr);
    flow_address(l, r->q->flow, r->q->peer_slot, w);
}

/* As physical_qp_chain(), but for what is counted behind the last. */
static inline void chain_request(struct lane *l, struct post_run *r, struct wr *w)
{
    struct physical_qp *p = r->p;
    if (p->chain == NULL) {
        physical_qp_begin_chain(l, p, w);
    } else if (!physical_qp_goes_on(l, p, w) || !lane_merge(l, p, w)) {
        physical_qp_link(l, p, w);
        r->behind++;
    }
    *ring_at(l, p, p->tail++) = w;
    r->bytes += w->length;
    r->count++;
}

static void end_run(struct lane *l, struct post_run *r)
{
    struct session *s = r->s;
    const int n = (int)r->count;
    session_count(&s->inflight, n);
    active_count_out(s->of, n);
    session_count_posted(&s->memory->shown, r->count, r->bytes);
    struct flow *f = r->q->flow;
    const uint8_t begun = r->op->begun;
    f->wrote |= begun;
    flow_posted(l, f, r->count);
    r->q->outstanding += r->count;
    vqp_posted(l, r->q, begun);
    r->p->bytes += r->bytes;
    r->p->posted += r->bytes + (uint64_t)LANE_POST_BYTES * r->count;
    l->did += r->count;
    COUNT(l, posted, n);
    if (r->behind > 0)
        COUNT(l, chained_behind, r->behind);
    if (WINDOW_GET(l->windows_on))
        lane_windows_enter_run(l, r->q, r->count, r->bytes);
}

/* Posts some of the `most` slots from `head` on, which the worker has written; *d: a copy of the
 * first, and still that where none is posted. Returns how many: each has taken one. */
static inline __attribute__((always_inline)) uint32_t
take_run(struct lane *l, struct session *s, uint32_t head, uint32_t most, struct schema_sq_desc *d)
{
    struct post_run r;
    if (!begin_run(l, s, d, &r))
        return 0;
    if (WINDOW_GET(l->windows_on)) {
        const struct window_room room = lane_windows_room(l, r.q);
        most = room.ops < most ? (uint32_t)room.ops : most;
        r.room = room.bytes < r.room ? room.bytes : r.room;
        if (most == 0)
            return 0;
    }
    do {
        struct wr *w = s->free_wr;
        if (w == NULL || !has_place(&r, d) || !turn_takes(l, s, d->post.length))
            break;
        s->free_wr = w->next;
        fill_request(l, &r, d, w);
        chain_request(l, &r, w);
        if (r.count == most)
            break;
        if (most - r.count > SLOTS_AHEAD)
            prefetch_slot(s, head + r.count + SLOTS_AHEAD);
        copy_slot(s, head + r.count, d);
    } while (slot_header(d) == r.header);
    if (r.count > 0)
        end_run(l, &r);
    return r.count;
}

/* ---- all */

/* What was taken may be written over. */
static inline void publish_head(struct session *s, uint32_t head)
{
    s->sq_head = head;
    atomic_store_explicit(&s->ro->sq_head, head, memory_order_release);
}

/* How many requests there is room for, and for their completions, at `most`. */
static inline uint32_t session_room(const struct session *s, uint32_t most)
{
    const uint32_t used = s->cq_tail - s->cq_head + session_inflight(s);
    const uint32_t room = used <= s->cq_mask ? s->cq_mask + 1 - used : 0;
    return s->free_wr == NULL ? 0 : room < most ? room : most;
}

uint32_t lane_session_take(struct lane *l, struct session *s, uint32_t avail, uint32_t most)
{
    struct schema_sq_desc d;
    uint32_t head = s->sq_head, left = most, room = session_room(s, most);
    if (s->control_op != 0 || s->state != SESSION_LIVE)
        return 0;
    /* Its worker may have seen no later head than the last before which a barrier stood, and wait
     * for room by that one (tests/model/room.pml). */
    const bool full = (uint64_t)avail + (head - s->told_head) > s->room_kept;
    if ((full && avail > s->sq_mask + 1) || (room == 0 && !session_look_at_cq_head(s))) {
        lane_session_end(l, s, SCHEMA_REASON_RING, true);
        return 1;
    }
    if (full) /* of the room, at the end of the pass, that there is by then */
        lane_session_tell(l, s);
    prefetch_slots(s, head, avail);
    room = room > 0 ? room : session_room(s, most);
    while (room > 0) {
        const uint32_t here = avail < room ? avail : room;
        copy_slot(s, head, &d);
        uint32_t slots = take_run(l, s, head, here, &d);
        if (slots == 0)
            slots = lane_message_run(l, s, head, here, &d);
        left -= slots;
        if (slots == 0) {
            slots = lane_request_take(l, s, head, avail);
            if (slots == 0)
                break;
            left--;
        }
        head += slots;
        avail -= slots;
        room = avail > 0 && s->control_op == 0 ? session_room(s, left) : 0;
    }
    if (s->state != SESSION_LIVE)
        return most - left + (left == most);
    s->look = avail > 0 || !s->phased ? LOOK_TAIL : LOOK_SLOT;
    if (head != s->sq_head)
        publish_head(s, head);
    return most - left;
}
