/* SPDX-License-Identifier: Apache-2.0 */
/* Two lanes that exchange messages over a network that loses, repeats and reorders, by a seed: each
 * arrives once and in order, and none without a receive that is posted for it. */
#include "../../check_main.h"
#include "exchange_wire.h"
#include "message/sure_sends.h"

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
        w.slow = seed % 2 == 0;
        run(200);
        ck_assert_uint_gt(w.lost, 0);
        ck_assert_uint_gt(w.repeated, 0);
        ck_assert_uint_gt(w.said_one, 100);
        ck_assert_uint_gt(w.heard_one, 20);
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

/* A SEND is over, and its sender says so, before its receive is seen here: it is taken then, and
 * what it stands for is no one else's until it must have been. */
START_TEST(what_is_settled_before_it_has_come_is_taken_for_a_time)
{
    begin(7, 0, 0);
    run(10);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    while (w.datagrams > 0 || w.messages > 0 || lane_exchange_due(x) != NULL)
        step();
    const uint32_t first = c->account.window.first, promised = x->bank.promised;
    ck_assert_uint_ge(c->account.granted - first, 2);
    struct schema_datagram says = {.from_gid = {0xfd, [15] = 0},
                                   .from_incarnation = c->incarnation,
                                   .to_incarnation = x->config.incarnation,
                                   .pool = 1,
                                   .qpn = c->qpn,
                                   .qkey = c->qkey,
                                   .purse_epoch = c->account.epoch,
                                   .settled = first + 1};
    struct schema_message comes = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                   .epoch = c->account.epoch,
                                   .credit = first,
                                   .stream = 99,
                                   .opens = 1,
                                   .to_incarnation = x->config.incarnation};
    ck_assert_ptr_eq(lane_exchange_hear(x, &says, w.now_ns), c);
    lane_exchange_sweep(x, w.now_ns + SEEN_NS - 1, 64);
    ck_assert_uint_eq(x->bank.promised, promised);
    ck_assert_ptr_nonnull(lane_exchange_arrive(x, &comes, 1, 0, w.now_ns));
    lane_credit_posted(&x->bank, 1);
    ck_assert_uint_eq(x->bank.promised, promised - 1);
    w.now_ns += SEEN_NS; /* and what never comes is */
    says.settled = first + 2;
    ck_assert_ptr_eq(lane_exchange_hear(x, &says, w.now_ns), c);
    ck_assert_uint_eq(x->bank.promised, promised - 1);
    w.now_ns += SEEN_NS;
    lane_exchange_sweep(x, w.now_ns, 64);
    ck_assert_uint_eq(x->bank.promised, promised - 2);
    comes.credit = first + 1;
    ck_assert_uint_eq(x->strays, 0);
    ck_assert_ptr_null(lane_exchange_arrive(x, &comes, 1, 0, w.now_ns));
    ck_assert_uint_eq(x->strays, 1);
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
    ck_assert_ptr_null(lane_exchange_arrive(&s->x, &old, 1, 0, w.now_ns));
    ck_assert_uint_gt(s->x.strays, 0);
    const struct schema_datagram earlier = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10};
    ck_assert_ptr_null(lane_exchange_hear(&s->x, &earlier, w.now_ns));
    end();
}
END_TEST

/* So many others have come and gone meanwhile that its account's epoch seems to be an earlier one.
 */
