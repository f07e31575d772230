/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams by a few words, one thing of them at a time: what a lane says so it would have said
 * field by field, and whatever one of them does not bear goes the long way. test_message_exchange.c
 * has them as they come. */
#include "../../check_main.h"
#include "exchange_one_note.h"
#include "message/sure_sends.h"

enum { ACCOUNT = 77, STREAM = 5, OTHER_STREAM = 6, ENOUGH = 3 };

static struct exchange *x;
static struct message_peer *c;
static struct schema_datagram d;

/* What the other one says of a stream of ours, which has credit there. */
static void begin_to_hear(uint32_t account)
{
    begin(1, 0, 0);
    x = &w.side[0].x;
    d = (struct schema_datagram){.from_incarnation = 100,
                                 .to_incarnation = 100,
                                 .pool = 1,
                                 .qpn = 11,
                                 .qkey = 20,
                                 .account_epoch = account,
                                 .granted = 4,
                                 .notes = 1,
                                 .note = {{.stream = w.side[0].sender[0].name,
                                           .number = 2,
                                           .kind = SCHEMA_NOTE_TAKEN,
                                           .aside = 7}}};
    memcpy(d.from_gid, w.side[1].x.config.gid, sizeof d.from_gid);
    c = lane_exchange_hear(x, &d, w.now_ns);
    ck_assert_ptr_eq(c, w.side[0].peer);
    lane_exchange_learn_one(c, &d);
}

/* Likewise; false leaves all as it was. */
static bool hears(struct schema_note *n)
{
    static struct one_state before;
    uint8_t bytes[1024];
    ck_assert_uint_eq(schema_datagram_write(&d, bytes), SCHEMA_DATAGRAM_ONE_BYTES);
    keep_state(&before, x, c, NULL);
    if (lane_exchange_hear_one(x, c, bytes, w.now_ns, n))
        return true;
    ck_assert(state_is(&before, x, c, NULL));
    return false;
}

START_TEST(one_like_the_one_before_is_heard)
{
    struct schema_note n;
    begin_to_hear(ACCOUNT);
    d.note[0].number = 3;
    d.note[0].aside = 9;
    d.granted += 2;
    w.now_ns += STEP_NS;
    ck_assert(hears(&n));
    ck_assert(is_same_note(&n, &d.note[0]));
    ck_assert_uint_eq(c->purse.granted, d.granted);
    ck_assert_uint_eq(c->heard_ns, w.now_ns);
    end();
}
END_TEST

/* It is not whom it was, or we are not: the long way says what that means. */
START_TEST(one_of_a_peer_that_has_changed_goes_the_long_way)
{
    struct schema_note n;
    begin_to_hear(ACCOUNT);
    c->over = 1;
    ck_assert(!hears(&n));
    c->over = 0;
    c->qpn++;
    ck_assert(!hears(&n));
    c->qpn--;
    c->qkey++;
    ck_assert(!hears(&n));
    c->qkey--;
    c->lid++;
    ck_assert(!hears(&n));
    c->lid--;
    x->config.incarnation++;
    ck_assert(!hears(&n));
    x->config.incarnation--;
    c->purse.epoch++;
    ck_assert(!hears(&n));
    c->purse.epoch--;
    ck_assert(hears(&n));
    end();
}
END_TEST

START_TEST(what_a_liar_says_goes_the_long_way)
{
    struct schema_note n;
    begin_to_hear(ACCOUNT);
    const struct schema_datagram honest = d;
    d.granted = c->purse.window.first + CREDITS_OPEN + 1;
    ck_assert(!hears(&n));
    d.granted = honest.granted - 1; /* it is an old one, or a lie */
    ck_assert(!hears(&n));
    d = honest;
    d.note[0].stream = 0;
    ck_assert(!hears(&n));
    d = honest;
    d.granted = c->purse.window.first + CREDITS_OPEN;
    ck_assert(hears(&n));
    end();
}
END_TEST

/* It grants nothing, so that its numbers are of no account. */
START_TEST(one_of_whom_there_is_no_credit_goes_the_long_way)
{
    struct schema_note n;
    begin_to_hear(0);
    ck_assert_uint_eq(c->purse.epoch, 0);
    ck_assert(!hears(&n));
    end();
}
END_TEST

