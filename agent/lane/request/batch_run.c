/* SPDX-License-Identifier: Apache-2.0 */
#include "request/batch_run.h"

#include <stddef.h>
#include <string.h>

#include "flow_state.h"
#include "request/active.h"
#include "request/batch.h"
#include "request/batch_pool.h"
#include "schedule/batch_pace.h"
#include "schedule/vqp.h"
#include "schedule/wait_queue.h"
#include "transmit/cut.h"
#include "transmit/operation.h"

/* The first of each where there are no others (schedule/batch_pace.h), and beside some, who wait
 * for what a pass makes and posts. */
enum {
    PIECE_BYTES = 64 * 1024,  /* of a piece */
    AHEAD_BYTES = 512 * 1024, /* made at a time, so that few are long when somebody comes */
    MADE_MOST = 4096,         /* descriptors that pieces are made of in a pass; of each batch one */
    MADE_BESIDE = 16,
    LOOKS = 16, /* at VQPs that wait with batches, in a pass */
    LOOKS_BESIDE = 4,
    PIECE_MOST = 64,  /* descriptors */
    DESCS_AHEAD = 4,  /* whose line is asked for meanwhile, also where there is none */
    WHOLE_BYTES = 8,  /* pieces are merged at a multiple of it, as in merge.c */
    CUT_BYTES = 64,   /* and cut at one */
    SIGNAL_EACH = 8,  /* pieces have a completion of the device's */
    REFILL_PIECES = 2 /* a batch has others when one in so many is over */
};

static struct batch *batch_of(const struct wr *w)
{
    return &w->session->memory->batches[w->index];
}

/* ---- pieces */

static bool share_bytes(const struct ibv_sge *a, uint64_t addr, const struct batch_desc *d)
{
    return a->addr < addr + d->length && addr < a->addr + a->length;
}

/* Where a READ brings two things nobody says which of them is written last. */
static bool writes_twice(const struct session *s, const struct wr *w, const struct batch_desc *d)
{
    const uint64_t addr = s->arena[d->arena].iova + d->offset;
    for (int i = 0; i < w->fab.num_sge; i++)
        if (w->sge[i].lkey == s->arena[d->arena].lkey && share_bytes(&w->sge[i], addr, d))
            return true;
    return false;
}

/* What no piece has had of the next descriptor: it may be more than goes in one. */
static struct batch_desc rest_of_next(const struct lane *l, const struct batch *b)
{
    struct batch_desc d = *batch_desc_at(&l->batches, &b->at);
    d.remote_addr += b->at.begun;
    d.offset += b->at.begun;
    d.length -= b->at.begun;
    return d;
}

/* It is more of the last SGE, or the next. False: there is no room for that. */
static bool add_bytes(const struct session *s, struct wr *w, const struct batch_desc *d)
{
    const struct lane_arena *arena = &s->arena[d->arena];
    const uint64_t addr = arena->iova + d->offset;
    struct ibv_sge *last = &w->sge[w->fab.num_sge > 0 ? w->fab.num_sge - 1 : 0];
    if (w->fab.num_sge > 0 && last->lkey == arena->lkey && last->addr + last->length == addr) {
        last->length += d->length;
    } else {
        if (w->fab.num_sge == SCHEMA_MAX_SGE ||
            (w->fab.num_sge > 0 && (uint32_t)w->fab.num_sge >= s->caps->max_sge))
            return false;
        w->sge[w->fab.num_sge++] =
            (struct ibv_sge){.addr = addr, .length = d->length, .lkey = arena->lkey};
    }
    w->length += d->length;
    return true;
}

static uint64_t most_bytes(const struct lane *l)
{
    const uint64_t most = batch_pace_is_beside(l) ? lane_batch_pace_piece(l) : PIECE_BYTES;
    return l->res.fab->caps.max_msg_size < most ? l->res.fab->caps.max_msg_size : most;
}

/* Whether what the piece has goes on with this one, to be READ or written as one. */
static bool goes_on(const struct lane *l, const struct session *s, const struct wr *w,
                    const struct batch_desc *d)
{
    return w->op == operation_of(d->op) && w->vkey == d->vkey &&
           w->remote_addr + w->length == d->remote_addr && w->remote_addr % WHOLE_BYTES == 0 &&
           w->length + d->length <= most_bytes(l) &&
           (d->op != SCHEMA_OP_READ || !writes_twice(s, w, d));
}

static bool may_merge(const struct lane *l)
{
    return l->config.merge_sges > 0 && l->now_ns >= l->merges.rest_until_ns;
}