START_TEST(who_was_silent_while_many_came_has_credit_again)
{
    enum { MANY = 200 };
    begin(16, 0, 0);
    run(10);
    struct exchange *x = &w.side[1].x;
    const uint32_t before = w.side[0].peer->purse.epoch;
    while (w.datagrams > 0 || w.messages > 0 || lane_exchange_due(x) != NULL)
        step();
    w.now_ns += 2 * x->config.forget_ns;
    lane_exchange_sweep(x, w.now_ns, x->config.peers);
    ck_assert_uint_eq(w.side[1].peer->account.epoch, 0);
    for (uint32_t n = 1; n <= MANY || w.side[1].x.bank.epoch - before < UINT32_MAX / 2; n++) {
        const struct schema_datagram another = {.from_gid = {0xfe},
                                                .from_incarnation = n,
                                                .to_incarnation = 100,
                                                .pool = 1,
                                                .qpn = 10,
                                                .wants = 1};
        struct message_peer *c = lane_exchange_hear(x, &another, w.now_ns);
        ck_assert_ptr_nonnull(c);
        ck_assert_uint_lt(n, 5 * MANY);
        TAILQ_REMOVE(&x->dues, c, by_due); /* who is told is none of those two */
        c->due = 0;
        w.now_ns += x->config.bound_ns;
        lane_exchange_sweep(x, w.now_ns, x->config.peers);
    }
    run(10);
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
    struct stream_receiver *h = lane_exchange_arrive(&r->x, &m.message, 1, 0, w.now_ns);
    lane_exchange_posted(&r->x, 1);
    ck_assert_ptr_nonnull(h);
    lane_exchange_fail(&r->x, h, IBV_WC_REM_OP_ERR);
    struct schema_datagram lost;
    lane_exchange_say(&r->x, lane_exchange_due(&r->x), &lost);
    lane_exchange_credit_back(&s->x, m.from_peer, m.message.epoch, m.message.credit, false,
                              w.now_ns);
    while (s->failed[0] == 0)
        step();
    ck_assert_uint_eq(s->failed[0], IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(r->heard[0], heard);
    ck_assert_uint_eq(s->done[0], heard);
    end();
}
END_TEST

/* A message of a stream that begins with it. NULL: there is no place for that. */
static struct stream_receiver *begin_stream(struct exchange *x, struct message_peer *c,
                                            uint64_t name, uint32_t share)
{
    const struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                     .epoch = c->account.epoch,
                                     .credit = c->account.window.first,
                                     .stream = name,
                                     .opens = 1,
                                     .to_incarnation = 100};
    struct stream_receiver *r = lane_exchange_arrive(x, &m, share, 0, w.now_ns);
    lane_exchange_posted(x, 1);
    if (r != NULL)
        lane_exchange_took(x, r);
    return r;
}

/* One stream, whose sender has something behind its messages, and of eight receives of a worker's
 * six are set aside for it. */
static struct stream_receiver *begin_aside(struct hearer_asides *asides, uint32_t *posted)
{
    begin(15, 0, 0);
    struct exchange *x = &w.side[1].x;
    const struct schema_datagram behind = {.from_gid = {0xfd, [15] = 0},
                                           .from_incarnation = 100,
                                           .pool = 1,
                                           .qpn = 10,
                                           .wants = 32,
                                           .behind = 1};
    *posted = 8;
    *asides = (struct hearer_asides){.id = 1, .posted = posted, .step_ns = w.now_ns};
    x->config.refused_ns = UINT64_MAX;
    lane_exchange_posted(x, 64);
    ck_assert_ptr_eq(lane_exchange_hear(x, &behind, w.now_ns), w.side[1].peer);
    struct stream_receiver *r = begin_stream(x, w.side[1].peer, 77, 1);
    ck_assert_ptr_nonnull(r);
    lane_aside_hear(&r->aside, asides, r->in.next);
    lane_exchange_set_aside(x, w.side[1].peer, w.now_ns);
    ck_assert_uint_eq(lane_aside_has(&r->aside, r->in.next), 6);
    return r;
}

/* What stands behind it has been carried out, perhaps: it counts on its receive. Whoever sends such
 * again and again has that once. */
START_TEST(what_is_dropped_for_its_credit_finds_its_receive_when_it_comes_again)
{
    struct hearer_asides asides;
    uint32_t posted;
    struct stream_receiver *r = begin_aside(&asides, &posted);
    struct exchange *x = &w.side[1].x;
    const uint64_t step_ns = exchange_step_ns(x);
    for (uint32_t is_again = 0; is_again < 2; is_again++) {
        const struct schema_message stray = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                             .epoch = r->from->account.epoch,
                                             .credit = r->from->account.granted,
                                             .stream = 77,
                                             .number = r->in.next,
                                             .to_incarnation = 100};
        w.now_ns += ASIDE_TERM * step_ns;
        ck_assert_ptr_null(lane_exchange_arrive(x, &stray, 1, 0, w.now_ns));
        lane_exchange_posted(x, 1);
    }
    ck_assert_uint_eq(x->strays, 2);
    lane_set_aside_go_on(&asides, w.now_ns, step_ns);
    ck_assert_uint_eq(lane_aside_has(&r->aside, r->in.next), 6);
    lane_set_aside_go_on(&asides, w.now_ns + step_ns, step_ns);
    ck_assert_uint_eq(lane_aside_has(&r->aside, r->in.next), 0);
    end();
}
END_TEST

