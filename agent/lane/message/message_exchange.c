/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange: streams that are sent, and datagrams. */
#include "message/message_exchange.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "message/exchange_parts.h"
#include "message/self_news.h"

enum { WANTS = 32 /* credits, of one peer at a time */ };

/* ---- as a sender */

static void stop_waiting(struct stream_sender *t)
{
    if (t->wait_ns != 0)
        t->to->waiters--;
    t->wait_ns = 0;
}

void lane_sender_stop(struct exchange *x, struct stream_sender *t)
{
    (void)x;
    if (t->to == NULL)
        return;
    stop_waiting(t);
    if (t->asks)
        TAILQ_REMOVE(&t->to->asks, t, by_asks);
    t->asks = 0;
}

void lane_sender_address(struct exchange *x, struct stream_sender *t, struct message_peer *to)
{
    lane_sender_stop(x, t);
    if (t->to != NULL)
        t->to->senders--;
    t->to = to;
    if (to != NULL)
        to->senders++;
}

void lane_sender_end(struct exchange *x, struct stream_sender *t)
{
    struct message_peer *to = t->to;
    lane_sender_address(x, t, NULL);
    if (to == NULL || t->out.posted == 0 || to->ended_count == PEER_ENDED)
        return;
    to->ended[to->ended_count++] = t->name;
    set_due(x, to);
}

/* A lane that stood still for long has credits that others have been given meanwhile. */
uint32_t lane_exchange_credits(const struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (now_ns - c->used_ns >= x->config.forget_ns / 2)
        (void)lane_credit_return(&c->purse);
    return lane_credit_left(&c->purse);
}

bool lane_exchange_has_credit(struct exchange *x, struct stream_sender *t, uint64_t now_ns)
{
    struct message_peer *c = t->to;
    if (lane_exchange_credits(x, c, now_ns) > 0)
        return true;
    c->waiters += t->wait_ns == 0;
    t->wait_ns = t->wait_ns != 0 ? t->wait_ns : now_ns;
    lane_credit_look(&c->purse, now_ns, x->config.bound_ns);
    lane_peer_ask_for_credit(x, c, now_ns);
    return false;
}

void lane_exchange_take_credits(struct exchange *x, struct stream_sender *t, uint32_t count,
                                uint64_t now_ns, struct schema_message *m)
{
    struct message_peer *c = t->to;
    (void)x;
    stop_waiting(t);
    lane_exchange_next_credit(c, m);
    (void)lane_credit_take_some(&c->purse, count);
    c->used_ns = now_ns;
    c->out += count;
}

void lane_exchange_credit_back(struct exchange *x, uint32_t peer, uint32_t epoch, uint32_t number,
                               bool broke, uint64_t now_ns)
{
    BASE_ASSERT(peer < x->config.peers && x->all[peer].out > 0);
    struct message_peer *c = &x->all[peer];
    c->out--;
    if (broke)
        lane_credit_broke(&c->purse, epoch, number, now_ns);
    else
        lane_credit_over(&c->purse, epoch, number);
}

void lane_sender_ask(struct exchange *x, struct stream_sender *t)
{
    if (!t->asks)
        TAILQ_INSERT_TAIL(&t->to->asks, t, by_asks);
    t->asks = 1;
    set_due(x, t->to);
}

int lane_sender_hear(struct stream_sender *t, const struct schema_note *n, uint64_t now_ns,
                     uint8_t *failed)
{
    int over = 0;
    *failed = 0;
    switch ((enum schema_note_kind)n->kind) {
    case SCHEMA_NOTE_READS:
        over = lane_stream_out_reads(&t->out, n->number, now_ns);
        break;
    case SCHEMA_NOTE_TAKEN:
        over = lane_stream_out_taken(&t->out, n->number, now_ns);
        break;
    case SCHEMA_NOTE_REFUSED:
        over = lane_stream_out_refused(&t->out, n->number, (uint64_t)n->wait_us * 1000, now_ns);
        break;
    case SCHEMA_NOTE_FAILED:
        over = lane_stream_out_taken(&t->out, n->number, now_ns);
        *failed = over >= 0 ? n->status : 0;
        break;
    case SCHEMA_NOTE_ANSWER:
        over = lane_stream_out_answered(&t->out, n->number, now_ns);
        break;
    case SCHEMA_NOTE_UNKNOWN: /* what it took before it forgot was acknowledged long ago */
        t->known = 0;
        return lane_stream_out_answered(&t->out, t->out.first, now_ns);
    case SCHEMA_NOTE_ASK:
    case SCHEMA_NOTE_ENDED:
        return -EPROTO;
    }
    t->known |= over > 0;
    if (t->out.next == t->out.end)
        stop_waiting(t);
    return over;
}