static void begin_piece(struct batch *b, struct wr *w, const struct batch_desc *d)
{
    const struct wr *marker = b->marker;
    const struct operation *op = operation_of(d->op);
    w->fab = (struct fab_wr){.opcode = op->opcode, .sg_list = w->sge};
    w->session = marker->session;
    w->flow = NULL;
    w->op = op;
    w->wr_id = (uint64_t)b->at.index << 32; /* and how many are over with it */
    w->remote_addr = d->remote_addr;
    w->length = 0;
    w->vkey = d->vkey;
    w->vqp = marker->vqp;
    w->vqp_gen = marker->vqp_gen;
    w->stale = 0;
    w->special = SPECIAL_PIECE;
    w->signaled = w->refused = w->ended = w->back = 0;
    wr_part(w); /* of its former life */
    if (b->at.index > 0 || b->at.begun > 0)
        w->special |= SPECIAL_RELAXED;
    cut_of(w)->left = 0;
    w->kind = WR_WORKER;
    w->index = marker->index;
}

static uint32_t first_of(const struct wr *w)
{
    return (uint32_t)(w->wr_id >> 32);
}

static uint32_t count_of(const struct wr *w)
{
    return (uint32_t)w->wr_id;
}

/* What of it goes in a piece of its own: all, or up to a multiple of CUT_BYTES, so that no word
 * that is aligned at the peer is in two. True: that is all. */
static bool take_front(const struct lane *l, struct batch *b, struct wr *w, struct batch_desc *d)
{
    const uint64_t most = most_bytes(l), end = (d->remote_addr + most) / CUT_BYTES * CUT_BYTES;
    if (d->length <= most)
        return true;
    const uint32_t front = (uint32_t)(end > d->remote_addr ? end - d->remote_addr : most);
    cut_of(w)->left = d->length - front; /* which is to be in bounds, too */
    d->length = front;
    b->at.begun += front;
    return false;
}

/* Of the next descriptors, as many as go together, or a part of one. */
static struct wr *make_piece(struct lane *l, struct session *s, struct batch *b)
{
    struct wr *w = b->free_piece;
    struct batch_desc d = rest_of_next(l, b);
    __builtin_prefetch(batch_desc_at(&l->batches, &b->at) + DESCS_AHEAD);
    b->free_piece = w->next;
    begin_piece(b, w, &d);
    b->out++;
    active_count_out(s->of, 1);
    const bool whole = take_front(l, b, w, &d);
    (void)add_bytes(s, w, &d);
    if (!whole)
        return w;
    do {
        w->wr_id++;
        batch_advance(&l->batches, &b->at);
        if (batch_is_whole(b))
            break;
        d = rest_of_next(l, b);
    } while (count_of(w) < PIECE_MOST && may_merge(l) && goes_on(l, s, w, &d) &&
             add_bytes(s, w, &d));
    return w;
}

/* How many more descriptors may be looked at in this pass: of short ones thousands are a few
 * pieces, and nothing is posted for the time that it takes. */
static uint32_t left_to_make(struct lane *l)
{
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    const uint32_t most = batch_pace_is_beside(l) ? MADE_BESIDE : MADE_MOST;
    if (l->batches.pass != pass)
        l->batches.made = 0;
    l->batches.pass = pass;
    return l->batches.made < most ? most - l->batches.made : 0;
}

/* As many as there are places for, or as are soon carried out, the first one first; one in any
 * case, since the marker behind them would be over else. */
static struct wr_queue make_pieces(struct lane *l, struct session *s, struct batch *b)
{
    struct wr_queue made = {.head = NULL};
    const uint32_t peer = s->vqps[b->marker->vqp].peer_slot;
    const uint64_t most = batch_pace_is_beside(l) ? lane_batch_pace_ahead(l, peer) : AHEAD_BYTES;
    uint64_t bytes = 0;
    while (b->free_piece != NULL && !batch_is_whole(b) &&
           (made.count == 0 || (left_to_make(l) > 0 && bytes < most))) {
        struct wr *w = make_piece(l, s, b);
        l->batches.made += count_of(w) > 0 ? count_of(w) : 1;
        bytes += w->length;
        queue_push(&made, w);
        w->signaled = made.count % SIGNAL_EACH == 0;
    }
    if (made.tail != NULL)
        made.tail->signaled = 1;
    return made;
}

/* ---- how it stands */

static void show_done(struct session *s, uint32_t number, const struct batch *b)
{
    atomic_store_explicit(&s->ro->batch[number].done, b->done, memory_order_relaxed);
}

static void show_begin(struct session *s, uint32_t number, const struct batch *b)
{
    struct schema_batch_shown *shown = &s->ro->batch[number];
    const uint32_t begun = atomic_load_explicit(&shown->begun, memory_order_relaxed);
    show_done(s, number, b);
    atomic_store_explicit(&shown->failed, SCHEMA_BATCH_NONE, memory_order_relaxed);
    atomic_store_explicit(&shown->why, 0, memory_order_relaxed);
    atomic_store_explicit(&shown->begun, begun + 1, memory_order_release);
}

