/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a connection beside DC, and who loses it, with seeds: what is sampled, when connections
 * are made, fail and break is drawn; what must hold is looked at after each step. */
#include <stdint.h>
#include <string.h>

#include "../../check_main.h"
#include "resolve/link_choice.h"

enum { ENDPOINTS = 256, TENANTS = 8, MOST = 16 };
/* A sanitizer takes ten times as long, and sees no more in the next four dozen. */
#if defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 16 };
#else
enum { SEEDS = 64 };
#endif

static struct link_choice c;
static uint64_t seed;
static uint32_t now_ms;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % below;
}

static void begin(uint64_t with)
{
    seed = with;
    now_ms = 1000;
    ck_assert_int_eq(lane_link_choice_init(&c, ENDPOINTS, TENANTS, MOST), 0);
}

/* What must hold always. */
static void look(void)
{
    uint32_t held = 0, making = 0, of[TENANTS] = {0};
    for (uint32_t i = 0; i < ENDPOINTS; i++) {
        const struct link_score *s = &c.of[i];
        if (s->state == LINK_FREE)
            continue;
        held++;
        making += s->state == LINK_MADE;
        of[s->tenant]++;
        ck_assert_uint_eq(c.holders[s->place], i);
    }
    ck_assert_uint_eq(c.held, held);
    ck_assert_uint_le(c.held, MOST);
    ck_assert_uint_eq(c.making, making);
    ck_assert_uint_le(c.making, LINK_MAKING);
    ck_assert_int_eq(memcmp(of, c.tenant_held, sizeof of), 0);
}

/* A sample, and what a lane makes of it: a connection that is made at once, or one that goes. */
static uint32_t sample(uint32_t endpoint, uint32_t tenant)
{
    uint32_t victim;
    lane_link_choice_sample(&c, endpoint, tenant, 1, now_ms);
    if (!lane_link_choice_wants(&c, endpoint, now_ms, &victim))
        return LINK_NONE;
    if (victim != LINK_NONE) {
        lane_link_choice_leave(&c, victim, false, now_ms);
        lane_link_choice_over(&c, victim, now_ms);
        return victim;
    }
    lane_link_choice_begin(&c, endpoint, now_ms);
    lane_link_choice_linked(&c, endpoint, now_ms);
    return LINK_NONE;
}

/* So long samples of one endpoint each millisecond. */
static void use(uint32_t endpoint, uint32_t tenant, uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i++, now_ms++)
        (void)sample(endpoint, tenant);
}

START_TEST(what_is_used_much_gets_one_and_what_is_used_now_and_then_does_not)
{
    begin(1);
    for (uint32_t ms = 0; ms < 4000; ms++, now_ms++) {
        (void)sample(1, 0);
        if (ms % 64 == 0)
            (void)sample(2, 0);
        look();
    }
    ck_assert_uint_eq(c.of[1].state, LINK_HELD);
    ck_assert_uint_eq(c.of[2].state, LINK_FREE);
    lane_link_choice_fini(&c);
}
END_TEST

START_TEST(one_that_is_idle_makes_room_and_one_that_nobody_uses_goes_by_itself)
{
    begin(2);
    for (uint32_t i = 0; i < MOST; i++)
        use(i, 0, 100);
    ck_assert_uint_eq(c.held, MOST);
    now_ms += 10 * LINK_HALF_MS; /* none is used */
    use(100, 1, 100);
    ck_assert_uint_eq(c.of[100].state, LINK_HELD);
    ck_assert_uint_eq(lane_link_choice_unused(&c, now_ms), LINK_NONE);
    now_ms += 2 * LINK_UNUSED_MS;
    (void)lane_link_choice_unused(&c, now_ms); /* which sees that they are idle */
    now_ms += 2 * LINK_UNUSED_MS;
    for (uint32_t i; (i = lane_link_choice_unused(&c, now_ms)) != LINK_NONE;) {
        lane_link_choice_leave(&c, i, false, now_ms);
        lane_link_choice_over(&c, i, now_ms);
        look();
    }
    ck_assert_uint_eq(c.held, 0);
    lane_link_choice_fini(&c);
}
END_TEST

/* Of as many as there are and one more, all used alike, none displaces another. */
START_TEST(equal_ones_do_not_take_turns)
{
    begin(3);
    uint32_t moves = 0;
    for (uint32_t ms = 0; ms < 20000; ms++, now_ms++)
        for (uint32_t i = 0; i < MOST + 1; i++)
            moves += sample(i, 0) != LINK_NONE;
    ck_assert_uint_eq(c.held, MOST);
    ck_assert_uint_eq(moves, 0);
    lane_link_choice_fini(&c);
}
END_TEST

/* However many endpoints one tenant floods, and with whatever others begin: who has no more than a
 * share keeps what it uses, and who has less gets its share. */