/* One that has come before, or not yet what is next, is none that counts on any. */
START_TEST(what_comes_twice_keeps_nothing)
{
    struct hearer_asides asides;
    uint32_t posted;
    struct stream_receiver *r = begin_aside(&asides, &posted);
    struct exchange *x = &w.side[1].x;
    const uint64_t step_ns = exchange_step_ns(x);
    struct schema_message stray = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                   .epoch = r->from->account.epoch,
                                   .credit = r->from->account.granted,
                                   .stream = 77,
                                   .number = r->in.next - 1,
                                   .to_incarnation = 100};
    w.now_ns += ASIDE_TERM * step_ns;
    ck_assert_ptr_null(lane_exchange_arrive(x, &stray, 1, 0, w.now_ns));
    stray.number = r->in.next + 6;
    ck_assert_ptr_null(lane_exchange_arrive(x, &stray, 1, 0, w.now_ns));
    lane_set_aside_go_on(&asides, w.now_ns + step_ns, step_ns);
    ck_assert_uint_eq(lane_aside_has(&r->aside, r->in.next), 0);
    end();
}
END_TEST

/* Its sender has said nothing of what stands behind for long, so that none are set aside any more:
 * it would count from now on on such as go soon. */
START_TEST(what_was_set_aside_once_is_not_said_long_after)
{
    struct hearer_asides asides;
    uint32_t posted;
    struct stream_receiver *r = begin_aside(&asides, &posted);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    const uint64_t step_ns = exchange_step_ns(x);
    struct schema_datagram said;
    for (uint32_t n = 0; n < 3; n++) {
        const struct schema_message m = {.kind = SCHEMA_MESSAGE_TO_PORT,
                                         .epoch = c->account.epoch,
                                         .credit = c->account.window.first,
                                         .stream = 77,
                                         .number = r->in.next,
                                         .to_incarnation = 100};
        ck_assert_ptr_eq(lane_exchange_arrive(x, &m, 1, 0, w.now_ns), r);
        lane_exchange_took(x, r);
        lane_exchange_set_aside(x, c, w.now_ns);
        const uint32_t has = lane_aside_has(&r->aside, r->in.next);
        lane_exchange_say(x, c, &said);
        ck_assert_uint_eq(said.notes, 1);
        ck_assert_uint_ge(has, 3);
        ck_assert_uint_eq(said.note[0].aside, n < 2 ? has : 0);
        w.now_ns += (ASIDE_STEPS / 2) * step_ns;
    }
    end();
}
END_TEST

/* Neither has a receive to grant: each answers what it is asked, and asks nothing by that. */
START_TEST(two_that_have_no_credit_for_each_other_do_not_talk_without_end)
{
    begin(13, 0, 0);
    for (uint8_t i = 0; i < SIDES; i++) {
        struct side *s = &w.side[i];
        s->x.bank.posted = 0;
        (void)lane_stream_out_add(&s->sender[0].out);
        ck_assert(!lane_exchange_has_credit(&s->x, &s->sender[0], w.now_ns));
    }
    int said = 0;
    for (bool any = true; any && said < 100;) {
        any = false;
        for (uint8_t i = 0; i < SIDES; i++) {
            struct message_peer *c = lane_exchange_due(&w.side[i].x);
            struct schema_datagram d;
            if (c == NULL)
                continue;
            lane_exchange_say(&w.side[i].x, c, &d);
            ck_assert_ptr_nonnull(lane_exchange_hear(&w.side[1 - i].x, &d, w.now_ns));
            any = true;
            said++;
        }
    }
    ck_assert_int_le(said, 4); /* a question each, and its answer */
    end();
}
END_TEST

/* Its part are all but one for each who may come, who finds that. */
START_TEST(who_has_no_place_for_a_stream_says_so_and_takes_others)
{
    begin(7, 0, 0);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    const uint32_t part = x->config.receivers - x->config.shares;
    const struct schema_datagram wants = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10, .wants = 32};
    lane_exchange_posted(x, 64);
    ck_assert_ptr_eq(lane_exchange_hear(x, &wants, w.now_ns), c);
    for (uint32_t i = 0; i <= part; i++)
        ck_assert_int_eq(begin_stream(x, c, 1000 + i, 1) != NULL, i < part);
    struct schema_datagram said;
    lane_exchange_say(x, c, &said);
    ck_assert_uint_eq(said.note[0].kind, SCHEMA_NOTE_REFUSED);
    ck_assert_uint_eq(said.note[0].stream, 1000 + part);
    ck_assert_uint_gt(said.note[0].wait_us, 0);
    ck_assert_ptr_nonnull(begin_stream(x, c, 2000, 2));
    end();
}
END_TEST