static void show_end(struct session *s, uint32_t number, const struct batch *b, uint32_t why)
{
    struct schema_batch_shown *shown = &s->ro->batch[number];
    const uint32_t ended = atomic_load_explicit(&shown->ended, memory_order_relaxed);
    show_done(s, number, b);
    atomic_store_explicit(&shown->failed, b->failed, memory_order_relaxed);
    atomic_store_explicit(&shown->why, why, memory_order_relaxed);
    atomic_store_explicit(&shown->ended, ended + 1, memory_order_release);
}

/* Of a post on a VQP that is not there. */
static void show_refused(struct session *s, uint32_t number, uint32_t reason)
{
    const struct batch none = {.failed = 0};
    show_begin(s, number, &none);
    show_end(s, number, &none, IBV_WC_LOC_QP_OP_ERR | reason << 8);
}

/* ---- its end */

/* Nothing of it is queued or out. */
static void end_batch(struct lane *l, struct session *s, struct batch *b)
{
    struct wr *marker = b->marker;
    enum ibv_wc_status status = (enum ibv_wc_status)b->status;
    uint32_t reason = b->reason;
    if (status == IBV_WC_SUCCESS && b->done < b->count) {
        status = IBV_WC_WR_FLUSH_ERR;
        reason = b->cancelled ? SCHEMA_REASON_CANCELLED : SCHEMA_REASON_BEHIND;
        b->failed = b->done;
    }
    b->marker = NULL;
    lane_batch_move(b, BATCH_READY);
    show_end(s, marker->index, b, (uint32_t)status | reason << 8);
    COUNT(l, batches, 1);
    marker->length = 0;
    lane_session_complete(l, marker, status, reason);
}

/* Its VQP is past it, or gone, or in error; what it has out is awaited. */
static void end_marker(struct lane *l, struct session *s, struct batch *b,
                       enum ibv_wc_status status, uint32_t reason)
{
    if (status != IBV_WC_SUCCESS && b->status == IBV_WC_SUCCESS && b->done < b->count &&
        !b->cancelled) {
        b->status = (uint8_t)status;
        b->reason = (uint8_t)reason;
        b->failed = b->done;
    }
    b->over = 1;
    if (b->out == 0)
        end_batch(l, s, b);
}

/* ---- more of it */

/* Its marker is the first of its queue: the pieces before it are out, or over. */
static bool wants_pieces(const struct vqp *q, const struct batch *b)
{
    return q->queue.head == b->marker && q->session->state == SESSION_LIVE && !b->cancelled &&
           b->status == IBV_WC_SUCCESS && !batch_is_whole(b) &&
           (b->pieces - b->out) * REFILL_PIECES >= b->pieces;
}

/* In front of its marker. */
static void refill_queue(struct lane *l, struct session *s, struct batch *b)
{
    struct vqp *q = &s->vqps[b->marker->vqp];
    struct wr_queue made = make_pieces(l, s, b);
    session_count(&s->memory->shown.queued, (int)made.count);
    queue_append(&made, &q->queue);
    q->queue = made;
    show_done(s, b->marker->index, b);
    lane_session_activate(l, s);
}

/* It has its turn among those that wait with batches. */
static void look_at_batch(struct lane *l, struct vqp *q)
{
    struct wr *w = q->queue.head;
    struct batch *b = batch_of(w);
    if (!lane_batch_pace_has_room(l, w)) {
        TAILQ_REMOVE(&l->batching.vqps, q, waiting);
        TAILQ_INSERT_TAIL(&l->batching.vqps, q, waiting);
        return;
    }
    lane_vqp_unblock(l, q);
    if (wants_pieces(q, b) && (b->out == 0 || left_to_make(l) > 0))
        refill_queue(l, q->session, b);
    COUNT(l, retried, 1);
    lane_vqp_go_on(l, q);
    if (b->state == BATCH_POSTED && wants_pieces(q, b)) /* the next pass makes more */
        lane_vqp_wait_for(l, q, WAIT_BATCHES);
}

void lane_batches_go_on(struct lane *l)
{
    const bool beside = lane_batch_pace_open(l);
    uint32_t left = beside ? LOOKS_BESIDE : LOOKS;
    l->went_most = l->went + (beside ? LOOKS_BESIDE : LANE_TAKEN);
    for (left = left < l->batching.count ? left : l->batching.count;
         left > 0 && l->batching.count > 0; left--)
        look_at_batch(l, TAILQ_FIRST(&l->batching.vqps));
    batch_pace_close(l);
}

