/* SPDX-License-Identifier: Apache-2.0 */
/* Credits between one receiver and several senders, over a network that loses, repeats and
 * reorders what says something of credits, and reorders messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message/credit.h"
#include "../../check_main.h"

/* Where nothing is so late that time matters. */
static int hear_granted(struct credit_purse *p, uint32_t epoch, uint32_t granted, uint32_t used)
{
    return lane_credit_granted(p, &(struct credit_said){epoch, granted, used}, 0, 1);
}

static void init_bank(struct credit_bank *b, uint32_t first)
{
    lane_credit_bank_init(b, (const uint64_t[2]){first, 1}, first);
}

static uint32_t take_one(struct credit_purse *p)
{
    return lane_credit_take_some(p, 1);
}

enum { RECEIVES = 64, PEERS = 5, STEPS = 20000, PACKETS = 64, OUT = 512 };

static uint64_t random_state;

static uint32_t pick(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

/* ---- alone */

START_TEST(a_credit_buys_one_receive)
{
    struct credit_bank b;
    struct credit_account a;
    struct credit_purse p = {0};
    init_bank(&b, 7);
    lane_credit_posted(&b, 8);
    lane_credit_account_open(&b, &a);
    ck_assert_uint_eq(lane_credit_grant(&b, &a, 3), 3);
    ck_assert_int_eq(hear_granted(&p, a.epoch, a.granted, 0), 0);
    ck_assert_uint_eq(lane_credit_left(&p), 3);
    const uint32_t first = take_one(&p), second = take_one(&p);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, second), 0);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, second), -EEXIST);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, first), 0);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, first), -EEXIST);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, 3), -EPROTO);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch + 1, 2), -ESTALE);
    ck_assert_uint_eq(b.promised, 1);
    ck_assert_uint_eq(b.posted, 2);
}
END_TEST

START_TEST(numbers_go_on_over_their_end)
{
    struct credit_bank b;
    struct credit_account a;
    struct credit_purse p = {0};
    init_bank(&b, UINT32_MAX - 1);
    lane_credit_posted(&b, 8);
    lane_credit_account_open(&b, &a);
    lane_credit_account_close(&b, &a);
    lane_credit_account_open(&b, &a);
    const uint32_t epoch = a.epoch;
    ck_assert_uint_gt(epoch, 0);
    ck_assert_uint_le(epoch, 2 * CREDIT_STEP_MOST); /* which is behind UINT32_MAX */
    a.granted = a.window.first = UINT32_MAX - 1;
    ck_assert_uint_eq(lane_credit_grant(&b, &a, 4), 4);
    p = (struct credit_purse){.epoch = epoch,
                              .granted = UINT32_MAX - 1,
                              .next = UINT32_MAX - 1,
                              .window = {.first = UINT32_MAX - 1}};
    ck_assert_int_eq(hear_granted(&p, epoch, a.granted, 0), 0);
    ck_assert_uint_eq(lane_credit_left(&p), 4);
    for (int i = 0; i < 4; i++) {
        const uint32_t number = take_one(&p);
        ck_assert_int_eq(lane_credit_arrive(&b, &a, epoch, number), 0);
        lane_credit_posted(&b, 1);
        lane_credit_over(&p, epoch, number);
    }
    ck_assert_uint_eq(p.window.first, 2);
    ck_assert_uint_eq(a.window.first, 2);
    ck_assert_int_eq(lane_credit_settle(&b, &a, epoch, UINT32_MAX), 0);
    ck_assert_int_eq(lane_credit_settle(&b, &a, epoch, 3), -EPROTO);
}
END_TEST

/* Of two lives of a lane, and of two lanes: nobody who is told some of one's knows the next, or
 * those of another. */
