/* SPDX-License-Identifier: Apache-2.0 */
/* Two lanes that exchange messages over a network that loses, repeats and reorders, by a seed: each
 * arrives once and in order, and none without a receive that is posted for it. */
#include "message/message_exchange.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "../../check_main.h"
#include "base/random.h"

enum { SIDES = 2, SENDERS = 5, WIRE = 512, RECEIVES = 16, OUT = 12, STEP_NS = 20000 };

struct on_wire { /* a message; or a datagram */
    uint8_t to;
    uint8_t from_talker;
    struct schema_message message;
    struct schema_datagram datagram;
};

struct side {
    struct exchange x;
    struct stream_sender sender[SENDERS];
    struct message_peer *peer;
    uint32_t total[SENDERS], done[SENDERS]; /* as a sender; done: acknowledged */
    uint32_t first[SENDERS];                /* the number of the first that is not */
    uint32_t heard[SENDERS];                /* as a receiver: of the other's */
    uint8_t failed[SENDERS];
};

static struct {
    struct base_prng prng;
    uint64_t now_ns;
    struct side side[SIDES];
    struct on_wire message[WIRE], datagram[WIRE];
    uint32_t messages, datagrams;
    uint32_t lossy, refusing; /* of 100 */
    uint32_t most_wire, lost, repeated;
} w;

/* Check writes a line for each of its own, also where it holds. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(base_prng_next(&w.prng) % below);
}

static bool happens(uint32_t of_100)
{
    return draw(100) < of_100;
}

static struct exchange_config config_of(uint8_t side, uint32_t incarnation)
{
    return (struct exchange_config){.gid = {0xfd, [15] = side},
                                    .incarnation = incarnation,
                                    .pool = 1,
                                    .qpn = 10u + side,
                                    .qkey = 20,
                                    .peers = 4,
                                    .receivers = 8,
                                    .bound_ns = 1000000,
                                    .ask_ns = 200000,
                                    .idle_ns = 5000000,
                                    .forget_ns = 1000000000};
}

static void meet(uint8_t side)
{
    struct side *s = &w.side[side];
    const struct exchange_config *other = &w.side[1 - side].x.config;
    s->peer = lane_exchange_know(&s->x, other->gid, other->incarnation, w.now_ns);
    ck_assert_ptr_nonnull(s->peer);
    s->peer->qpn = other->qpn;
}

static void begin(uint64_t seed, uint32_t lossy, uint32_t refusing)
{
    memset(&w, 0, sizeof w);
    base_prng_seed(&w.prng, seed);
    w.now_ns = 1;
    w.lossy = lossy;
    w.refusing = refusing;
    for (uint8_t i = 0; i < SIDES; i++) {
        const struct exchange_config config = config_of(i, 100);
        ck_assert_int_eq(lane_exchange_init(&w.side[i].x, &config, base_prng_next(&w.prng)), 0);
        lane_exchange_posted(&w.side[i].x, RECEIVES);
    }
    for (uint8_t i = 0; i < SIDES; i++) {
        meet(i);
        for (uint32_t t = 0; t < SENDERS; t++) {
            w.side[i].sender[t].name = base_prng_next(&w.prng) | 1;
            lane_sender_address(&w.side[i].x, &w.side[i].sender[t], w.side[i].peer);
        }
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < SIDES; i++)
        lane_exchange_free(&w.side[i].x);
}

/* ---- the wire */

static struct on_wire take_any(struct on_wire *wire, uint32_t *count)
{
    const uint32_t at = draw(*count);
    const struct on_wire taken = wire[at];
    wire[at] = wire[--*count];
    return taken;
}

static void check_receives(uint8_t to)
{
    uint32_t coming = 0;
    for (uint32_t i = 0; i < w.messages; i++)
        coming += w.message[i].to == to;
    w.most_wire = coming > w.most_wire ? coming : w.most_wire;
    MUST(coming <= w.side[to].x.bank.posted); /* else RNR, of everybody's queue pair */
}