static void end_piece(struct lane *l, struct wr *w, enum ibv_wc_status status, uint32_t reason)
{
    struct session *s = w->session;
    struct batch *b = batch_of(w);
    active_count_out(s->of, -1);
    if (status == IBV_WC_SUCCESS) {
        b->done += count_of(w);
        COUNT(l, completed, 1);
    } else {
        COUNT(l, failed, 1);
        if (b->status == IBV_WC_SUCCESS && reason != SCHEMA_REASON_CANCELLED) {
            b->status = (uint8_t)status;
            b->reason = (uint8_t)reason;
            b->failed = first_of(w);
        }
    }
    w->next = b->free_piece;
    b->free_piece = w;
    b->out--;
    if (b->over && b->out == 0)
        end_batch(l, s, b);
    else if (!b->over && wants_pieces(&s->vqps[b->marker->vqp], b))
        lane_vqp_wait_for(l, &s->vqps[b->marker->vqp], WAIT_BATCHES);
}

void lane_batch_request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                             uint32_t reason)
{
    if (w->special & SPECIAL_PIECE)
        end_piece(l, w, status, reason);
    else
        end_marker(l, w->session, batch_of(w), status, reason);
}

/* ---- its beginning */

static struct wr *take_marker(struct session *s, const struct operation *op,
                              const struct schema_sq_desc *d)
{
    struct wr *w = s->free_wr;
    s->free_wr = w->next;
    session_count(&s->inflight, 1);
    active_count_out(s->of, 1);
    memset(w, 0, offsetof(struct wr, inline_data));
    w->session = s;
    w->op = op;
    w->fab.sg_list = w->sge;
    w->kind = WR_WORKER;
    w->wr_id = d->batch.post.wr_id;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->signaled = 1;
    w->refused = SCHEMA_REASON_BATCH; /* so it is never posted, whatever it stands for */
    return w;
}

static void queue_behind(struct vqp *q, struct wr *w)
{
    queue_push(&q->queue, w);
    session_count(&q->session->memory->shown.queued, 1);
}

void lane_batch_post(struct lane *l, struct session *s, const struct operation *op,
                     const struct schema_sq_desc *d)
{
    struct vqp *q = &s->vqps[d->vqp];
    struct batch *b = lane_batch_find(s, d->batch.post.number, d->batch.post.gen);
    struct wr *marker = take_marker(s, op, d);
    if (q->state == VQP_FREE || d->vqp_gen != q->gen) {
        const uint32_t reason = q->denied != 0 ? q->denied : SCHEMA_REASON_NOT_CONNECTED;
        q->gen = q->state == VQP_FREE ? d->vqp_gen : q->gen; /* as of any request */
        COUNT(l, refused, 1);
        if (b != NULL && b->state == BATCH_READY)
            show_refused(s, d->batch.post.number, reason);
        lane_session_complete(l, marker, IBV_WC_LOC_QP_OP_ERR, reason);
        return;
    }
    if (b == NULL || b->state != BATCH_READY) {
        lane_vqp_submit(l, q, marker);
        return;
    }
    lane_batch_move(b, BATCH_POSTED);
    marker->special = SPECIAL_BATCH;
    marker->index = d->batch.post.number;
    b->marker = marker;
    b->at = (struct batch_at){.slab = b->first};
    b->done = 0;
    b->failed = SCHEMA_BATCH_NONE;
    b->status = b->reason = b->cancelled = b->over = 0;
    show_begin(s, d->batch.post.number, b);
    lane_batch_pace_begin(l);
    const bool waits = q->queue.head != NULL;
    struct wr_queue made = make_pieces(l, s, b);
    session_count(&s->memory->shown.queued, (int)made.count);
    queue_append(&q->queue, &made);
    queue_behind(q, marker);
    if (!waits)
        lane_vqp_wait_for(l, q, WAIT_BATCHES);
}

void lane_batch_cancel(struct lane *l, struct session *s, struct batch *b)
{
    if (b->state != BATCH_POSTED || b->cancelled)
        return;
    b->cancelled = 1;
    uint32_t slab = b->slabs.first;
    const uint32_t each = BATCH_SLAB_BYTES / (uint32_t)sizeof(struct wr);
    for (uint32_t i = 0; i < b->pieces; i++) {
        if (i > 0 && i % each == 0)
            slab = l->batches.next[slab];
        /* What is out ends as it does. */
        ((struct wr *)batch_slab(&l->batches, slab))[i % each].refused = SCHEMA_REASON_CANCELLED;
    }
    struct vqp *q = &s->vqps[b->marker->vqp];
    const struct wr *head = q->queue.head;
    if (head != NULL && (head->special & SPECIAL_PIECE) && batch_of(head) == b)
        lane_vqp_wait_for(l, q, WAIT_PASS);
}
