/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/near_messages.h"

#include <string.h>

#include "base/assert.h"
#include "message_state.h"
#include "receive/port_admission.h"
#include "receive/usual_messages.h"
#include "request/raises.h"
#include "request/reply.h"
#include "schedule/near_sends.h"
#include "schedule/send_posting.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "vqp_state.h"

enum {
    TURN = 4 * 1024,        /* bytes of a tenant's VQP, and the rest of a message, at a turn */
    TURN_LARGE = 16 * 1024, /* of one that is not small, which has no more than that of a turn */
    LOOK = 512,             /* as so many counts a look at one that waits for another one */
    LOOKS_TURN = 7,         /* so many in vain, on end: it has its tenant's next turn too */
    LOOKS = 64,             /* and so many: it goes by the device */
    PLACE_BITS = 14         /* of a mark: a VQP's place, + 1; above them which large one it is */
};

/* A stream between two VQPs of this lane, for as long as nothing else is done. */
struct near_stream {
    struct vqp_messages *from;
    struct stream_receiver *to;
    struct vqp *hearer; /* or a counter, of that session */
    struct counter *counter;
    struct session *owner;
    struct schema_cqe_sender sender;
    bool is_foreign;
};

/* ---- payload */

/* Where the lane has what the device knows by that key and address. NULL: nowhere, or where it may
 * be kept waiting. */
static const uint8_t *find_piece(const struct session *s, const struct ibv_sge *piece)
{
    for (uint32_t i = 0; i < s->arenas; i++) {
        const struct lane_arena *a = &s->arena[i];
        const uint64_t offset = piece->addr - a->iova;
        if (piece->lkey == a->lkey && offset <= a->bytes && piece->length <= a->bytes - offset)
            return s->touch[i] != NULL ? s->touch[i] + offset : NULL;
    }
    return NULL;
}

/* Its pieces, as the lane has them. False: one of them it has not. */
static bool find_pieces(const struct wr *w, const uint8_t *at[SCHEMA_MAX_SGE])
{
    for (int i = 1; i < w->fab.num_sge && !(w->remote_addr & SEND_INLINE); i++)
        if ((at[i] = find_piece(w->session, &w->sge[i])) == NULL)
            return false;
    return true;
}

/* Where in a receive the next byte goes. */
struct receive_cursor {
    const struct session *s;
    const struct ibv_sge *sge;
    uint32_t used;
};

/* Both may be the same memory, and its worker may write there meanwhile. */
static void put_piece(struct receive_cursor *c, const uint8_t *from, uint32_t bytes)
{
    while (bytes > 0) {
        const uint32_t left = c->sge->length - c->used, part = bytes < left ? bytes : left;
        memmove(c->s->touch[c->sge->lkey] + c->sge->addr + c->used, from, part);
        from += part;
        bytes -= part;
        c->used += part;
        if (c->used == c->sge->length) {
            c->sge++;
            c->used = 0;
        }
    }
}

/* Behind the first `bytes`. It has room for more. */
static struct receive_cursor find_place(const struct wr *receive, uint32_t bytes)
{
    struct receive_cursor c = {.s = receive->session, .sge = receive->sge};
    for (; bytes >= c.sge->length; c.sge++)
        bytes -= c.sge->length;
    c.used = bytes;
    return c;
}

/* The lane may touch all that a large one has. */
static bool has_parts(const struct wr *w)
{
    const struct large_send *n = large_send_of(w);
    bool has = true;
    for (uint32_t i = 0; i < n->parts; i++)
        has &= w->session->touch[n->part[i].arena] != NULL;
    return has;
}

/* `bytes` of a large one behind the first `done`. */
static void copy_part(const struct wr *w, const struct wr *receive, uint32_t done, uint32_t bytes)
{
    struct receive_cursor c = find_place(receive, done);
    for (const struct schema_sge *from = large_send_of(w)->part; bytes > 0; from++) {
        if (done >= from->length) {
            done -= from->length;
            continue;
        }
        const uint32_t left = from->length - done, part = bytes < left ? bytes : left;
        put_piece(&c, w->session->touch[from->arena] + from->offset + done, part);
        bytes -= part;
        done = 0;
    }
}