static void post_message(uint8_t from, uint32_t number)
{
    struct side *s = &w.side[from];
    struct stream_sender *t = &s->sender[number];
    struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                               .stream = t->name,
                               .number = t->out.next,
                               .opens = !t->known && t->out.next == t->out.first,
                               .to_incarnation = s->peer->incarnation,
                               .imm = t->out.next};
    if (w.messages == WIRE || !lane_exchange_take_credit(&s->x, t, w.now_ns, &m))
        return;
    lane_stream_out_posted(&t->out, w.now_ns);
    w.message[w.messages++] =
        (struct on_wire){.to = (uint8_t)(1 - from), .from_talker = (uint8_t)number, .message = m};
    check_receives((uint8_t)(1 - from));
}

/* As a VQP: from its queue, while its stream lets it. */
static void send_some(uint8_t from)
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

static uint32_t sender_of(const struct side *s, uint64_t name)
{
    uint32_t t = 0;
    while (t < SENDERS && s->sender[t].name != name)
        t++;
    MUST(t < SENDERS);
    return t;
}

/* The queue pair breaks under some: the sender does not know whether they came. */
static void deliver_message(void)
{
    const struct on_wire m = take_any(w.message, &w.messages);
    struct side *from = &w.side[1 - m.to], *to = &w.side[m.to];
    struct stream_sender *t = &from->sender[m.from_talker];
    const bool breaks = happens(w.lossy), comes = !breaks || happens(50);
    if (comes) {
        struct stream_receiver *h = lane_exchange_arrive(&to->x, &m.message, w.now_ns);
        lane_exchange_posted(&to->x, 1);
        if (h != NULL && happens(w.refusing)) {
            lane_exchange_refuse(&to->x, h, 1 + draw(300));
        } else if (h != NULL) {
            const uint32_t of = sender_of(from, h->name);
            MUST(m.message.imm == to->heard[of]); /* once, and in order */
            to->heard[of]++;
            lane_exchange_took(&to->x, h);
        }
    }
    w.lost += !comes;
    if (from->peer != NULL)
        lane_exchange_credit_over(from->peer, m.message.epoch, m.message.credit);
    if (breaks && t->to != NULL) {
        w.repeated += comes;
        lane_stream_out_lost(&t->out, m.message.number);
    }
}

static void speak(uint8_t from)
{
    struct exchange *x = &w.side[from].x;
    struct message_peer *c = lane_exchange_due(x);
    if (c == NULL || w.datagrams == WIRE)
        return;
    struct on_wire *d = &w.datagram[w.datagrams];
    uint8_t bytes[1024];
    struct schema_datagram said;
    lane_exchange_say(x, c, &said);
    const size_t n = schema_datagram_write(&said, bytes);
    MUST(schema_datagram_read(bytes, n, &d->datagram) == 0);
    d->to = (uint8_t)(1 - from);
    w.datagrams++;
}

static void take_note(struct side *s, struct message_peer *c, const struct schema_note *n)
{
    if (n->kind == SCHEMA_NOTE_ASK) {
        lane_exchange_asked(&s->x, c, n->stream);
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

static void deliver_datagram(void)
{
    struct on_wire d = take_any(w.datagram, &w.datagrams);
    struct side *to = &w.side[d.to];
    if (happens(w.lossy))
        return;
    if (happens(w.lossy)) /* again, later */
        w.datagram[w.datagrams++] = d;
    struct message_peer *c = lane_exchange_hear(&to->x, &d.datagram, w.now_ns);
    for (uint32_t i = 0; c != NULL && i < d.datagram.notes; i++)
        take_note(to, c, &d.datagram.note[i]);
}

static void step(void)
{
    for (uint8_t i = 0; i < SIDES; i++) {
        send_some(i);
        if (happens(60))
            speak(i);
        if (happens(5))
            lane_exchange_sweep(&w.side[i].x, w.now_ns, 4);
    }
    if (w.messages > 0 && happens(80))
        deliver_message();
    if (w.datagrams > 0 && happens(80))
        deliver_datagram();
    w.now_ns += draw(STEP_NS);
}

static bool is_done(uint8_t side)
{
    for (uint32_t t = 0; t < SENDERS; t++)
        if (w.side[side].done[t] < w.side[side].total[t])
            return false;
    return true;
}

static void run(uint32_t each)
{
    for (uint8_t i = 0; i < SIDES; i++)
        for (uint32_t t = 0; t < SENDERS; t++)
            w.side[i].total[t] += each;
    for (uint32_t n = 0; !(is_done(0) && is_done(1)); n++) {
        MUST(n < 3000000);
        step();
    }
    for (uint8_t i = 0; i < SIDES; i++)
        for (uint32_t t = 0; t < SENDERS; t++)
            MUST(w.side[1 - i].heard[t] == w.side[i].total[t]);
}

/* ---- */

START_TEST(all_arrive_where_nothing_is_lost)
{
    begin(1, 0, 0);
    run(500);
    ck_assert_uint_eq(w.lost + w.repeated, 0);
    ck_assert_uint_eq(w.side[0].x.strays + w.side[1].x.strays, 0);
    end();
}
END_TEST

START_TEST(each_arrives_once_and_in_order_whatever_is_lost_repeated_and_reordered)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(seed, 20, 10);
        run(200);
        ck_assert_uint_gt(w.lost, 0);
        ck_assert_uint_gt(w.repeated, 0);
        end();
    }
}
END_TEST

