/* SPDX-License-Identifier: Apache-2.0 */
/* What peers' agents say that lie, by a seed: no more is promised than is posted, all that is out
 * comes back, and nothing is read or written that is not there. */
#include "../../check_main.h"
#include "exchange_wire.h"

static uint32_t draw_any(void)
{
    return (uint32_t)base_prng_next(&w.prng) >> draw(32);
}

/* Of any account, as if it were known; or of none. */
static uint32_t draw_epoch(const struct exchange *x)
{
    const uint32_t of = x->all[draw(x->config.peers)].account.epoch;
    return of != 0 && !happens(20) ? of : x->bank.epoch - draw(3);
}

static struct schema_datagram draw_datagram(const struct exchange *x)
{
    struct schema_datagram d = {.from_gid = {0xfd, [15] = (uint8_t)draw(8)},
                                .from_incarnation = happens(70) ? 100 : 1 + draw(200),
                                .to_incarnation = 100 * draw(2),
                                .pool = (uint16_t)!happens(10),
                                .qpn = 1,
                                .purse_epoch = draw_epoch(x),
                                .settled = draw_any(),
                                .wants = draw_any(),
                                .account_epoch = happens(50) ? draw(4) << 30 | draw(2) : draw(3),
                                .granted = draw_any(),
                                .used = draw_any(),
                                .notes = draw(4)};
    if (happens(50)) /* such as make sense more often */
        d.used = d.granted - draw(40);
    for (uint32_t i = 0; i < d.notes; i++)
        d.note[i] = (struct schema_note){
            .stream = happens(50) ? w.side[0].sender[draw(SENDERS)].name : 1 + draw(12),
            .number = happens(50) ? draw(6) : draw_any(),
            .wait_us = draw_any(),
            .kind = (uint8_t)(1 + draw(SCHEMA_NOTE_READS)),
            .status = (uint8_t)(1 + draw(20))};
    return d;
}

static void hear_liar(struct side *s)
{
    const struct schema_datagram d = draw_datagram(&s->x);
    struct message_peer *c = lane_exchange_hear(&s->x, &d, w.now_ns);
    for (uint32_t i = 0; c != NULL && i < d.notes; i++) {
        const struct schema_note *n = &d.note[i];
        uint8_t failed;
        if (n->kind == SCHEMA_NOTE_ASK)
            lane_exchange_asked(&s->x, c, n->stream);
        else if (n->kind == SCHEMA_NOTE_ENDED)
            lane_exchange_ended(&s->x, c, n->stream, w.now_ns);
        for (uint32_t t = 0; t < SENDERS; t++)
            if (s->sender[t].name == n->stream && s->sender[t].to == c)
                (void)lane_sender_hear(&s->sender[t], n, w.now_ns, &failed);
    }
}

/* Messages that are READ, of streams which may have been forgotten meanwhile, or be others. */
enum { AT_READ = 6 };
static struct at_read {
    struct stream_receiver *stream;
    uint64_t life;
    uint32_t number;
} at_read[AT_READ];

static bool is_at_read(const struct at_read *g)
{
    return g->stream != NULL && g->stream->life == g->life;
}

static void begin_reading(struct exchange *x, struct stream_receiver *r, uint32_t number)
{
    for (uint32_t i = 0; i < AT_READ; i++)
        if (at_read[i].stream == NULL) {
            lane_exchange_reads(r);
            at_read[i] = (struct at_read){.stream = r, .life = r->life, .number = number};
            return;
        }
    if (r->reads > 0)
        lane_exchange_stop(r, number, SCHEMA_NOTE_ANSWER, 0, 0);
    else
        lane_exchange_refuse(x, r, 1000);
}

/* As receive/large.c does: one that is here waits for those before it. */
static void end_reading(struct exchange *x)
{
    struct at_read *g = &at_read[draw(AT_READ)];
    struct stream_receiver *r = g->stream;
    const bool has_stream = is_at_read(g);
    const bool is_awaited = has_stream && lane_exchange_goes_on(r, g->number);
    const bool is_here = happens(50);
    if (is_awaited && is_here && r->in.next != g->number)
        return;
    g->stream = NULL;
    if (is_awaited && is_here)
        lane_exchange_took(x, r);
    else if (is_awaited)
        lane_exchange_stop(r, g->number, happens(50) ? SCHEMA_NOTE_REFUSED : SCHEMA_NOTE_FAILED,
                           1000, IBV_WC_REM_OP_ERR);
    if (has_stream)
        lane_exchange_left(x, r);
}

