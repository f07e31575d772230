/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/send_posting.h"

#include <string.h>

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/liveness.h"
#include "resolve/path.h"
#include "schedule/large_sends.h"
#include "schedule/near_sends.h"
#include "schedule/sends.h"
#include "schedule/turn_bytes.h"
#include "schedule/unseen_writes.h"
#include "schedule/usual.h"
#include "schedule/window_run.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"

/* ---- headers */

static void *header_at(const struct lane *l, uint32_t place)
{
    const struct lane_messages *m = &l->res.messages;
    return (uint8_t *)m->memory.addr + lane_messages_bytes(m->receives) -
           (uint64_t)(LANE_HEADERS - place) * LANE_HEADER_PLACE;
}

static struct ibv_sge header_piece(const struct lane *l, const uint8_t *at, uint32_t bytes)
{
    const struct lane_messages *r = &l->res.messages;
    const uint64_t offset = (uint64_t)(at - (const uint8_t *)r->memory.addr);
    return (struct ibv_sge){.addr = r->iova + offset, .length = bytes, .lkey = r->lkey};
}

/* Its header, and what was inline behind it. */
static void write_header(struct lane *l, struct vqp *q, struct wr *w, struct schema_message *m)
{
    uint8_t *at = header_at(l, w->index);
    uint32_t bytes = SCHEMA_MESSAGE_BYTES;
    if (w->special & SPECIAL_LARGE)
        bytes += lane_large_send_write(q, w, messages_clock(l), m, at + SCHEMA_MESSAGE_BYTES);
    schema_message_write(m, at);
    if (w->remote_addr & SEND_INLINE) {
        memcpy(at + SCHEMA_MESSAGE_BYTES, w->inline_data, w->length);
        bytes += (uint32_t)w->length;
    }
    w->sge[0] = header_piece(l, at, bytes);
}

static_assert((int)SCHEMA_SEND_TO_PORT == SCHEMA_MESSAGE_TO_PORT &&
                  (int)SCHEMA_SEND_TO_VQP == SCHEMA_MESSAGE_TO_VQP &&
                  (int)SCHEMA_SEND_TO_COUNTER == SCHEMA_MESSAGE_TO_COUNTER,
              "one is the other");

/* As all of a stream's say it. Field by field, since to clear it takes as long as all of this. */
void lane_send_describe(const struct vqp_messages *t, struct schema_message *m)
{
    const struct stream_sender *k = &t->sender;
    m->kind = t->to_kind;
    m->with_imm = m->parts = m->of_write = 0;
    m->written = m->imm = 0;
    m->stream = k->name;
    m->to_incarnation = k->to->incarnation;
    m->to = t->to;
    m->to_tenant = t->to_tenant;
    m->secret = t->secret;
    m->from_tenant = t->q->session->tenant;
}

/* What is to be known of it when it comes back. */
static inline void keep_credit(struct wr *w, struct vqp_messages *t, uint32_t epoch,
                               uint32_t credit, uint32_t peer)
{
    w->fab.compare_add = (uintptr_t)t;
    w->fab.swap = (uint64_t)epoch << 32 | credit;
    w->fab.remote_addr = peer;
}

/* ---- one */

void lane_sends_post(struct lane *l, struct vqp *q, struct wr *w)
{
    struct vqp_messages *t = q->messages;
    struct stream_sender *k = &t->sender;
    struct messages *all = l->messages;
    struct schema_message m;
    lane_send_describe(t, &m);
    m.with_imm = (w->remote_addr & SEND_IMM) != 0;
    m.opens = !k->known && w->vkey == k->out.first;
    m.length = (uint32_t)w->length;
    m.number = w->vkey;
    m.imm = w->fab.imm_data;
    m.of_write = (w->remote_addr & SEND_OF_WRITE) != 0;
    m.written = (uint32_t)(w->remote_addr >> SEND_WRITTEN_SHIFT);
    lane_exchange_take_credits(&all->exchange, k, 1, l->now_ns, &m);
    const bool has_header = lane_places_take(&all->header_places, t->share);
    BASE_ASSERT(has_header);
    w->index = all->header_free[--all->header_count];
    keep_credit(w, t, m.epoch, m.credit, lane_exchange_place(&all->exchange, k->to));
    write_header(l, q, w, &m);
    const bool is_new = k->out.next == k->out.posted;
    lane_stream_out_posted(&k->out, messages_clock(l));
    if (is_new)
        lane_sender_stamp(k, l->now_ns);
    t->out++;
    t->near.wired = k->out.posted;
    large_sends_note(t, w->vkey, (w->special & SPECIAL_LARGE) != 0);
}

