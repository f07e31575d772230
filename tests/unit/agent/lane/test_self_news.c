/* SPDX-License-Identifier: Apache-2.0 */
/* What an endpoint says to itself, where one of its workers sends to another: without a datagram it
 * is as with one. */
#include "../../check_main.h"
#include "exchange_wire.h"
#include "message/self_news.h"
#include "message/sure_sends.h"

/* What a worker's lane says to its own endpoint, once as a datagram and once without one. */
struct own {
    struct exchange x;
    struct message_peer *c;
    struct stream_sender t[2];
    struct schema_note note[SCHEMA_DATAGRAM_NOTES];
    uint32_t notes;
    struct schema_message late; /* under way; stream 0: none is */
};

static void begin_own(struct own *o, uint32_t receives)
{
    const struct exchange_config config = config_of(0, 100);
    ck_assert_int_eq(lane_exchange_init(&o->x, &config, 7), 0);
    lane_exchange_posted(&o->x, receives);
    o->c = lane_exchange_know(&o->x, config.gid, config.incarnation, w.now_ns);
    o->c->qpn = config.qpn;
    for (uint32_t i = 0; i < 2; i++) {
        o->t[i] = (struct stream_sender){.name = 11 + i};
        lane_sender_address(&o->x, &o->t[i], o->c);
    }
}

enum { OWN_STRAY = 1000000 /* no stream has such a name */ };
enum own_fate { OWN_TAKEN, OWN_REFUSED, OWN_LOST, OWN_STRAYS /* for nobody */, OWN_LATE };

static void give_own_back(struct own *o, const struct schema_message *m)
{
    lane_exchange_credit_back(&o->x, lane_exchange_place(&o->x, o->c), m->epoch, m->credit, false,
                              w.now_ns);
}

static void arrive_own(struct own *o, const struct schema_message *m, bool refused)
{
    struct stream_receiver *r = lane_exchange_arrive(&o->x, m, m->stream < OWN_STRAY, 0, w.now_ns);
    if (r != NULL && !refused)
        lane_exchange_took(&o->x, r);
    else if (r != NULL)
        lane_exchange_refuse(&o->x, r, 50);
    lane_exchange_posted(&o->x, 1);
}

static void arrive_late(struct own *o)
{
    if (o->late.stream == 0)
        return;
    give_own_back(o, &o->late);
    arrive_own(o, &o->late, false);
    o->late.stream = 0;
}

/* One goes, if it may, and is back from the device. */
static void exchange_own(struct own *o, uint32_t which, enum own_fate fate)
{
    struct stream_sender *t = &o->t[which];
    struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                               .stream = t->name,
                               .number = t->out.next,
                               .opens = !t->known,
                               .to_incarnation = 100};
    if (!lane_exchange_has_credit(&o->x, t, w.now_ns))
        return;
    if (t->out.next == t->out.end)
        (void)lane_stream_out_add(&t->out);
    lane_exchange_take_credits(&o->x, t, 1, w.now_ns, &m);
    lane_stream_out_posted(&t->out, w.now_ns);
    if (fate == OWN_LATE && o->late.stream == 0) {
        o->late = m;
        return;
    }
    give_own_back(o, &m);
    if (fate == OWN_LOST || fate == OWN_STRAYS)
        lane_stream_out_lost(&t->out, m.number);
    m.stream += fate == OWN_STRAYS ? OWN_STRAY : 0;
    if (fate != OWN_LOST)
        arrive_own(o, &m, fate == OWN_REFUSED);
}

/* Its VQP goes, and is another one. */
static void end_own(struct own *o, uint32_t which)
{
    struct stream_sender *t = &o->t[which];
    lane_sender_end(&o->x, t);
    *t = (struct stream_sender){.name = t->name + 2};
    lane_sender_address(&o->x, t, o->c);
}

static void hear_note(struct own *o, const struct schema_note *n)
{
    uint8_t failed;
    if (n->kind == SCHEMA_NOTE_ASK)
        lane_exchange_asked(&o->x, o->c, n->stream);
    else if (n->kind == SCHEMA_NOTE_ENDED)
        lane_exchange_ended(&o->x, o->c, n->stream, w.now_ns);
    for (uint32_t i = 0; i < 2; i++)
        if (n->kind < SCHEMA_NOTE_ASK && o->t[i].name == n->stream)
            MUST(lane_sender_hear(&o->t[i], n, w.now_ns, &failed) >= 0);
    o->note[o->notes++] = *n;
}

static void say_by_datagram(struct own *o)
{
    struct schema_datagram d;
    lane_exchange_say_self(&o->x, o->c, w.now_ns, &d);
    MUST(lane_exchange_hear(&o->x, &d, w.now_ns) == o->c);
    for (uint32_t i = 0; i < d.notes; i++)
        hear_note(o, &d.note[i]);
}

static bool heard_the_same(const struct own *a, const struct own *b)
{
    bool same = a->notes == b->notes;
    for (uint32_t i = 0; same && i < a->notes; i++)
        same = a->note[i].stream == b->note[i].stream && a->note[i].number == b->note[i].number &&
               a->note[i].kind == b->note[i].kind && a->note[i].wait_us == b->note[i].wait_us;
    return same;
}