START_TEST(epochs_differ_by_chance_and_keep_their_order)
{
    enum { LIVES = 3, ACCOUNTS = 2000, IN_ORDER = 100 };
    static uint32_t epochs[LIVES][ACCOUNTS];
    uint64_t sum = 0;
    for (uint32_t life = 0; life < LIVES; life++) {
        struct credit_bank b;
        struct credit_account a;
        lane_credit_bank_init(&b, (const uint64_t[2]){5, life % 2}, UINT32_MAX - 7);
        for (uint32_t i = 0; i < ACCOUNTS; i++) {
            lane_credit_account_open(&b, &a);
            epochs[life][i] = a.epoch;
            ck_assert_uint_ne(a.epoch, 0);
        }
    }
    ck_assert_mem_eq(epochs[0], epochs[2], sizeof epochs[0]); /* by its key alone */
    uint32_t alike = 0, first = UINT32_MAX - 7;
    for (uint32_t i = 0; i < ACCOUNTS; first = epochs[0][i++]) {
        const uint32_t step = epochs[0][i] - first;
        ck_assert_uint_ge(step, 1);
        ck_assert_uint_le(step, CREDIT_STEP_MOST);
        sum += step;
        alike += epochs[0][i] == epochs[1][i];
        struct credit_purse p = {0};
        ck_assert_int_eq(hear_granted(&p, epochs[0][i], 1, 0), 0);
        const uint32_t later = epochs[0][i + IN_ORDER < ACCOUNTS ? i + IN_ORDER : ACCOUNTS - 1];
        ck_assert_int_eq(hear_granted(&p, later, 2, 0), 0);
        ck_assert_int_eq(hear_granted(&p, epochs[0][i], 3, 0), 0);
        ck_assert_uint_eq(p.epoch, later);
    }
    ck_assert_uint_lt(alike, 3);
    ck_assert_uint_gt(sum / ACCOUNTS, CREDIT_STEP_MOST / 2 - CREDIT_STEP_MOST / 20);
    ck_assert_uint_lt(sum / ACCOUNTS, CREDIT_STEP_MOST / 2 + CREDIT_STEP_MOST / 20);
}
END_TEST

/* Half of all numbers are soon between two accounts, if others come and go. */
START_TEST(an_account_is_another_when_nothing_of_the_former_one_is_under_way)
{
    enum { LATE_NS = 1000, AT_NS = 50 };
    struct credit_purse p = {0};
    const struct credit_said former = {.epoch = 9, .granted = 5},
                             other = {.epoch = 9u - (1u << 20), .granted = 3};
    ck_assert_int_eq(lane_credit_granted(&p, &former, AT_NS, LATE_NS), 0);
    ck_assert_int_eq(lane_credit_granted(&p, &other, AT_NS + LATE_NS - 1, LATE_NS), 0);
    ck_assert_uint_eq(p.epoch, former.epoch);
    ck_assert_int_eq(lane_credit_granted(&p, &other, AT_NS + LATE_NS, LATE_NS), 0);
    ck_assert_uint_eq(p.epoch, other.epoch);
    ck_assert_uint_eq(lane_credit_left(&p), 3);
    ck_assert_int_eq(lane_credit_granted(&p, &former, AT_NS + LATE_NS, LATE_NS), 0);
    ck_assert_uint_eq(p.epoch, former.epoch); /* the later one at once */
}
END_TEST

START_TEST(who_comes_later_finds_as_much_as_others_have)
{
    struct credit_bank b;
    struct credit_account a[4];
    init_bank(&b, 0);
    lane_credit_posted(&b, 100);
    for (int i = 0; i < 4; i++)
        lane_credit_account_open(&b, &a[i]);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[0], 1000), 50);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[0], 1000), 0);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[1], 1000), 25);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[2], 1000), 13);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[3], 1000), 6);
    ck_assert_uint_eq(lane_credit_grant(&b, &a[0], 1), 0);
    lane_credit_account_close(&b, &a[0]);
    ck_assert_uint_eq(b.promised, 44);
    ck_assert_uint_gt(lane_credit_grant(&b, &a[3], 1000), 20);
}
END_TEST

START_TEST(what_is_left_is_given_back_as_if_it_were_used)
{
    struct credit_bank b;
    struct credit_account a;
    struct credit_purse p = {0};
    init_bank(&b, 0);
    lane_credit_posted(&b, 16);
    lane_credit_account_open(&b, &a);
    lane_credit_grant(&b, &a, 8);
    ck_assert_int_eq(hear_granted(&p, a.epoch, a.granted, 0), 0);
    const uint32_t out = take_one(&p);
    ck_assert(lane_credit_return(&p));
    ck_assert(!lane_credit_return(&p));
    ck_assert_uint_eq(p.window.first, out); /* it is under way yet */
    ck_assert_int_eq(lane_credit_settle(&b, &a, a.epoch, p.window.first), 0);
    ck_assert_uint_eq(b.promised, 8);
    lane_credit_over(&p, p.epoch, out);
    ck_assert_int_eq(lane_credit_settle(&b, &a, a.epoch, p.window.first), 0);
    ck_assert_uint_eq(b.promised, 0);
}
END_TEST