/* ---- runs */

static uint32_t lower_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Its receiver is the life of the endpoint that it was, and hears. */
static bool receiver_is_usual(struct lane *l, const struct vqp *q)
{
    const struct message_peer *c = q->messages->sender.to;
    const struct peer *p = &l->peers[q->peer_slot];
    return c != NULL && c->incarnation == lane_peer_shared(l, q->peer_slot)->incarnation &&
           !c->over && !c->mute && c->qpn != 0 && p->ud_qpn != 0 &&
           (!p->has_rc || l->res.messages.asks_numbers);
}

/* It is open, all that it had has gone, and nothing of it waits, goes again, or is large. */
static bool stream_is_usual(struct lane *l, const struct vqp_messages *t)
{
    const struct stream_sender *k = &t->sender;
    return t->to_kind != 0 && t->to_kind != SCHEMA_SEND_TO_COUNTER && k->known && !t->rewinds &&
           t->failed == 0 && t->bad == 0 && k->wait_ns == 0 && k->out.next == k->out.end &&
           !k->out.one_by_one && messages_clock(l) >= k->out.again_ns &&
           large_sends_before(t, k->out.next) == 0;
}

/* For how many there is room at once: in the stream, of credits, of slots, and in windows. */
static uint32_t count_room(struct lane *l, struct send_run *r, uint32_t most)
{
    const struct stream_sender *k = &r->q->messages->sender;
    const struct physical_qp *p = r->p;
    const uint32_t slots = p->tail - p->head < p->pass_ops ? p->pass_ops - (p->tail - p->head) : 0;
    most = lower_of(lower_of(most, slots), STREAM_OPEN - (k->out.end - k->out.first));
    if (most > 0)
        most = lower_of(most, lane_exchange_credits(&l->messages->exchange, k->to, l->now_ns));
    r->room = (int64_t)(p->pass_bytes - p->bytes);
    if (most > 0 && WINDOW_GET(l->windows_on)) {
        const struct window_room room = lane_windows_room(l, r->q);
        most = room.ops < most ? (uint32_t)(room.ops > 0 ? room.ops : 0) : most;
        r->room = room.bytes < r->room ? room.bytes : r->room;
    }
    return most;
}

/* What the last run said: of that stream, to that life of its peer, with credit of that account.
 * All else that headers have in common is its stream's (lane_sends_address()). */
static bool like_holds(const struct vqp_messages *t)
{
    const struct stream_sender *k = &t->sender;
    const uint64_t *word = t->like.word;
    return word[SCHEMA_LIKE_STREAM] == k->name && word[SCHEMA_LIKE_CREDIT] == k->to->purse.epoch &&
           word[SCHEMA_LIKE_NUMBER] == (uint64_t)k->to->incarnation << 32;
}

static __attribute__((noinline)) void learn_like(struct vqp_messages *t)
{
    struct schema_message m;
    lane_send_describe(t, &m);
    lane_exchange_next_credit(t->sender.to, &m);
    t->like = schema_message_like_of(&m);
}

/* To another VQP of this lane: of what a device asks for there is nothing. */
static bool begin_near(const struct vqp_messages *t, uint32_t most, struct send_run *r)
{
    const struct stream_out *out = &t->sender.out;
    const uint32_t waiting = out->end - out->first;
    r->number = out->end;
    r->most = lower_of(most, NEAR_MOST - lower_of(waiting, NEAR_MOST));
    r->room = NEAR_EACH - (int64_t)t->near.bytes;
    return r->most > 0;
}

bool lane_send_run_begin(struct lane *l, struct vqp *q, uint32_t most, struct send_run *r)
{
    struct vqp_messages *t = q->messages;
    if (q->state != VQP_ADDRESSED || t == NULL || q->queue.head != NULL || !peer_is_usual(l, q) ||
        !stream_is_usual(l, t) || !receiver_is_usual(l, q))
        return false;
    r->q = q;
    r->count = r->behind = 0;
    r->bytes = 0;
    const enum near_way way = lane_near_ask(l, q);
    r->is_near = way == NEAR_GOES;
    if (way != NEAR_BY_DEVICE)
        return r->is_near && begin_near(t, most, r);
    if (!flow_goes(l, q->flow) || q->session->caps->max_sge < 2 || l->config.streams ||
        message_is_ahead(l, q))
        return false;
    r->p = flow_phys(l, q->flow);
    if (r->p == NULL || !physical_qp_works(r->p))
        return false;
    most = count_room(l, r, most);
    r->most = most > 0 ? lane_places_take_some(&l->messages->header_places, t->share, most) : 0;
    if (r->most == 0)
        return false;
    const struct credit_purse *purse = &t->sender.to->purse;
    if (!like_holds(t))
        learn_like(t);
    r->like = &t->like;
    r->number = t->sender.out.end;
    r->epoch = purse->epoch;
    r->credit = purse->next;
    r->place = lane_exchange_place(&l->messages->exchange, t->sender.to);
    return true;
}