/* It has room for all of it. */
static void copy_payload(const struct wr *w, const uint8_t *const at[SCHEMA_MAX_SGE],
                         const struct wr *receive)
{
    struct receive_cursor c = {.s = receive->session, .sge = receive->sge};
    if (w->remote_addr & SEND_INLINE)
        put_piece(&c, w->inline_data, (uint32_t)w->length);
    for (int i = 1; i < w->fab.num_sge && !(w->remote_addr & SEND_INLINE); i++)
        put_piece(&c, at[i], w->sge[i].length);
}

/* ---- streams */

/* Whoever took the last one, if that is known to hear this one too. */
static bool find_known(const struct lane *l, const struct vqp_messages *t, struct near_stream *n)
{
    const struct near_hearer *k = &t->near.hearer;
    struct vqp_messages *by = k->by;
    if (by == NULL || by->q == NULL || by->sender.name != k->name ||
        k->unbound != l->messages->ports.unbound || by->q->session->state != SESSION_LIVE ||
        k->stream->name != t->sender.name || k->stream->from != t->sender.to)
        return false;
    n->to = k->stream;
    n->hearer = by->q;
    return true;
}

/* As any message finds its receiver. */
static bool find_anew(struct lane *l, struct vqp_messages *t, struct near_stream *n)
{
    struct schema_message m;
    struct admission admission;
    lane_send_describe(t, &m);
    n->to = lane_exchange_find_stream(&l->messages->exchange, t->sender.to, t->sender.name);
    if (n->to == NULL)
        return false;
    if (m.kind == SCHEMA_MESSAGE_TO_COUNTER) {
        n->counter = lane_counter_find(l, &m, &n->owner);
        return n->counter != NULL;
    }
    n->hearer = lane_admission_find(l, &m, &admission);
    if (n->hearer == NULL)
        return false;
    n->is_foreign = lane_admission_is_foreign(n->hearer, m.from_tenant);
    t->near.hearer = (struct near_hearer){.by = NULL};
    if (!n->is_foreign)
        t->near.hearer = (struct near_hearer){.stream = n->to,
                                              .by = n->hearer->messages,
                                              .name = n->hearer->messages->sender.name,
                                              .unbound = l->messages->ports.unbound};
    return true;
}

/* False: it is not as it was, or hears nobody now. */
static bool find_stream(struct lane *l, struct vqp_messages *t, struct near_stream *n)
{
    const struct session *s = t->q->session;
    *n = (struct near_stream){.from = t};
    if (s->state != SESSION_LIVE || t->sender.to->incarnation != l->config.incarnation ||
        (!find_known(l, t, n) && !find_anew(l, t, n)))
        return false;
    const struct stream_receiver *r = n->to;
    n->sender = (struct schema_cqe_sender){
        .incarnation = r->from->incarnation, .tenant = s->tenant, .vqp = r->name};
    memcpy(n->sender.gid, r->from->gid, sizeof n->sender.gid);
    return (r->failed | r->reads | r->stops | r->ended) == 0 && r->in.next == t->near.next;
}

/* What becomes of one. */
enum near_end {
    NEAR_TAKEN,
    NEAR_PART,   /* of a large one so much is there as had its turn: the rest comes next */
    NEAR_BEHIND, /* another VQP's large one, which is being copied to that receive */
    NEAR_REFUSED /* it goes by the device */
};

/* Whether a receive of the hearer's may be had, as of one that arrives; while who comes by the
 * device finds none, all go that way. */
static bool hearer_takes(struct lane *l, const struct near_stream *n, uint32_t length)
{
    struct vqp_messages *h = n->hearer->messages;
    if (!n->is_foreign)
        lane_aside_hear(&n->to->aside, &h->aside, n->to->in.next);
    return !lane_admission_is_short(l, n->hearer) && lane_admission_has_receive(l, h, n->to) &&
           receive_holds(h->receives.head, length) &&
           lane_session_has_two_places(n->hearer->session);
}