/* Whose sender is gone keeps its place only as long as something of it may come. */
START_TEST(a_stream_that_has_ended_leaves_its_place_to_others)
{
    begin(9, 0, 0);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    const uint32_t part = x->config.receivers - x->config.shares;
    const struct schema_datagram wants = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10, .wants = 32};
    lane_exchange_posted(x, 64);
    ck_assert_ptr_eq(lane_exchange_hear(x, &wants, w.now_ns), c);
    for (uint32_t i = 0; i < part; i++)
        ck_assert_ptr_nonnull(begin_stream(x, c, 1000 + i, 1));
    lane_exchange_ended(x, c, 1003, w.now_ns);
    ck_assert_ptr_null(begin_stream(x, c, 3000, 1));
    w.now_ns += 4 * BOUND_NS;
    ck_assert_ptr_nonnull(begin_stream(x, c, 3000, 1));
    ck_assert_ptr_null(begin_stream(x, c, 3001, 1));
    end();
}
END_TEST

/* What is sent to nobody fails each time, and takes no place. */
START_TEST(a_stream_for_nobody_fails_without_a_place)
{
    begin(10, 0, 0);
    struct exchange *x = &w.side[1].x;
    struct message_peer *c = w.side[1].peer;
    const struct schema_datagram wants = {
        .from_gid = {0xfd, [15] = 0}, .from_incarnation = 100, .pool = 1, .qpn = 10, .wants = 32};
    lane_exchange_posted(x, 64);
    ck_assert_ptr_eq(lane_exchange_hear(x, &wants, w.now_ns), c);
    for (int i = 0; i < 20; i++) {
        struct schema_datagram said;
        ck_assert_ptr_null(begin_stream(x, c, 77, 0));
        lane_exchange_say(x, c, &said);
        ck_assert_uint_eq(said.notes, 1);
        ck_assert_uint_eq(said.note[0].kind, SCHEMA_NOTE_FAILED);
        ck_assert_uint_eq(said.note[0].status, IBV_WC_REM_OP_ERR);
    }
    ck_assert_uint_eq(x->used_receivers, 0);
    end();
}
END_TEST

/* Each looks at its own alone, and at some of them at a time. */
START_TEST(streams_of_a_peer_that_is_forgotten_go_some_at_a_time)
{
    enum { STREAMS = 100, OF_ANOTHER = 3 };
    static const uint8_t gid[2][16] = {{0xfd, [15] = 7}, {0xfd, [15] = 8}};
    struct exchange x;
    struct exchange_config config = config_of(0, 100);
    config.receivers = 300;
    ck_assert_int_eq(lane_exchange_init(&x, &config, 1), 0);
    lane_exchange_posted(&x, 2 * STREAMS);
    for (uint32_t i = 0; i < STREAMS + OF_ANOTHER; i++) {
        const bool another = i >= STREAMS;
        struct schema_datagram d = {.from_incarnation = 5, .pool = 1, .qpn = 9, .wants = 1};
        memcpy(d.from_gid, gid[another], 16);
        struct message_peer *c = lane_exchange_hear(&x, &d, 1);
        ck_assert_ptr_nonnull(c);
        const struct schema_message m = {.opens = 1,
                                         .epoch = c->account.epoch,
                                         .credit = another ? i - STREAMS : i,
                                         .stream = i + 1,
                                         .to_incarnation = 100};
        struct stream_receiver *r = lane_exchange_arrive(&x, &m, 1, 0, 1);
        ck_assert_ptr_nonnull(r);
        lane_exchange_took(&x, r);
    }
    ck_assert_uint_eq(x.used_receivers, STREAMS + OF_ANOTHER);
    ck_assert_ptr_nonnull(lane_exchange_know(&x, gid[0], 6, 2)); /* its next life */
    uint32_t looks = 0;
    for (; x.used_receivers > OF_ANOTHER; looks++) {
        const uint32_t before = x.used_receivers;
        lane_exchange_sweep(&x, 2 + config.bound_ns, config.peers);
        ck_assert_uint_le(before - x.used_receivers, 64);
        ck_assert_uint_lt(looks, 4);
    }
    ck_assert_uint_eq(x.used_receivers, OF_ANOTHER);
    ck_assert_uint_eq(looks, 2);
    ck_assert_uint_eq(x.used, 2);
    lane_exchange_free(&x);
}
END_TEST