bool lane_send_run_takes(const struct lane *l, const struct send_run *r, uint64_t bytes)
{
    return r->count < r->most && (int64_t)(r->bytes + bytes) <= r->room &&
           turn_takes(l, r->q->session, bytes);
}

static void post_near(struct send_run *r, struct wr *w)
{
    struct vqp_messages *t = r->q->messages;
    w->fab.num_sge = 1 + (w->length != 0);
    w->fab.compare_add = (uintptr_t)t;
    w->back = BACK_ENDED;
    queue_push(&t->kept, w);
    r->number++;
    r->bytes += w->length;
    r->count++;
}

void lane_send_run_post(struct lane *l, struct send_run *r, struct wr *w)
{
    struct messages *all = l->messages;
    struct physical_qp *p = r->p;
    w->vkey = r->number;
    w->remote_addr = SEND_NUMBERED;
    if (r->is_near) {
        post_near(r, w);
        return;
    }
    w->index = all->header_free[--all->header_count];
    uint8_t *at = header_at(l, w->index);
    schema_message_write_like(r->like, (uint32_t)w->length, r->credit, r->number, at);
    w->sge[0] = header_piece(l, at, SCHEMA_MESSAGE_BYTES);
    w->fab.num_sge = 1 + (w->length != 0);
    flow_address(l, r->q->flow, r->q->peer_slot, w);
    keep_credit(w, r->q->messages, r->epoch, r->credit++, r->place);
    r->number++;
    if (p->chain == NULL) {
        physical_qp_begin_chain(l, p, w);
    } else {
        physical_qp_link(l, p, w);
        r->behind++;
    }
    *ring_at(l, p, p->tail++) = w;
    r->bytes += w->length;
    r->count++;
}

/* As lane_exchange_take_credits(), by one who waits for none. */
static void use_credits(struct message_peer *c, uint32_t count, uint64_t now_ns)
{
    (void)lane_credit_take_some(&c->purse, count);
    c->used_ns = now_ns;
    c->out += count;
}

static void end_near(struct lane *l, const struct send_run *r)
{
    struct stream_out *out = &r->q->messages->sender.out;
    if (r->count == 0)
        return;
    lane_stream_out_posted_all(out, r->count, messages_clock(l));
    lane_near_wait(l, r->q, r->number - r->count, r->count,
                   (uint32_t)r->bytes + r->count * SCHEMA_MESSAGE_BYTES);
}

void lane_send_run_end(struct lane *l, struct send_run *r)
{
    struct vqp *q = r->q;
    struct vqp_messages *t = q->messages;
    if (r->is_near) {
        end_near(l, r);
        return;
    }
    if (r->most != r->count)
        lane_places_give_some(&l->messages->header_places, t->share, r->most - r->count);
    if (r->count == 0)
        return;
    use_credits(t->sender.to, r->count, l->now_ns);
    lane_stream_out_posted_all(&t->sender.out, r->count, messages_clock(l));
    lane_sender_stamp(&t->sender, l->now_ns);
    messages_join_actives(l, t);
    t->out += r->count;
    t->near.wired = t->sender.out.posted;
    large_sends_note(t, r->number, false);
    flow_posted(l, q->flow, r->count);
    q->outstanding += r->count;
    vqp_sent(q, r->count);
    r->p->bytes += r->bytes;
    r->p->posted += r->bytes + (uint64_t)LANE_POST_BYTES * r->count;
    session_count_posted(&q->session->memory->shown, r->count, r->bytes);
    l->did += r->count;
    COUNT(l, posted, r->count);
    if (r->behind > 0)
        COUNT(l, chained_behind, r->behind);
    if (WINDOW_GET(l->windows_on))
        lane_windows_enter_run(l, q, r->count, r->bytes);
}