/* A receive that has a part of a large one bears that one's mark until it is taken, or posted anew:
 * the place of the VQP that it is from, and a number, so that it is no other of that VQP's, which
 * may have been given up, or begun elsewhere. The receive stays where it is: whoever comes by the
 * device may take it, and that large one then goes by the device too. */
static uint32_t begin_mark(struct lane *l, const struct vqp_messages *t)
{
    const uint32_t place = (uint32_t)(t - l->messages->vqps) + 1;
    BASE_ASSERT(place < 1u << PLACE_BITS);
    return ++l->messages->nears.larges << PLACE_BITS | place;
}

/* Whether another VQP's has begun there, and goes on. */
static bool is_anothers(const struct lane *l, const struct vqp_messages *t,
                        const struct wr *receive)
{
    const uint32_t place = receive->vkey & ((1u << PLACE_BITS) - 1);
    const struct vqp_messages *other = place > 0 ? &l->messages->vqps[place - 1] : t;
    return other != t && other->near.done != 0 && other->near.mark == receive->vkey;
}

/* Of a large one: no more than `most` bytes, of which *copied are there then. */
static enum near_end copy_large(struct lane *l, struct vqp_messages *t, const struct wr *w,
                                struct wr *receive, uint32_t most, uint32_t *copied)
{
    const uint32_t left = (uint32_t)large_send_of(w)->bytes - t->near.done;
    const uint32_t bytes = left < most ? left : most;
    if ((t->near.done != 0 && receive->vkey != t->near.mark) || !has_parts(w))
        return NEAR_REFUSED;
    if (t->near.done == 0)
        receive->vkey = t->near.mark = begin_mark(l, t);
    copy_part(w, receive, t->near.done, bytes);
    *copied = bytes;
    t->near.done = bytes < left ? t->near.done + bytes : 0;
    return bytes < left ? NEAR_PART : NEAR_TAKEN;
}

/* Of a worker: *copied bytes of it are there then. */
static enum near_end hear_one(struct lane *l, const struct near_stream *n, const struct wr *w,
                              uint32_t most, uint32_t *copied)
{
    struct wr_queue *receives = &n->hearer->messages->receives;
    const uint8_t *at[SCHEMA_MAX_SGE];
    const uint32_t length = (uint32_t)near_length(w);
    if (!hearer_takes(l, n, length))
        return NEAR_REFUSED;
    if (is_anothers(l, n->from, receives->head))
        return NEAR_BEHIND;
    if (w->special & SPECIAL_LARGE) {
        const enum near_end end = copy_large(l, n->from, w, receives->head, most, copied);
        if (end != NEAR_TAKEN)
            return end;
    } else {
        if (!find_pieces(w, at))
            return NEAR_REFUSED;
        copy_payload(w, at, receives->head);
        *copied = length;
    }
    struct wr *receive = queue_pop(receives);
    receive->vkey = 0;
    receive->length = length;
    lane_session_deliver(l, receive, (w->remote_addr & SEND_IMM) != 0, w->fab.imm_data, &n->sender);
    return NEAR_TAKEN;
}

static enum near_end take_one(struct lane *l, const struct near_stream *n, const struct wr *w,
                              uint32_t most, uint32_t *copied)
{
    if (n->counter != NULL) {
        lane_counter_raise(l, n->owner, n->counter);
    } else {
        const enum near_end end = hear_one(l, n, w, most, copied);
        if (end != NEAR_TAKEN)
            return end;
    }
    lane_exchange_took_near(n->to, l->now_ns);
    COUNT(l, messages_received, 1);
    COUNT(l, messages_near, 1);
    return NEAR_TAKEN;
}

/* The first of t's that waits. */
static struct wr *first_of(const struct vqp_messages *t)
{
    struct wr *w = t->kept.head;
    while (w != NULL && w->vkey != t->near.next)
        w = w->next;
    return w;
}

/* What a datagram would say. */
static void tell_sender(struct lane *l, struct vqp_messages *t, uint32_t number, uint8_t kind)
{
    const struct schema_note n = {.stream = t->sender.name, .number = number, .kind = kind};
    lane_sends_hear(l, t, &n);
}

