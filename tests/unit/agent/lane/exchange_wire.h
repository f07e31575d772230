/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the two of exchange_rig.h, by a seed. */
#ifndef UNIT_AGENT_LANE_EXCHANGE_WIRE_H
#define UNIT_AGENT_LANE_EXCHANGE_WIRE_H

#include "exchange_one_note.h"

static inline struct on_wire take_any(struct on_wire *wire, uint32_t *count)
{
    const uint32_t at = draw(*count);
    const struct on_wire taken = wire[at];
    wire[at] = wire[--*count];
    return taken;
}

static inline void check_receives(uint8_t to)
{
    uint32_t coming = 0;
    if (w.lies)
        return;
    for (uint32_t i = 0; i < w.messages; i++)
        coming += w.message[i].to == to;
    w.most_wire = coming > w.most_wire ? coming : w.most_wire;
    MUST(coming <= w.side[to].x.bank.posted); /* else RNR, of everybody's queue pair */
}

static inline void post_message(uint8_t from, uint32_t number)
{
    struct side *s = &w.side[from];
    struct stream_sender *t = &s->sender[number];
    struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                               .stream = t->name,
                               .number = t->out.next,
                               .opens = !t->known && t->out.next == t->out.first,
                               .to_incarnation = s->peer->incarnation,
                               .imm = t->out.next};
    if (w.messages == WIRE || !lane_exchange_has_credit(&s->x, t, w.now_ns))
        return;
    lane_exchange_take_credits(&s->x, t, 1, w.now_ns, &m);
    lane_stream_out_posted(&t->out, w.now_ns);
    w.message[w.messages++] = (struct on_wire){.to = (uint8_t)(1 - from),
                                               .from_sender = (uint8_t)number,
                                               .from_peer = lane_exchange_place(&s->x, t->to),
                                               .message = m};
    check_receives((uint8_t)(1 - from));
}

/* As a VQP: from its queue, while its stream lets it. */
static inline void send_some(uint8_t from)
{
    struct side *s = &w.side[from];
    const uint32_t number = draw(SENDERS);
    struct stream_sender *t = &s->sender[number];
    if (t->to == NULL)
        return;
    if (t->out.end < s->total[number] && t->out.end - t->out.first < OUT)
        (void)lane_stream_out_add(&t->out);
    if (lane_stream_out_may_post(&t->out, w.now_ns))
        post_message(from, number);
    uint64_t due_ns;
    const struct stream_patience patience = {
        .ask_ns = 400000, .questions = 200, .refused_ns = 1000000000000};
    const enum stream_due due = lane_stream_out_look(&t->out, &patience, w.now_ns, &due_ns);
    if (due == STREAM_ASKS)
        lane_sender_ask(&s->x, t);
    MUST(due == STREAM_WAITS || due == STREAM_ASKS);
}

static inline uint32_t sender_of(const struct side *s, uint64_t name)
{
    uint32_t t = 0;
    while (t < SENDERS && s->sender[t].name != name)
        t++;
    MUST(t < SENDERS);
    return t;
}

static inline void arrive(const struct on_wire *m)
{
    struct side *from = &w.side[1 - m->to], *to = &w.side[m->to];
    struct stream_receiver *r = lane_exchange_arrive(&to->x, &m->message, 1, 0, w.now_ns);
    lane_exchange_posted(&to->x, 1);
    MUST(to->x.strays == 0); /* each had a receive that was promised to it, however late */
    if (r != NULL && happens(w.refusing)) {
        lane_exchange_refuse(&to->x, r, 1 + draw(300));
    } else if (r != NULL) {
        const uint32_t of = sender_of(from, r->name);
        MUST(m->message.imm == to->heard[of]); /* once, and in order */
        to->heard[of]++;
        lane_exchange_took(&to->x, r);
    }
}

/* The queue pair breaks under some: the sender does not know whether they came, or come yet. */
static inline void deliver_message(void)
{
    struct on_wire m = take_any(w.message, &w.messages);
    struct side *from = &w.side[1 - m.to];
    struct stream_sender *t = &from->sender[m.from_sender];
    const bool breaks = m.broke_ns == 0 && happens(w.lossy), comes = !breaks || happens(30);
    w.lost += !comes;
    if (comes)
        arrive(&m);
    if (m.broke_ns != 0)
        return;
    lane_exchange_credit_back(&from->x, m.from_peer, m.message.epoch, m.message.credit, breaks,
                              w.now_ns);
    if (!breaks)
        return;
    w.repeated += comes;
    if (t->to != NULL)
        lane_stream_out_lost(&t->out, m.message.number);
    if (!comes && happens(50)) {
        m.broke_ns = w.now_ns;
        w.message[w.messages++] = m;
    }
}

/* By then nothing of it is under way. */
static inline void lose_late(void)
{
    for (uint32_t i = 0; i < w.messages; i++)
        if (w.message[i].broke_ns != 0 && w.now_ns - w.message[i].broke_ns >= BOUND_NS - STEP_NS)
            w.message[i--] = w.message[--w.messages];
}

static inline void speak(uint8_t from)
{
    struct exchange *x = &w.side[from].x;
    struct message_peer *c = lane_exchange_due(x);
    if (c == NULL || w.datagrams == WIRE)
        return;
    struct on_wire *d = &w.datagram[w.datagrams];
    uint8_t bytes[1024];
    const size_t n = say(x, c, bytes);
    MUST(schema_datagram_read(bytes, n, &d->datagram) == 0);
    d->to = (uint8_t)(1 - from);
    w.datagrams++;
}

static inline void take_note(struct side *s, struct message_peer *c, const struct schema_note *n)
{
    if (n->kind == SCHEMA_NOTE_ASK) {
        lane_exchange_asked(&s->x, c, n->stream);
        return;
    }
    if (n->kind == SCHEMA_NOTE_ENDED) {
        lane_exchange_ended(&s->x, c, n->stream, w.now_ns);
        return;
    }
    const uint32_t number = sender_of(s, n->stream);
    struct stream_sender *t = &s->sender[number];
    uint8_t failed = 0;
    if (t->to == NULL)
        return;
    const int over = lane_sender_hear(t, n, w.now_ns, &failed);
    MUST(over >= 0);
    s->done[number] += (uint32_t)over;
    s->failed[number] = failed;
    if (failed != 0)
        lane_sender_address(&s->x, t, NULL);
}

static inline void deliver_datagram(void)
{
    struct on_wire d = take_any(w.datagram, &w.datagrams);
    struct side *to = &w.side[d.to];
    if (happens(w.lossy))
        return;
    if (happens(w.lossy)) /* again, later */
        w.datagram[w.datagrams++] = d;
    struct message_peer *c = hear(&to->x, &d.datagram);
    for (uint32_t i = 0; c != NULL && i < d.datagram.notes; i++)
        take_note(to, c, &d.datagram.note[i]);
}

static inline void step(void)
{
    for (uint8_t i = 0; i < SIDES; i++) {
        send_some(i);
        if (happens(60))
            speak(i);
        if (happens(5))
            lane_exchange_sweep(&w.side[i].x, w.now_ns, 4);
    }
    if (w.messages > 0 && happens(w.slow ? 15 : 80))
        deliver_message();
    lose_late();
    if (w.datagrams > 0 && happens(80))
        deliver_datagram();
    w.now_ns += draw(STEP_NS);
}

#endif