START_TEST(a_flood_takes_no_connection_in_use_from_who_has_no_more_than_a_share)
{
    for (uint64_t s = 1; s <= SEEDS; s++) {
        begin(s);
        const uint32_t others = 1 + draw(TENANTS - 1), share = MOST / (others + 1);
        const bool flood_first = draw(2);
        for (uint32_t ms = 0; ms < 6000; ms++, now_ms++) {
            for (uint32_t i = 0; i < 128 && (flood_first || ms > 1000); i++)
                (void)sample(64 + draw(48), 0);
            for (uint32_t t = 1; t <= others && (!flood_first || ms > 1000); t++)
                for (uint32_t e = 0; e < share; e++) {
                    const uint32_t mine = 8 * t + e;
                    const bool had = c.of[mine].state == LINK_HELD;
                    (void)sample(mine, t);
                    ck_assert(!had || c.of[mine].state == LINK_HELD);
                    if (draw(4) == 0) /* the flood goes there too */
                        (void)sample(mine, 0);
                }
            for (uint32_t t = 1; ms > 1200 && t <= others; t++) {
                const bool kept = c.tenant_held[t] >= share;
                ck_assert_msg(kept || ms < 4000, "seed %u: tenant %u has %u of %u", (unsigned)s, t,
                              c.tenant_held[t], share);
            }
            if (ms % 64 == 0)
                look();
        }
        lane_link_choice_fini(&c);
    }
}
END_TEST

START_TEST(a_connection_is_its_makers_while_that_one_uses_it)
{
    begin(5);
    use(1, 1, 100);
    ck_assert_uint_eq(c.tenant_held[1], 1);
    for (uint32_t ms = 0; ms < 2000; ms++, now_ms++) {
        (void)sample(1, 1);
        for (uint32_t i = 0; i < 16; i++)
            (void)sample(1, 2);
        ck_assert_uint_eq(c.of[1].tenant, 1);
    }
    use(1, 2, 10 * LINK_HALF_MS);
    ck_assert_uint_eq(c.of[1].tenant, 2);
    ck_assert_uint_eq(c.tenant_held[1], 0);
    look();
    lane_link_choice_fini(&c);
}
END_TEST

START_TEST(who_refuses_is_asked_ever_more_seldom)
{
    begin(6);
    uint32_t asked = 0;
    for (uint32_t ms = 0; ms < 200000; ms++, now_ms++) {
        uint32_t victim;
        lane_link_choice_sample(&c, 1, 0, 1, now_ms);
        if (!lane_link_choice_wants(&c, 1, now_ms, &victim))
            continue;
        ck_assert_uint_eq(victim, LINK_NONE);
        lane_link_choice_begin(&c, 1, now_ms);
        lane_link_choice_leave(&c, 1, true, now_ms);
        lane_link_choice_over(&c, 1, now_ms);
        asked++;
    }
    ck_assert_uint_ge(asked, 5);
    ck_assert_uint_le(asked, 10); /* 1, 2, 4 ... 64 s */
    lane_link_choice_fini(&c);
}
END_TEST

/* As a clock of 32 bits has it: half of it is to come, and then it comes round. */
START_TEST(who_has_failed_once_is_not_barred_for_weeks)
{
    static const uint32_t days[] = {1, 24, 26, 30, 48};
    for (uint32_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        uint32_t victim;
        begin(i);
        lane_link_choice_sample(&c, 0, 0, LINK_WANTS, now_ms);
        lane_link_choice_begin(&c, 0, now_ms);
        lane_link_choice_leave(&c, 0, true, now_ms);
        lane_link_choice_over(&c, 0, now_ms);
        ck_assert(!lane_link_choice_wants(&c, 0, now_ms, &victim));
        now_ms += days[i] * 24 * 3600 * 1000;
        lane_link_choice_sample(&c, 0, 0, LINK_WANTS, now_ms);
        ck_assert(lane_link_choice_wants(&c, 0, now_ms, &victim));
        lane_link_choice_fini(&c);
    }
}
END_TEST

/* Whatever comes in whatever order: made, failed, broken, left, over, and the clock that wraps. */
START_TEST(it_adds_up_whatever_happens)
{
    for (uint64_t s = 1; s <= SEEDS; s++) {
        begin(s);
        now_ms = UINT32_MAX - 3000;
        for (uint32_t step = 0; step < 20000; step++) {
            const uint32_t e = draw(48), t = draw(TENANTS);
            uint32_t victim = LINK_NONE;
            now_ms += draw(8) == 0;
            lane_link_choice_sample(&c, e, t, 1 + draw(4), now_ms);
            if (lane_link_choice_wants(&c, e, now_ms, &victim) && victim == LINK_NONE)
                lane_link_choice_begin(&c, e, now_ms);
            else if (victim != LINK_NONE)
                lane_link_choice_leave(&c, victim, false, now_ms);
            const uint32_t other = draw(48);
            if (c.of[other].state == LINK_MADE && draw(2))
                lane_link_choice_linked(&c, other, now_ms);
            else if (draw(16) == 0)
                lane_link_choice_leave(&c, other, draw(2), now_ms);
            else if (c.of[other].state == LINK_LEAVES || draw(256) == 0)
                lane_link_choice_over(&c, other, now_ms);
            if (c.of[other].state == LINK_FREE && draw(64) == 0)
                lane_link_choice_forget(&c, other);
            look();
        }
        lane_link_choice_fini(&c);
    }
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(what_is_used_much_gets_one_and_what_is_used_now_and_then_does_not)                        \
    TEST(one_that_is_idle_makes_room_and_one_that_nobody_uses_goes_by_itself)                      \
    TEST(equal_ones_do_not_take_turns)                                                             \
    TEST(a_flood_takes_no_connection_in_use_from_who_has_no_more_than_a_share)                     \
    TEST(a_connection_is_its_makers_while_that_one_uses_it)                                        \
    TEST(who_refuses_is_asked_ever_more_seldom)                                                    \
    TEST(who_has_failed_once_is_not_barred_for_weeks)                                              \
    TEST(it_adds_up_whatever_happens)

KEDGE_CHECK_MAIN("agent.lane.link_choice", TESTS)