START_TEST(what_a_peer_says_in_vain_changes_nothing)
{
    struct credit_purse p = {0};
    ck_assert_int_eq(hear_granted(&p, 0, 5, 0), -EPROTO);
    ck_assert_int_eq(hear_granted(&p, 9, CREDITS_OPEN + 1, 0), -EPROTO);
    ck_assert_int_eq(hear_granted(&p, 9, 5, 0), 0);
    ck_assert_int_eq(hear_granted(&p, 9, 4, 0), 0); /* said before */
    ck_assert_int_eq(hear_granted(&p, 8, 100, 0), 0);
    ck_assert_uint_eq(lane_credit_left(&p), 5);
    ck_assert_int_eq(hear_granted(&p, 9, CREDITS_OPEN + 1, 0), -EPROTO);
    ck_assert_uint_eq(lane_credit_left(&p), 5);
    lane_credit_over(&p, 8, 77);
    ck_assert_int_eq(hear_granted(&p, 10, 2, 0), 0);
    ck_assert_uint_eq(lane_credit_left(&p), 2);
}
END_TEST

START_TEST(what_broke_is_over_when_its_queue_pair_has_rested)
{
    struct credit_purse p = {0};
    enum { REST = 1000 };
    ck_assert_int_eq(hear_granted(&p, 1, 8, 0), 0);
    for (int i = 0; i < 4; i++)
        (void)take_one(&p);
    lane_credit_broke(&p, 1, 0, 10);
    lane_credit_broke(&p, 1, 1, 10);
    lane_credit_broke(&p, 1, 2, 500); /* while those rest */
    lane_credit_broke(&p, 1, 3, 900);
    lane_credit_look(&p, 1009, REST);
    ck_assert_uint_eq(p.window.first, 0);
    lane_credit_look(&p, 1010, REST);
    ck_assert_uint_eq(p.window.first, 2);
    lane_credit_look(&p, 1899, REST);
    ck_assert_uint_eq(p.window.first, 2);
    ck_assert(lane_credit_is_resting(&p));
    lane_credit_look(&p, 1900, REST);
    ck_assert_uint_eq(p.window.first, 4);
    ck_assert(!lane_credit_is_resting(&p));
}
END_TEST

/* Its peer has the account yet: what has arrived under it is not used again. */
START_TEST(a_purse_that_was_forgotten_begins_behind_what_was_used)
{
    struct credit_bank b;
    struct credit_account a;
    struct credit_purse p = {0};
    init_bank(&b, 0);
    lane_credit_posted(&b, 400);
    lane_credit_account_open(&b, &a);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(lane_credit_grant(&b, &a, 1), 1);
        ck_assert_int_eq(hear_granted(&p, a.epoch, a.granted, lane_credit_used(&a)), 0);
        const uint32_t number = take_one(&p);
        lane_credit_over(&p, p.epoch, number);
        if (i % 10 == 3)
            continue; /* it was lost */
        ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, number), 0);
        lane_credit_posted(&b, 1);
        (void)lane_credit_settle(&b, &a, p.epoch, i % 100 == 99 ? p.window.first : 0);
    }
    lane_credit_grant(&b, &a, 5);
    p = (struct credit_purse){.epoch = 0};
    ck_assert_int_eq(hear_granted(&p, a.epoch, a.granted, lane_credit_used(&a)), 0);
    ck_assert_uint_eq(lane_credit_left(&p), 5);
    ck_assert_int_eq(lane_credit_arrive(&b, &a, p.epoch, take_one(&p)), 0);
    (void)lane_credit_return(&p);
    lane_credit_over(&p, p.epoch, p.window.first);
    ck_assert_int_eq(lane_credit_settle(&b, &a, p.epoch, p.window.first), 0);
    ck_assert_uint_eq(b.promised, 0);
}
END_TEST

/* ---- over an unkind network */

/* What says something of an account: a grant, or what is settled. */
struct packet {
    bool is_grant;
    uint32_t peer, epoch, number, used;
};

struct message {
    uint32_t peer, epoch, number;
};

static struct credit_bank bank;
static struct credit_account accounts[PEERS];
static struct credit_purse purses[PEERS];
static struct packet packets[PACKETS];
static uint32_t packet_count;
static struct message out[OUT];
static uint32_t out_count;
static uint64_t arrived;

static void say(struct packet l)
{
    if (packet_count < PACKETS && pick(4) != 0)
        packets[packet_count++] = l;
}

static void hear(void)
{
    if (packet_count == 0)
        return;
    const uint32_t i = pick(packet_count);
    const struct packet l = packets[i];
    if (pick(8) != 0) /* else it comes again */
        packets[i] = packets[--packet_count];
    if (l.is_grant)
        ck_assert_int_eq(hear_granted(&purses[l.peer], l.epoch, l.number, l.used), 0);
    else
        ck_assert_int_ne(lane_credit_settle(&bank, &accounts[l.peer], l.epoch, l.number), -EPROTO);
}