START_TEST(credits_that_nobody_uses_come_back)
{
    begin(3, 10, 0);
    run(50);
    for (int i = 0; i < 20000; i++)
        step();
    for (uint8_t i = 0; i < SIDES; i++) {
        ck_assert_uint_eq(w.side[i].x.bank.promised, 0);
        ck_assert_uint_eq(w.side[i].x.bank.posted, RECEIVES);
    }
    run(50); /* and are had again */
    end();
}
END_TEST

/* Its streams are opened anew by who sends: it knows of none. */
START_TEST(a_receiver_that_has_forgotten_a_stream_hears_it_again)
{
    begin(4, 0, 0);
    run(10);
    struct exchange *x = &w.side[1].x;
    while (w.datagrams > 0 || w.messages > 0 || lane_exchange_due(x) != NULL)
        step();
    w.now_ns += 2 * x->config.forget_ns;
    for (uint32_t i = 0; i < 16; i++) /* others need its places */
        (void)lane_exchange_know(x, (uint8_t[16]){0xfe, [15] = (uint8_t)i}, 1, w.now_ns);
    lane_exchange_sweep(x, w.now_ns, 64);
    run(10);
    end();
}
END_TEST

/* What was granted to a former life buys nothing of the next one's, and is free again. */
START_TEST(a_peer_that_comes_back_has_no_credit_of_before)
{
    begin(5, 0, 0);
    run(20);
    struct side *s = &w.side[1];
    const struct schema_message old = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                       .epoch = s->peer->account.epoch,
                                       .credit = s->peer->account.granted - 1,
                                       .stream = 99,
                                       .opens = 1,
                                       .to_incarnation = 100};
    ck_assert_uint_ne(old.epoch, 0);
    const struct schema_datagram later = {.from_gid = {0xfd, [15] = 0},
                                          .from_incarnation = 101,
                                          .to_incarnation = 100,
                                          .pool = 1,
                                          .qpn = 10,
                                          .wants = 4};
    for (uint32_t t = 0; t < SENDERS; t++)
        lane_sender_address(&s->x, &s->sender[t], NULL);
    struct message_peer *c = lane_exchange_hear(&s->x, &later, w.now_ns);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_gt(c->account.granted, 0);
    ck_assert_uint_ne(c->account.epoch, old.epoch);
    w.now_ns += s->x.config.bound_ns;
    lane_exchange_sweep(&s->x, w.now_ns, 64);
    ck_assert_uint_eq(s->x.bank.promised, c->account.promised);
    ck_assert_ptr_null(lane_exchange_arrive(&s->x, &old, w.now_ns));
    ck_assert_uint_gt(s->x.strays, 0);
    const struct schema_datagram earlier = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10};
    ck_assert_ptr_null(lane_exchange_hear(&s->x, &earlier, w.now_ns));
    end();
}
END_TEST