/* Streams of who was a guest, which may stay for long, are not those of who has its place now. */
START_TEST(the_next_guest_in_a_place_has_none_of_the_streams_of_the_one_before)
{
    enum { GUEST = 1 };
    struct exchange x;
    struct exchange_config config = config_of(0, 100);
    config.receivers = 60;
    config.guests = GUEST;
    ck_assert_int_eq(lane_exchange_init(&x, &config, 1), 0);
    lane_exchange_posted(&x, 200);
    const struct schema_datagram d = {
        .from_gid = {0xfd, [15] = 7}, .from_incarnation = 5, .pool = 1, .qpn = 9, .wants = 1};
    struct message_peer *c = lane_exchange_hear(&x, &d, 1);
    ck_assert_ptr_nonnull(c);
    struct schema_message m = {
        .opens = 1, .epoch = c->account.epoch, .stream = 1, .to_incarnation = 100};
    struct stream_receiver *r;
    for (; (r = lane_exchange_arrive(&x, &m, 1, GUEST, 1)) != NULL; m.credit++, m.stream++) {
        lane_exchange_took(&x, r);
        ck_assert_ptr_eq(lane_exchange_hear(&x, &d, 1), c); /* it has one more credit */
    }
    const uint32_t before = x.used_receivers;
    ck_assert_uint_gt(before, 1);
    ck_assert_uint_eq(x.guest[GUEST].has, before);
    ck_assert_uint_lt(before, config.receivers);
    lane_exchange_guest_gone(&x, GUEST);
    ck_assert_ptr_eq(lane_exchange_hear(&x, &d, 1), c);
    m.credit++;
    m.stream++;
    r = lane_exchange_arrive(&x, &m, 1, GUEST, 1);
    ck_assert_ptr_nonnull(r);
    lane_exchange_took(&x, r);
    ck_assert_uint_eq(x.guest[GUEST].has, 1);
    ck_assert_ptr_nonnull(lane_exchange_know(&x, d.from_gid, 6, 2)); /* its next life */
    for (int n = 0; n < 4; n++)
        lane_exchange_sweep(&x, 2 + config.bound_ns, config.peers);
    ck_assert_uint_eq(x.used_receivers, 0);
    ck_assert_uint_eq(x.guest[GUEST].has, 0);
    lane_exchange_free(&x);
}
END_TEST

/* Nobody else hears of the credit of a message whose VQP goes while it is out. */
START_TEST(who_goes_with_messages_out_keeps_no_credit_from_others)
{
    begin(11, 0, 0);
    struct side *s = &w.side[0];
    for (uint32_t round = 0; round < 400; round++) { /* more than an account has numbers */
        struct stream_sender *t = &s->sender[0];
        (void)lane_stream_out_add(&t->out);
        for (uint32_t n = 0; w.messages == 0; n++) {
            MUST(n < 10000);
            post_message(0, 0);
            speak(0);
            speak(1);
            while (w.datagrams > 0)
                deliver_datagram();
            w.now_ns += STEP_NS;
            lane_exchange_sweep(&s->x, w.now_ns, 4);
        }
        lane_sender_end(&s->x, t);
        *t = (struct stream_sender){.name = base_prng_next(&w.prng) | 1};
        lane_sender_address(&s->x, t, s->peer);
        const struct on_wire m = w.message[--w.messages];
        lane_exchange_credit_back(&s->x, m.from_peer, m.message.epoch, m.message.credit, true,
                                  w.now_ns);
    }
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(all_arrive_where_nothing_is_lost)                                                            \
    T(each_arrives_once_and_in_order_whatever_is_lost_repeated_and_reordered)                      \
    T(credits_that_nobody_uses_come_back)                                                          \
    T(what_is_settled_before_it_has_come_is_taken_for_a_time)                                      \
    T(a_receiver_that_has_forgotten_a_stream_hears_it_again)                                       \
    T(a_peer_that_comes_back_has_no_credit_of_before)                                              \
    T(who_was_silent_while_many_came_has_credit_again)                                             \
    T(a_stream_that_failed_fails_again_until_its_sender_has_heard_it)                              \
    T(two_that_have_no_credit_for_each_other_do_not_talk_without_end)                              \
    T(what_is_dropped_for_its_credit_finds_its_receive_when_it_comes_again)                        \
    T(what_comes_twice_keeps_nothing)                                                              \
    T(what_was_set_aside_once_is_not_said_long_after)                                              \
    T(who_has_no_place_for_a_stream_says_so_and_takes_others)                                      \
    T(a_stream_that_has_ended_leaves_its_place_to_others)                                          \
    T(a_stream_for_nobody_fails_without_a_place)                                                   \
    T(streams_of_a_peer_that_is_forgotten_go_some_at_a_time)                                       \
    T(the_next_guest_in_a_place_has_none_of_the_streams_of_the_one_before)                         \
    T(who_goes_with_messages_out_keeps_no_credit_from_others)
KEDGE_CHECK_MAIN("agent.lane.message_exchange", TESTS)