/* ---- datagrams */

static void hear_credit(struct exchange *x, struct message_peer *c, const struct schema_datagram *d,
                        uint64_t now_ns)
{
    const uint32_t left = lane_credit_left(&c->purse);
    const struct credit_said said = {d->account_epoch, d->granted, d->used};
    if (d->account_epoch != 0)
        (void)lane_credit_granted(&c->purse, &said, now_ns, x->config.bound_ns);
    if (lane_credit_left(&c->purse) > left) {
        c->asked = 0;
        c->ask_ns = 0;
        c->used_ns = now_ns;
    }
    if (d->purse_epoch != 0)
        lane_peer_settle(x, c, d->purse_epoch, d->settled, now_ns);
    if (d->wants > 0) {
        if (c->account.epoch == 0)
            lane_peer_open_account(x, c);
        (void)lane_credit_grant(&x->bank, &c->account, d->wants < WANTS ? d->wants : WANTS);
        set_due(x, c);
    }
}

struct message_peer *lane_exchange_hear(struct exchange *x, const struct schema_datagram *d,
                                        uint64_t now_ns)
{
    if (d->pool != x->config.pool ||
        (d->to_incarnation != 0 && d->to_incarnation != x->config.incarnation))
        return NULL;
    struct message_peer *c = lane_exchange_know(x, d->from_gid, d->from_incarnation, now_ns);
    if (c == NULL)
        return NULL;
    c->heard_ns = now_ns;
    c->ask_ns = c->qpn == d->qpn ? c->ask_ns : 0; /* what it was asked may have gone elsewhere */
    c->qpn = d->qpn;
    c->qkey = d->qkey;
    c->lid = d->lid;
    c->behind_ns = d->behind ? now_ns : c->behind_ns;
    hear_credit(x, c, d, now_ns);
    return c;
}

static void take_notes(struct message_peer *c, struct schema_datagram *out)
{
    struct stream_sender *t;
    while (out->notes < SCHEMA_DATAGRAM_NOTES && c->extras > 0)
        out->note[out->notes++] = c->extra[--c->extras];
    while (out->notes < SCHEMA_DATAGRAM_NOTES && lane_exchange_take_note(c, &out->note[out->notes]))
        out->notes++;
    while (out->notes < SCHEMA_DATAGRAM_NOTES && (t = TAILQ_FIRST(&c->asks)) != NULL) {
        out->note[out->notes++] = (struct schema_note){
            .stream = t->name, .number = t->out.first, .kind = SCHEMA_NOTE_ASK};
        TAILQ_REMOVE(&c->asks, t, by_asks);
        t->asks = 0;
    }
    while (out->notes < SCHEMA_DATAGRAM_NOTES && c->ended_count > 0)
        out->note[out->notes++] =
            (struct schema_note){.stream = c->ended[--c->ended_count], .kind = SCHEMA_NOTE_ENDED};
}

/* Field by field: the room for notes, most of which is not used, is left as it was. */
static void write_head(const struct exchange_config *own, const struct message_peer *c,
                       struct schema_datagram *out)
{
    memcpy(out->from_gid, own->gid, sizeof out->from_gid);
    out->from_incarnation = own->incarnation;
    out->to_incarnation = c->incarnation;
    out->pool = own->pool;
    out->lid = own->lid;
    out->qpn = own->qpn;
    out->qkey = own->qkey;
    out->purse_epoch = c->purse.epoch;
    out->settled = c->purse.window.first;
    out->wants = c->waiters > 0 && c->wants ? WANTS : 0;
    out->account_epoch = c->account.epoch;
    out->granted = c->account.granted;
    out->used = lane_credit_used(&c->account);
    out->behind = c->behind;
    out->notes = 0;
}

void lane_exchange_say(struct exchange *x, struct message_peer *c, struct schema_datagram *out)
{
    const struct exchange_config *own = &x->config;
    if (c->account.epoch != 0 && c->arrived > 0) /* who sends will send more */
        (void)lane_credit_grant(&x->bank, &c->account, c->arrived);
    c->arrived = 0;
    c->settled = c->purse.window.first;
    write_head(own, c, out);
    c->wants = c->behind = 0;
    take_notes(c, out);
    TAILQ_REMOVE(&x->dues, c, by_due);
    c->due = 0;
    if (!TAILQ_EMPTY(&c->news) || !TAILQ_EMPTY(&c->asks) || c->ended_count > 0)
        set_due(x, c);
}