START_TEST(a_stream_that_failed_fails_again_until_its_sender_has_heard_it)
{
    begin(6, 0, 0);
    struct side *s = &w.side[0], *r = &w.side[1];
    s->total[0] = 1000;
    while (w.messages == 0)
        step();
    const uint32_t heard = r->heard[0];
    const struct on_wire m = take_any(w.message, &w.messages);
    struct stream_receiver *h = lane_exchange_arrive(&r->x, &m.message, w.now_ns);
    lane_exchange_posted(&r->x, 1);
    ck_assert_ptr_nonnull(h);
    lane_exchange_fail(&r->x, h, IBV_WC_REM_OP_ERR);
    struct schema_datagram lost;
    lane_exchange_say(&r->x, lane_exchange_due(&r->x), &lost);
    lane_exchange_credit_over(s->peer, m.message.epoch, m.message.credit);
    while (s->failed[0] == 0)
        step();
    ck_assert_uint_eq(s->failed[0], IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(r->heard[0], heard);
    ck_assert_uint_eq(s->done[0], heard);
    end();
}
END_TEST

START_TEST(who_has_no_place_for_a_stream_says_so_and_takes_others)
{
    begin(7, 0, 0);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    const struct schema_datagram wants = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10, .wants = 32};
    lane_exchange_posted(x, 64);
    ck_assert_ptr_eq(lane_exchange_hear(x, &wants, w.now_ns), c);
    for (uint32_t i = 0; i <= x->config.receivers; i++) {
        const struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                         .epoch = c->account.epoch,
                                         .credit = i,
                                         .stream = 1000 + i,
                                         .opens = 1,
                                         .to_incarnation = 100};
        struct stream_receiver *h = lane_exchange_arrive(x, &m, w.now_ns);
        ck_assert_int_eq(h != NULL, i < x->config.receivers);
        if (h != NULL)
            lane_exchange_took(x, h);
    }
    struct schema_datagram said;
    lane_exchange_say(x, c, &said);
    ck_assert_uint_eq(said.note[0].kind, SCHEMA_NOTE_REFUSED);
    ck_assert_uint_eq(said.note[0].stream, 1000 + x->config.receivers);
    ck_assert_uint_gt(said.note[0].wait_us, 0);
    end();
}
END_TEST

/* Whatever a peer's agent says, no more is promised than is posted. */
START_TEST(what_a_liar_says_promises_nothing_that_is_not_there)
{
    begin(8, 0, 0);
    struct exchange *x = &w.side[0].x;
    for (int i = 0; i < 100000; i++) {
        struct schema_datagram d = {.from_gid = {0xfd, [15] = (uint8_t)draw(8)},
                                    .from_incarnation = 1 + draw(200),
                                    .to_incarnation = 100 * draw(2),
                                    .pool = (uint16_t)draw(2),
                                    .qpn = 1,
                                    .purse_epoch = x->bank.epoch - draw(3),
                                    .settled = (uint32_t)base_prng_next(&w.prng) >> draw(32),
                                    .wants = (uint32_t)base_prng_next(&w.prng) >> draw(32),
                                    .account_epoch = draw(4),
                                    .granted = (uint32_t)base_prng_next(&w.prng) >> draw(32)};
        (void)lane_exchange_hear(x, &d, w.now_ns);
        MUST(x->bank.promised <= x->bank.posted);
        if (x->bank.posted > 0 && happens(30)) {
            const struct schema_message m = {.epoch = x->bank.epoch - draw(3),
                                             .credit = draw(40),
                                             .stream = 1 + draw(12),
                                             .number = draw(5),
                                             .opens = (uint8_t)draw(2),
                                             .to_incarnation = 100};
            struct stream_receiver *h = lane_exchange_arrive(x, &m, w.now_ns);
            if (h != NULL)
                lane_exchange_took(x, h);
            lane_exchange_posted(x, 1);
        }
        struct schema_datagram said;
        if (lane_exchange_due(x) != NULL && happens(50))
            lane_exchange_say(x, lane_exchange_due(x), &said);
        w.now_ns += draw(4000000);
        lane_exchange_sweep(x, w.now_ns, 2);
        MUST(x->bank.promised <= x->bank.posted);
    }
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(all_arrive_where_nothing_is_lost)                                                            \
    T(each_arrives_once_and_in_order_whatever_is_lost_repeated_and_reordered)                      \
    T(credits_that_nobody_uses_come_back)                                                          \
    T(a_receiver_that_has_forgotten_a_stream_hears_it_again)                                       \
    T(a_peer_that_comes_back_has_no_credit_of_before)                                              \
    T(a_stream_that_failed_fails_again_until_its_sender_has_heard_it)                              \
    T(who_has_no_place_for_a_stream_says_so_and_takes_others)                                      \
    T(what_a_liar_says_promises_nothing_that_is_not_there)
KEDGE_CHECK_MAIN("agent.lane.message_exchange", TESTS)