static void take_liars_message(struct exchange *x)
{
    const struct schema_message m = {.epoch = draw_epoch(x),
                                     .credit = happens(50) ? draw(40) : draw_any(),
                                     .stream = 1 + draw(12),
                                     .number = happens(80) ? draw(5) : draw_any(),
                                     .opens = (uint8_t)draw(2),
                                     .to_incarnation = 99 + draw(3)};
    struct stream_receiver *r = lane_exchange_arrive(x, &m, draw(3), 0, w.now_ns);
    if (r != NULL && r->reads > 0 && happens(30))
        lane_exchange_stop(r, m.number, SCHEMA_NOTE_ANSWER, 0, 0);
    else if (r != NULL && (r->reads > 0 || happens(20)))
        begin_reading(x, r, m.number);
    else if (r != NULL && happens(50))
        lane_exchange_took(x, r);
    else if (r != NULL && happens(50))
        lane_exchange_fail(x, r, IBV_WC_REM_OP_ERR);
    else if (r != NULL)
        lane_exchange_refuse(x, r, draw_any());
    lane_exchange_posted(x, 1);
}

/* Ours, which the liar gives credit for: whatever that is, the device gives each back once. */
static void send_to_liars(struct side *s)
{
    const uint32_t number = draw(SENDERS);
    struct stream_sender *t = &s->sender[number];
    if (t->to == NULL || t->to->over || happens(2)) {
        lane_sender_end(&s->x, t);
        *t = (struct stream_sender){.name = base_prng_next(&w.prng) | 1};
        const uint8_t gid[16] = {0xfd, [15] = (uint8_t)draw(8)};
        lane_sender_address(&s->x, t, lane_exchange_know(&s->x, gid, 100, w.now_ns));
    }
    if (t->to == NULL)
        return;
    if (lane_stream_out_has_room(&t->out) && t->out.end == t->out.next)
        (void)lane_stream_out_add(&t->out);
    if (w.messages < 40 && lane_stream_out_may_post(&t->out, w.now_ns)) {
        s->peer = t->to;
        post_message(0, number);
    }
    if (happens(10))
        lane_sender_ask(&s->x, t);
    if (w.messages == 0 || happens(50))
        return;
    const struct on_wire m = take_any(w.message, &w.messages);
    lane_exchange_credit_back(&s->x, m.from_peer, m.message.epoch, m.message.credit, happens(30),
                              w.now_ns);
}

static void check_lists(const struct exchange *x)
{
    uint32_t promised = 0, receivers = 0, out = 0, read = 0, known = 0;
    for (uint32_t i = 0; i < x->config.peers; i++) {
        promised += x->all[i].account.promised;
        receivers += x->all[i].receivers;
        out += x->all[i].out;
    }
    for (uint32_t i = 0; i < x->config.receivers; i++) {
        const struct stream_receiver *r = &x->receiver[i];
        read += r->reads;
        MUST(r->stops == 0 || (r->reads > 0 && (int32_t)(r->stop_at - r->in.next) >= 0));
    }
    for (uint32_t i = 0; i < AT_READ; i++)
        known += is_at_read(&at_read[i]);
    MUST(read == known); /* or it would never be forgotten */
    MUST(x->bank.promised == promised && promised <= x->bank.posted);
    MUST(receivers == x->used_receivers && out == w.messages);
}

/* Whatever a peer's agent says, no more is promised than is posted, and what is out comes back. */
START_TEST(what_liars_say_promises_nothing_that_is_not_there)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin(seed, 0, 0);
        w.lies = true;
        memset(at_read, 0, sizeof at_read);
        struct side *s = &w.side[0];
        for (int i = 0; i < 50000; i++) {
            hear_liar(s);
            check_lists(&s->x);
            send_to_liars(s);
            if (s->x.bank.posted > 0 && happens(30))
                take_liars_message(&s->x);
            if (happens(5))
                end_reading(&s->x);
            struct schema_datagram said;
            if (lane_exchange_due(&s->x) != NULL && happens(50))
                lane_exchange_say(&s->x, lane_exchange_due(&s->x), &said);
            w.now_ns += draw(happens(5) ? 400000000 : 100000);
            lane_exchange_sweep(&s->x, w.now_ns, 2);
            check_lists(&s->x);
        }
        end();
    }
}
END_TEST

#define TESTS(T) T(what_liars_say_promises_nothing_that_is_not_there)
KEDGE_CHECK_MAIN("agent.lane.message_liars", TESTS)