/* Whether w is taken behind so many bytes of its turn, which has `left`. A large one that has begun
 * keeps others from its receive until all of it is there: it is the first of its turn, or ends in
 * it. So whoever sends them without end leaves the receive between two to whose turn is next. */
static bool may_begin(const struct wr *w, uint32_t before, uint32_t left)
{
    return (w->special & SPECIAL_LARGE) == 0 || before == 0 || near_length(w) <= left;
}

/* Where turns fall so that one finds another's each time: once in some times it has its tenant's
 * next turn too, so that they fall otherwise. And it does not wait for ever: by the device it takes
 * that one's receive. */
static enum near_end bound_looks(struct vqp_messages *t, enum near_end took, uint32_t counted)
{
    struct near_vqps *all = &t->near.tenant->vqps;
    t->near.looks = took == NEAR_BEHIND && counted == 0 ? t->near.looks + 1 : 0;
    if (t->near.looks == LOOKS)
        return NEAR_REFUSED;
    if (t->near.looks % LOOKS_TURN == LOOKS_TURN - 1) {
        TAILQ_REMOVE(all, t, near.by_near);
        TAILQ_INSERT_HEAD(all, t, near.by_near);
    }
    return took;
}

/* Returns as how many bytes that counts. Then it has been told, and may be anything. */
static uint32_t take_some(struct lane *l, struct vqp_messages *t, uint32_t most)
{
    struct near_stream n;
    const uint32_t end = t->sender.out.next;
    uint32_t bytes = 0, counted = 0, next = t->near.next;
    uint64_t payload = 0;
    enum near_end took = find_stream(l, t, &n) ? NEAR_TAKEN : NEAR_REFUSED;
    for (const struct wr *w = first_of(t); took == NEAR_TAKEN && w != NULL && next != end &&
                                           bytes < most && may_begin(w, bytes, most - bytes);
         w = w->next) {
        uint32_t copied = 0;
        took = take_one(l, &n, w, most - bytes, &copied);
        bytes += copied;
        if (took == NEAR_TAKEN) {
            bytes += SCHEMA_MESSAGE_BYTES;
            counted += near_counts(near_length(w));
            payload += near_length(w);
            next++;
        }
    }
    took = bound_looks(t, took, counted);
    if (counted > 0) {
        lane_near_took(l, t, next, counted, payload);
        tell_sender(l, t, next, SCHEMA_NOTE_TAKEN);
    }
    if (took == NEAR_REFUSED || (took == NEAR_TAKEN && counted == 0)) {
        lane_near_refused(l, t);
        tell_sender(l, t, next, SCHEMA_NOTE_ANSWER);
    }
    return took == NEAR_BEHIND ? bytes + LOOK : bytes;
}

/* Whoever waits alone has all. */
static uint32_t turn_of(const struct lane *l, const struct vqp_messages *t, uint32_t left)
{
    const struct wr *w = first_of(t);
    const uint32_t turn = w != NULL && (w->special & SPECIAL_LARGE) ? TURN_LARGE : TURN;
    const bool is_alone = TAILQ_FIRST(&l->messages->nears.waiting) == t->near.tenant &&
                          TAILQ_FIRST(&t->near.tenant->vqps) == t;
    return is_alone || left < turn ? left : turn;
}

void lane_near_go_on(struct lane *l, uint32_t most)
{
    struct near_list *all = &l->messages->nears;
    struct near_tenant *n;
    for (uint32_t bytes = 0; bytes < most && (n = TAILQ_FIRST(&all->waiting)) != NULL;) {
        struct vqp_messages *t = TAILQ_FIRST(&n->vqps);
        if (TAILQ_NEXT(n, by_turn) != NULL) {
            TAILQ_REMOVE(&all->waiting, n, by_turn);
            TAILQ_INSERT_TAIL(&all->waiting, n, by_turn);
        }
        if (TAILQ_NEXT(t, near.by_near) != NULL) {
            TAILQ_REMOVE(&n->vqps, t, near.by_near);
            TAILQ_INSERT_TAIL(&n->vqps, t, near.by_near);
        }
        bytes += take_some(l, t, turn_of(l, t, most - bytes));
    }
}
