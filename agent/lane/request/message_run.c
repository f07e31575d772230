/* SPDX-License-Identifier: Apache-2.0 */
#include "request/message_run.h"

#include "message_state.h"
#include "request/active.h"
#include "request/messages.h"
#include "request/ring_copy.h"
#include "schedule/send_posting.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "transmit/operation.h"
#include "transmit/wr.h"
#include "vqp_state.h"

/* One piece of what comes with its header, and no flag that asks for more. */
static bool is_plain(const struct schema_sq_desc *d)
{
    return d->num_sge == 1 && slot_count(d) == 1 && (d->flags & ~SCHEMA_OP_SIGNALED) == 0;
}

/* It is in its session's memory. */
static inline bool has_place(const struct session *s, const struct schema_sq_desc *d)
{
    const uint64_t offset = d->post.offset;
    const uint32_t length = d->post.length, arena = d->post.arena;
    return arena < s->arenas && offset <= s->arena[arena].bytes &&
           length <= s->arena[arena].bytes - offset;
}

/* What every request has. */
static inline struct wr *fill_request(struct session *s, const struct operation *op,
                                      const struct schema_sq_desc *d)
{
    struct wr *w = s->free_wr;
    s->free_wr = w->next;
    w->session = s;
    w->op = op;
    wr_part(w);
    w->kind = WR_WORKER;
    w->wr_id = d->post.wr_id;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->refused = 0;
    w->fab.opcode = op->opcode;
    return w;
}

static void count_taken(struct session *s, uint32_t count)
{
    session_count(&s->inflight, (int)count);
    active_count_out(s->of, (int)count);
}

/* ---- SENDs */

static inline struct wr *fill_send(struct session *s, const struct operation *op,
                                   const struct schema_sq_desc *d)
{
    const struct lane_arena *a = &s->arena[d->post.arena];
    struct wr *w = fill_request(s, op, d);
    w->signaled = d->flags & SCHEMA_OP_SIGNALED;
    w->special = SPECIAL_SEND;
    w->length = d->post.length;
    w->sge[1] = (struct ibv_sge){
        .addr = a->iova + d->post.offset, .length = d->post.length, .lkey = a->lkey};
    w->fab.sg_list = w->sge;
    w->fab.send_flags = w->signaled ? IBV_SEND_SIGNALED : 0;
    w->fab.imm_data = d->post.imm;
    w->fab.key = (struct fab_key){.rkey = 0};
    return w;
}

static uint32_t take_sends(struct lane *l, struct session *s, uint32_t head, uint32_t most,
                           struct schema_sq_desc *d)
{
    const struct operation *op = operation_of(d->op);
    const uint64_t header = slot_header(d);
    struct send_run r;
    if (!lane_send_run_begin(l, &s->vqps[d->vqp], most, &r))
        return 0;
    do {
        if (s->free_wr == NULL || d->post.length > SCHEMA_MESSAGE_MOST || !has_place(s, d) ||
            !lane_send_run_takes(l, &r, d->post.length))
            break;
        lane_send_run_post(l, &r, fill_send(s, op, d));
        if (r.count == most)
            break;
        if (most - r.count > SLOTS_AHEAD)
            prefetch_slot(s, head + r.count + SLOTS_AHEAD);
        copy_slot(s, head + r.count, d);
    } while (slot_header(d) == header);
    lane_send_run_end(l, &r);
    if (r.count > 0)
        count_taken(s, r.count);
    return r.count;
}

/* ---- RECVs */

/* Their pieces are left as the worker names them. */
static uint32_t take_receives(struct lane *l, struct session *s, uint32_t head, uint32_t most,
                              struct schema_sq_desc *d)
{
    const struct operation *op = operation_of(d->op);
    const uint64_t header = slot_header(d);
    struct vqp_messages *t = s->vqps[d->vqp].messages;
    uint32_t count = 0;
    if (t == NULL)
        t = lane_receive_messages(l, s, d);
    if (t == NULL)
        return 0;
    do {
        if (s->free_wr == NULL || !has_place(s, d) || s->touch[d->post.arena] == NULL)
            break;
        struct wr *w = fill_request(s, op, d);
        w->flow = NULL;
        w->remote_addr = w->length = 0;
        w->vkey = 0;
        w->special = 0;
        w->signaled = 1;
        w->sge[0] = (struct ibv_sge){
            .addr = d->post.offset, .length = d->post.length, .lkey = d->post.arena};
        w->fab.num_sge = d->post.length != 0;
        queue_push(&t->receives, w);
        if (++count == most)
            break;
        if (most - count > SLOTS_AHEAD)
            prefetch_slot(s, head + count + SLOTS_AHEAD);
        copy_slot(s, head + count, d);
    } while (slot_header(d) == header);
    if (count > 0)
        count_taken(s, count);
    return count;
}

uint32_t lane_message_run(struct lane *l, struct session *s, uint32_t head, uint32_t most,
                          struct schema_sq_desc *d)
{
    const bool sends = d->op == SCHEMA_OP_SEND;
    if ((!sends && d->op != SCHEMA_OP_RECV) || l->messages == NULL || !is_plain(d) ||
        d->vqp >= s->max_vqps || d->vqp_gen != s->vqps[d->vqp].gen)
        return 0;
    return sends ? take_sends(l, s, head, most, d) : take_receives(l, s, head, most, d);
}