static void say_settled(uint32_t peer)
{
    say((struct packet){
        .peer = peer, .epoch = purses[peer].epoch, .number = purses[peer].window.first});
}

static void end_message(uint32_t i)
{
    const struct message m = out[i];
    out[i] = out[--out_count];
    lane_credit_over(&purses[m.peer], m.epoch, m.number);
}

/* One of those that are out arrives, or its queue pair breaks before it or behind it. */
static void deliver(void)
{
    if (out_count == 0)
        return;
    const uint32_t i = pick(out_count), how = pick(10);
    const struct message m = out[i];
    if (how != 0) {
        ck_assert_uint_gt(bank.posted, 0);
        ck_assert_int_eq(lane_credit_arrive(&bank, &accounts[m.peer], m.epoch, m.number), 0);
        lane_credit_posted(&bank, 1);
        arrived++;
    }
    end_message(i);
}

/* As it says of itself: the last of its numbers that is over, looked for. */
static uint32_t find_used(const struct credit_account *a)
{
    uint32_t used = a->granted;
    while (used != a->window.first &&
           (a->window.over[(used - 1) % CREDITS_OPEN / 64] >> (used - 1) % 64 & 1) == 0)
        used--;
    return used;
}

static void step(void)
{
    const uint32_t peer = pick(PEERS);
    struct credit_account *a = &accounts[peer];
    struct credit_purse *p = &purses[peer];
    switch (pick(6)) {
    case 0:
        lane_credit_grant(&bank, a, pick(12));
        say((struct packet){.is_grant = true,
                            .peer = peer,
                            .epoch = a->epoch,
                            .number = a->granted,
                            .used = lane_credit_used(a)});
        break;
    case 1:
        hear();
        break;
    case 2:
        if (out_count < OUT && lane_credit_left(p) > 0)
            out[out_count++] = (struct message){peer, p->epoch, take_one(p)};
        break;
    case 3:
        deliver();
        break;
    case 4:
        say_settled(peer);
        break;
    default:
        if (pick(50) == 0)
            lane_credit_return(p);
        if (pick(50) == 0 && a->promised == 0 && a->window.first == a->granted) {
            lane_credit_account_close(&bank, a);
            lane_credit_account_open(&bank, a);
        }
    }
    ck_assert_uint_le(bank.promised, bank.posted);
    ck_assert_uint_eq(bank.posted, RECEIVES);
    for (uint32_t i = 0; i < PEERS; i++)
        ck_assert_uint_eq(lane_credit_used(&accounts[i]), find_used(&accounts[i]));
}

/* When all is over, nothing is promised to anybody. */
static void end_all(void)
{
    while (out_count > 0)
        end_message(0);
    for (uint32_t i = 0; i < PEERS; i++) {
        ck_assert_int_eq(hear_granted(&purses[i], accounts[i].epoch, accounts[i].granted,
                                      lane_credit_used(&accounts[i])),
                         0);
        lane_credit_return(&purses[i]);
        ck_assert_int_eq(
            lane_credit_settle(&bank, &accounts[i], purses[i].epoch, purses[i].window.first), 0);
        ck_assert_uint_eq(accounts[i].promised, 0);
    }
    ck_assert_uint_eq(bank.promised, 0);
}

START_TEST(no_more_is_promised_than_is_posted_whatever_is_lost)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        random_state = seed * 0x9e3779b97f4a7c15ull;
        packet_count = out_count = 0;
        arrived = 0;
        memset(purses, 0, sizeof purses);
        init_bank(&bank, seed == 1 ? UINT32_MAX - 3 : seed);
        lane_credit_posted(&bank, RECEIVES);
        for (uint32_t i = 0; i < PEERS; i++)
            lane_credit_account_open(&bank, &accounts[i]);
        for (uint32_t i = 0; i < STEPS; i++)
            step();
        ck_assert_uint_gt(arrived, STEPS / 40);
        end_all();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_credit_buys_one_receive)                                                                   \
    T(numbers_go_on_over_their_end)                                                                \
    T(epochs_differ_by_chance_and_keep_their_order)                                                \
    T(an_account_is_another_when_nothing_of_the_former_one_is_under_way)                           \
    T(who_comes_later_finds_as_much_as_others_have)                                                \
    T(what_is_left_is_given_back_as_if_it_were_used)                                               \
    T(what_a_peer_says_in_vain_changes_nothing)                                                    \
    T(what_broke_is_over_when_its_queue_pair_has_rested)                                           \
    T(a_purse_that_was_forgotten_begins_behind_what_was_used)                                      \
    T(no_more_is_promised_than_is_posted_whatever_is_lost)
KEDGE_CHECK_MAIN("agent.lane.credit", TESTS)