static bool are_alike(const struct own *a, const struct own *b)
{
    return a->x.bank.promised == b->x.bank.promised && a->c->due == b->c->due &&
           a->c->settled == b->c->settled && a->c->arrived == b->c->arrived &&
           a->c->heard_ns == b->c->heard_ns && a->c->used_ns == b->c->used_ns &&
           a->c->behind == b->c->behind && a->c->behind_ns == b->c->behind_ns &&
           a->c->asked == b->c->asked && a->c->ask_ns == b->c->ask_ns &&
           memcmp(&a->c->purse, &b->c->purse, sizeof a->c->purse) == 0 &&
           memcmp(&a->c->account, &b->c->account, sizeof a->c->account) == 0 &&
           heard_the_same(a, b);
}

static struct own by_datagram, at_once;

static void step_own(void)
{
    const uint32_t which = draw(2);
    const enum own_fate fate = happens(80) ? OWN_TAKEN : (enum own_fate)(1 + draw(4));
    const bool asks = happens(10), ends_late = happens(20), ends = happens(1);
    const bool is_before = happens(5);
    struct own *both[2] = {&by_datagram, &at_once};
    w.now_ns += STEP_NS;
    for (uint32_t i = 0; i < 2; i++) {
        both[i]->notes = 0;
        exchange_own(both[i], which, fate);
        if (asks)
            lane_sender_ask(&both[i]->x, &both[i]->t[which]);
        if (is_before)
            lane_sender_is_before(&both[i]->x, both[i]->c, w.now_ns);
        if (ends)
            end_own(both[i], which);
        if (ends_late)
            arrive_late(both[i]);
    }
}

/* How often it was said without a datagram, and by one for which credit was asked before. */
static void compare_own(uint32_t receives, uint32_t *short_ways, uint32_t *asked)
{
    memset(&w, 0, sizeof w);
    memset(&by_datagram, 0, sizeof by_datagram);
    memset(&at_once, 0, sizeof at_once);
    base_prng_seed(&w.prng, 1);
    begin_own(&by_datagram, receives);
    begin_own(&at_once, receives);
    for (int i = 0; i < 20000; i++) {
        struct schema_note n;
        step_own();
        MUST((lane_exchange_due(&by_datagram.x) != NULL) ==
             (lane_exchange_due(&at_once.x) != NULL));
        if (lane_exchange_due(&at_once.x) == NULL || happens(30))
            continue;
        w.now_ns++;
        const bool has_asked = at_once.c->ask_ns != 0;
        say_by_datagram(&by_datagram);
        if (!lane_exchange_tell_self(&at_once.x, at_once.c, w.now_ns)) {
            say_by_datagram(&at_once);
        } else {
            ++*short_ways;
            *asked += has_asked && at_once.c->ask_ns == 0;
            while (lane_exchange_take_note(at_once.c, &n))
                hear_note(&at_once, &n);
        }
        MUST(are_alike(&by_datagram, &at_once));
    }
    lane_exchange_free(&by_datagram.x);
    lane_exchange_free(&at_once.x);
}

START_TEST(what_an_endpoint_says_to_itself_is_as_if_a_datagram_had_said_it)
{
    uint32_t short_ways = 0, asked = 0;
    compare_own(RECEIVES, &short_ways, &asked);
    ck_assert_uint_gt(short_ways, 5000);
    for (uint32_t receives = 1; receives < 4; receives++) /* so few that credit is waited for */
        compare_own(receives, &short_ways, &asked);
    ck_assert_uint_gt(asked, 100);
}
END_TEST

/* A device may show the end of a SEND before its message, which is on another queue pair: what is
 * said meanwhile does not settle it. What does not come at all is settled later. */
START_TEST(a_message_to_oneself_may_come_behind_the_end_of_its_send)
{
    static struct own o;
    memset(&w, 0, sizeof w);
    w.now_ns = 1;
    begin_own(&o, RECEIVES);
    struct stream_sender *t = &o.t[1];
    for (int i = 0; i < 8; i++) { /* until it has credit, and beyond */
        exchange_own(&o, 0, OWN_TAKEN);
        say_by_datagram(&o);
        o.notes = 0;
    }
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                   .stream = t->name,
                                   .number = t->out.next,
                                   .opens = !t->known,
                                   .to_incarnation = 100};
        struct schema_note n;
        ck_assert(lane_exchange_has_credit(&o.x, t, w.now_ns));
        (void)lane_stream_out_add(&t->out);
        lane_exchange_take_credits(&o.x, t, 1, w.now_ns, &m);
        lane_stream_out_posted(&t->out, w.now_ns);
        lane_exchange_credit_back(&o.x, lane_exchange_place(&o.x, o.c), m.epoch, m.credit, false,
                                  w.now_ns);
        for (int i = 0; i < 3; i++) {
            w.now_ns += is_lost ? BOUND_NS : 1;
            exchange_own(&o, 0, OWN_TAKEN);
            ck_assert(lane_exchange_tell_self(&o.x, o.c, w.now_ns));
            while (lane_exchange_take_note(o.c, &n))
                hear_note(&o, &n);
            o.notes = 0;
        }
        ck_assert_uint_eq(o.c->account.window.first == o.c->purse.window.first, is_lost);
        ck_assert_uint_eq(lane_exchange_arrive(&o.x, &m, 1, 0, w.now_ns) != NULL, !is_lost);
        ck_assert_uint_eq(o.x.strays, is_lost);
        lane_exchange_posted(&o.x, 1);
    }
    lane_exchange_free(&o.x);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_an_endpoint_says_to_itself_is_as_if_a_datagram_had_said_it)                             \
    T(a_message_to_oneself_may_come_behind_the_end_of_its_send)
KEDGE_CHECK_MAIN("agent.lane.self_news", TESTS)
