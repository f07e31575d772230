/* SPDX-License-Identifier: Apache-2.0 */
/* A stream over what loses, repeats, delays and reorders: each message is taken once, in order, and
 * each is acknowledged once. */
#include <errno.h>
#include <string.h>

#include "message/message_stream.h"

#include "../../check_main.h"

enum { AIR = 128, MESSAGES = 1000, SEEDS = 20, LIMIT = 400000 };

static const struct stream_patience patience = {
    .ask_ns = 1000, .questions = 40, .refused_ns = 1000000};

static uint64_t random_state;

static uint32_t pick(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

/* ---- alone */

static const uint64_t never = UINT64_MAX;

static struct stream_out begin(uint32_t messages)
{
    struct stream_out s = {0};
    for (uint32_t i = 0; i < messages; i++)
        ck_assert_uint_eq(lane_stream_out_add(&s), i);
    return s;
}

static void post(struct stream_out *s, uint32_t messages, uint64_t now_ns)
{
    for (uint32_t i = 0; i < messages; i++) {
        ck_assert(lane_stream_out_may_post(s, now_ns));
        lane_stream_out_posted(s, now_ns);
    }
}

/* A receiver's agent that lies says one of these again and again. */
static uint64_t time_until_starved(int (*hear)(struct stream_out *s, uint32_t number, uint64_t ns))
{
    struct stream_out s = begin(1);
    uint64_t now_ns = 1, due_ns;
    post(&s, 1, now_ns);
    for (; lane_stream_out_look(&s, &patience, now_ns, &due_ns) != STREAM_STARVED; now_ns += 500) {
        ck_assert_uint_le(now_ns, 2 * lane_stream_stuck_ns(&patience));
        ck_assert_int_eq(hear(&s, 0, now_ns), 0);
        if (lane_stream_out_may_post(&s, now_ns))
            lane_stream_out_posted(&s, now_ns);
    }
    return now_ns;
}

START_TEST(who_says_for_ever_that_it_took_nothing_is_given_up)
{
    const uint64_t most_ns = lane_stream_stuck_ns(&patience);
    ck_assert_uint_le(time_until_starved(lane_stream_out_answered), most_ns + 1000);
    ck_assert_uint_le(time_until_starved(lane_stream_out_taken), most_ns + 1000);
}
END_TEST

START_TEST(who_takes_one_now_and_then_is_not)
{
    struct stream_out s = begin(20);
    const uint64_t step_ns = lane_stream_stuck_ns(&patience) / 2;
    uint64_t due_ns;
    post(&s, 20, 0);
    for (uint32_t i = 1; i < 20; i++) {
        ck_assert_int_eq(lane_stream_out_taken(&s, i, i * step_ns), 1);
        ck_assert_int_ne(lane_stream_out_look(&s, &patience, i * step_ns, &due_ns), STREAM_STARVED);
    }
}
END_TEST

/* Its queue pair broke, and for long there was no other way to its peer: nothing was out. */
START_TEST(who_could_not_be_reached_for_long_has_all_its_time_yet)
{
    const uint64_t most_ns = lane_stream_stuck_ns(&patience), later_ns = 100 * most_ns;
    struct stream_out s = begin(2);
    uint64_t due_ns, now_ns = later_ns;
    post(&s, 2, 0);
    lane_stream_out_lost(&s, 0);
    ck_assert_int_eq(lane_stream_out_look(&s, &patience, most_ns, &due_ns), STREAM_WAITS);
    post(&s, 2, later_ns);
    ck_assert_int_eq(lane_stream_out_look(&s, &patience, later_ns, &due_ns), STREAM_WAITS);
    for (; lane_stream_out_look(&s, &patience, now_ns, &due_ns) != STREAM_STARVED; now_ns += 500)
        ck_assert_int_eq(lane_stream_out_taken(&s, 0, now_ns), 0);
    ck_assert_uint_ge(now_ns - later_ns, most_ns - 1000);
    ck_assert_uint_le(now_ns - later_ns, most_ns + 1000);
}
END_TEST

START_TEST(what_is_refused_goes_again_alone_until_it_is_taken)
{
    struct stream_out s = begin(4);
    uint64_t due_ns;
    post(&s, 4, 0);
    ck_assert_int_eq(lane_stream_out_refused(&s, 1, 500, 100), 1);
    ck_assert(!lane_stream_out_may_post(&s, 599));
    ck_assert_int_eq(lane_stream_out_look(&s, &patience, 599, &due_ns), STREAM_WAITS);
    ck_assert_uint_eq(due_ns, 600);
    post(&s, 1, 600);
    ck_assert(!lane_stream_out_may_post(&s, 600));
    ck_assert_int_eq(lane_stream_out_taken(&s, 2, 700), 1);
    post(&s, 2, 700);
    ck_assert_int_eq(lane_stream_out_taken(&s, 4, 800), 2);
    ck_assert_int_eq(lane_stream_out_look(&s, &patience, never - 1, &due_ns), STREAM_WAITS);
    ck_assert_uint_eq(due_ns, never);
}
END_TEST

START_TEST(who_has_no_buffer_for_too_long_starves_its_sender)
{
    struct stream_out s = begin(2);
    uint64_t now_ns = 1, due_ns;
    post(&s, 2, now_ns);
    for (;;) {
        ck_assert_int_eq(lane_stream_out_refused(&s, 0, 1000, now_ns), 0);
        const enum stream_due due = lane_stream_out_look(&s, &patience, now_ns, &due_ns);
        if (due == STREAM_STARVED)
            break;
        ck_assert_int_eq(due, STREAM_WAITS);
        ck_assert_uint_gt(due_ns, now_ns);
        now_ns = due_ns;
        if (lane_stream_out_may_post(&s, now_ns))
            lane_stream_out_posted(&s, now_ns);
    }
    ck_assert_uint_eq(now_ns, 1 + patience.refused_ns);
}
END_TEST

START_TEST(who_says_nothing_is_asked_a_bounded_number_of_times)
{
    struct stream_out s = begin(1);
    uint64_t now_ns = 0, due_ns;
    uint32_t asked = 0;
    post(&s, 1, 0);
    for (;;) {
        const enum stream_due due = lane_stream_out_look(&s, &patience, now_ns, &due_ns);
        if (due == STREAM_GONE)
            break;
        asked += due == STREAM_ASKS;
        ck_assert_uint_gt(due_ns, now_ns);
        now_ns = due_ns;
    }
    ck_assert_uint_eq(asked, patience.questions);
    ck_assert_int_eq(lane_stream_out_taken(&s, 0, now_ns), 0); /* a late word */
    ck_assert_int_eq(lane_stream_out_look(&s, &patience, now_ns, &due_ns), STREAM_WAITS);
}
END_TEST

START_TEST(what_a_receiver_cannot_have_taken_is_refused)
{
    struct stream_out s = begin(4);
    post(&s, 2, 0);
    ck_assert_int_eq(lane_stream_out_taken(&s, 3, 1), -EPROTO);
    ck_assert_int_eq(lane_stream_out_refused(&s, 3, 1, 1), -EPROTO);
    ck_assert_int_eq(lane_stream_out_refused(&s, 2, 1, 1),
                     2); /* that one was not sent: a late word */
    ck_assert(lane_stream_out_may_post(&s, 1));
    ck_assert_int_eq(lane_stream_out_taken(&s, 1, 1), 0);
    lane_stream_out_lost(&s, 0);
    lane_stream_out_lost(&s, 2);
    ck_assert_uint_eq(s.next, 2);
}
END_TEST

START_TEST(numbers_go_on_over_their_end)
{
    struct stream_in in = {.next = UINT32_MAX};
    ck_assert_int_eq(lane_stream_in_judge(&in, UINT32_MAX), STREAM_NEXT);
    ck_assert_int_eq(lane_stream_in_judge(&in, 5), STREAM_AHEAD);
    ck_assert_int_eq(lane_stream_in_judge(&in, UINT32_MAX - 5), STREAM_SEEN);
    ck_assert_int_eq(lane_stream_in_judge(&in, UINT32_MAX / 2), STREAM_STRANGE);
    lane_stream_in_taken(&in);
    ck_assert_int_eq(lane_stream_in_judge(&in, 0), STREAM_NEXT);
    ck_assert_int_eq(lane_stream_in_judge(&in, UINT32_MAX), STREAM_SEEN);
}
END_TEST

/* ---- over what carries them */

/* A message, or a word of the receiver's: all before `number` was taken; refused: and that not. */
struct packet {
    bool is_word, refused, is_answer;
    uint32_t number;
};

static struct packet air[AIR];
static uint32_t in_air, taken, over;
static struct stream_in receiver;
static struct stream_out sender;
static bool refuses; /* that it has said last */
static uint64_t now;

static void send(struct packet l)
{
    if (in_air < AIR)
        air[in_air++] = l;
}

/* Words get lost, messages only with their queue pair, which says so. */
static void say(bool is_answer)
{
    if (pick(3) != 0)
        send((struct packet){
            .is_word = true, .refused = refuses, .is_answer = is_answer, .number = receiver.next});
}

static void hear_message(uint32_t number)
{
    switch (lane_stream_in_judge(&receiver, number)) {
    case STREAM_NEXT:
        refuses = pick(6) == 0;
        if (!refuses) {
            ck_assert_uint_eq(number, taken);
            taken++;
            lane_stream_in_taken(&receiver);
        }
        say(false);
        break;
    case STREAM_SEEN:
        say(false);
        break;
    case STREAM_AHEAD:
        break;
    case STREAM_STRANGE:
        ck_abort_msg("%u at %u", number, receiver.next);
    }
}

static void hear_word(const struct packet *l)
{
    const int count = l->refused     ? lane_stream_out_refused(&sender, l->number, pick(3000), now)
                      : l->is_answer ? lane_stream_out_answered(&sender, l->number, now)
                                     : lane_stream_out_taken(&sender, l->number, now);
    ck_assert_int_ge(count, 0);
    over += (uint32_t)count;
    ck_assert_uint_eq(over, sender.first);
    ck_assert_uint_le(over, taken);
}

/* Some comes, out of turn, or once more. A queue pair that breaks takes a message with it, or only
 * the word that it has arrived. */
static void move(void)
{
    if (in_air == 0)
        return;
    const uint32_t i = pick(4) == 0 ? pick(in_air) : 0;
    const struct packet l = air[i];
    const bool breaks = !l.is_word && pick(20) == 0;
    if (pick(10) != 0) {
        memmove(&air[i], &air[i + 1], (in_air - i - 1) * sizeof air[0]);
        in_air--;
    }
    if (breaks) {
        if (pick(2) != 0)
            hear_message(l.number);
        lane_stream_out_lost(&sender, l.number);
    } else if (l.is_word) {
        hear_word(&l);
    } else {
        hear_message(l.number);
    }
}

static void look(void)
{
    uint64_t due_ns;
    const enum stream_due due = lane_stream_out_look(&sender, &patience, now, &due_ns);
    ck_assert(due != STREAM_GONE && due != STREAM_STARVED);
    if (due == STREAM_ASKS)
        say(true);
}

static void step(void)
{
    now += pick(200);
    if (sender.end < MESSAGES && lane_stream_out_has_room(&sender) && pick(2) == 0)
        lane_stream_out_add(&sender);
    if (in_air + 8 < AIR && lane_stream_out_may_post(&sender, now)) {
        send((struct packet){.number = sender.next});
        lane_stream_out_posted(&sender, now);
    }
    if (pick(3) != 0)
        move();
    look();
}

START_TEST(each_is_taken_once_and_in_order_whatever_is_lost)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        random_state = seed * 0x9e3779b97f4a7c15ull;
        in_air = taken = over = 0;
        now = 1;
        refuses = false;
        receiver = (struct stream_in){0};
        sender = (struct stream_out){0};
        uint32_t steps = 0;
        while (over < MESSAGES && steps++ < LIMIT)
            step();
        ck_assert_msg(over == MESSAGES, "seed %u stands still at %u of %u", seed, over, taken);
        ck_assert_uint_eq(taken, MESSAGES);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_says_for_ever_that_it_took_nothing_is_given_up)                                          \
    T(who_takes_one_now_and_then_is_not)                                                           \
    T(who_could_not_be_reached_for_long_has_all_its_time_yet)                                      \
    T(what_is_refused_goes_again_alone_until_it_is_taken)                                          \
    T(who_has_no_buffer_for_too_long_starves_its_sender)                                           \
    T(who_says_nothing_is_asked_a_bounded_number_of_times)                                         \
    T(what_a_receiver_cannot_have_taken_is_refused)                                                \
    T(numbers_go_on_over_their_end)                                                                \
    T(each_is_taken_once_and_in_order_whatever_is_lost)
KEDGE_CHECK_MAIN("agent.lane.message_stream", TESTS)