START_TEST(what_says_more_is_not_what_the_next_one_is_like)
{
    begin_to_hear(ACCOUNT);
    const struct schema_datagram_like learnt = c->heard;
    d.qkey++; /* which would be learnt */
    d.wants = 1;
    lane_exchange_learn_one(c, &d);
    d.wants = 0;
    d.behind = 1;
    lane_exchange_learn_one(c, &d);
    d.behind = 0;
    d.note[0].kind = SCHEMA_NOTE_ANSWER;
    lane_exchange_learn_one(c, &d);
    d.note[0].kind = SCHEMA_NOTE_TAKEN;
    d.account_epoch++; /* not the one that is drawn on */
    lane_exchange_learn_one(c, &d);
    ck_assert_mem_eq(&learnt, &c->heard, sizeof learnt);
    d.account_epoch--;
    lane_exchange_learn_one(c, &d);
    ck_assert_mem_ne(&learnt, &c->heard, sizeof learnt);
    end();
}
END_TEST

/* A message of that stream has come, and is taken. */
static struct stream_receiver *take_one(uint64_t stream)
{
    const struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                     .epoch = c->account.epoch,
                                     .credit = c->account.granted - c->account.promised,
                                     .stream = stream,
                                     .opens = 1,
                                     .to_incarnation = 100};
    struct stream_receiver *r = lane_exchange_arrive(x, &m, 1, 0, w.now_ns);
    lane_exchange_posted(x, 1);
    ck_assert_ptr_nonnull(r);
    lane_exchange_took(x, r);
    return r;
}

static void begin_to_say(void)
{
    begin_to_hear(ACCOUNT);
    d.wants = 2;
    d.granted = 4;
    lane_exchange_hear(x, &d, w.now_ns);
    ck_assert_uint_eq(c->account.promised, 2);
    uint8_t bytes[1024];
    (void)say(x, c, bytes);
}

/* By a few words or not; what is said either way is the same (say()). */
static bool says_one(void)
{
    const uint32_t before = w.said_one;
    uint8_t bytes[1024];
    (void)say(x, c, bytes);
    return w.said_one != before;
}

START_TEST(what_was_taken_of_one_stream_is_said_by_a_few_words)
{
    uint32_t posted = 8;
    struct hearer_asides asides = {.id = 1, .posted = &posted};
    begin_to_say();
    struct stream_receiver *r = take_one(STREAM);
    lane_aside_hear(&r->aside, &asides, r->in.next);
    c->behind_ns = w.now_ns;
    x->config.refused_ns = UINT64_MAX;
    lane_exchange_set_aside(x, c, w.now_ns);
    ck_assert_uint_ge(exchange_says_aside(r), ENOUGH);
    ck_assert(says_one());
    ck_assert_uint_eq(r->news, 0);
    ck_assert_ptr_null(lane_exchange_due(x));
    end();
}
END_TEST

START_TEST(whatever_else_is_to_be_said_takes_the_long_way)
{
    for (int what = 0; what < 5; what++) {
        begin_to_say();
        struct stream_receiver *r = take_one(STREAM);
        if (what == 0)
            c->behind = 1;
        else if (what == 1)
            c->ended[c->ended_count++] = OTHER_STREAM;
        else if (what == 2)
            (void)take_one(OTHER_STREAM);
        else if (what == 3)
            lane_exchange_refuse(x, r, 10);
        ck_assert_msg(says_one() == (what == 4), "%d", what);
        end();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_like_the_one_before_is_heard)                                                            \
    T(one_of_a_peer_that_has_changed_goes_the_long_way)                                            \
    T(what_a_liar_says_goes_the_long_way)                                                          \
    T(one_of_whom_there_is_no_credit_goes_the_long_way)                                            \
    T(what_says_more_is_not_what_the_next_one_is_like)                                             \
    T(what_was_taken_of_one_stream_is_said_by_a_few_words)                                         \
    T(whatever_else_is_to_be_said_takes_the_long_way)
KEDGE_CHECK_MAIN("agent.lane.one_note", TESTS)
