/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of windows, on a plant: a card, or a peer, that does more the more is out, up to a knee,
 * and less beyond it; with noise by a seed, loads that come and go, and completions in bursts. What
 * each comes to is held to the best size that there is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "schedule/window_policy.h"

enum { MS = 1000000, REQUEST_COST = 256, TENANTS = 5, PARTS_MS = 8, WARM_MS = 400, RUN_MS = 2400 };

struct plant {
    double base_ms;     /* that a request takes alone */
    double most;        /* requests in a ms, at the best */
    double knee;        /* with more out than that it does less: */
    double loss;        /* at the worst, that part */
    uint32_t size;      /* of a request, bytes */
    double noise;       /* of what ends in a ms */
    uint32_t gather_ms; /* completions come together, once in so many ms; 0: as they are */
};

struct load {
    const char *name;
    struct plant plant, later; /* later: from the half on; most 0: the same */
    uint32_t wanted, later_wanted;
    uint32_t on_ms, off_ms; /* it comes in bursts; 0: it does not */
    uint32_t floor;
};

static const struct load loads[] = {
    {.name = "few large",
     .plant = {.base_ms = 0.3, .most = 25, .knee = 56, .loss = 0.3, .size = 131072, .noise = 0.02},
     .wanted = 96,
     .floor = 8},
    {.name = "many small",
     .plant = {.base_ms = 0.012, .most = 2300, .knee = 128, .loss = 0.5, .size = 8, .noise = 0.02},
     .wanted = 2048,
     .floor = 8},
    {.name = "load that doubles, on a card of which others have half then",
     .plant = {.base_ms = 0.02, .most = 2000, .knee = 120, .loss = 0.5, .size = 512, .noise = 0.02},
     .later = {.base_ms = 0.03, .most = 900, .knee = 40, .loss = 0.5, .size = 512, .noise = 0.02},
     .wanted = 256,
     .later_wanted = 512,
     .floor = 8},
    {.name = "few, and then many",
     .plant = {.base_ms = 0.02, .most = 2000, .knee = 128, .loss = 0.5, .size = 512, .noise = 0.02},
     .wanted = 24,
     .later_wanted = 1024,
     .floor = 8},
    {.name = "bursts",
     .plant = {.base_ms = 0.02,
               .most = 2000,
               .knee = 100,
               .loss = 0.5,
               .size = 512,
               .noise = 0.05,
               .gather_ms = 2},
     .wanted = 512,
     .on_ms = 7,
     .off_ms = 5,
     .floor = 8},
    {.name = "no knee",
     .plant = {.base_ms = 0.05, .most = 2000, .knee = 1e9, .size = 64, .noise = 0.02},
     .wanted = 300,
     .floor = 8},
};
static const struct load fast = {
    .name = "fast",
    .plant = {.base_ms = 0.02, .most = 1500, .knee = 100, .loss = 0.3, .size = 4096, .noise = 0.02},
    .wanted = 256,
    .floor = 4};
static const struct load slow = {
    .name = "slow",
    .plant = {.base_ms = 0.1, .most = 60, .knee = 1e9, .size = 4096, .noise = 0.02},
    .wanted = 256,
    .floor = 4};

/* ---- the plant */

struct run {
    const struct load *load;
    struct window_finder finder;
    uint32_t fixed; /* with no policy: this size; 0: no limit */
    uint64_t random, work, part[TENANTS];
    double held; /* that have ended, and are not told of yet */
    uint64_t ms, part_of[TENANTS], changes;
    double least_part;
    bool others, shared;
    bool swung;    /* half of what could be done is wanted by nobody now */
    uint32_t asks; /* in place of what the load wants, or 0 */
};

static double draw(struct run *r)
{
    r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(r->random >> 11) * 0x1p-53;
}

static const struct plant *plant_of(const struct run *r)
{
    return r->ms >= WARM_MS + RUN_MS / 2 && r->load->later.most > 0 ? &r->load->later
                                                                    : &r->load->plant;
}

static uint32_t wanted_of(const struct run *r)
{
    const struct load *l = r->load;
    if (r->asks != 0)
        return r->asks;
    const uint32_t wanted =
        l->later_wanted > 0 && r->ms >= WARM_MS + RUN_MS / 2 ? l->later_wanted : l->wanted;
    return l->on_ms == 0 || r->ms % (l->on_ms + l->off_ms) < l->on_ms ? wanted : 0;
}

static double rate_of(const struct plant *p, uint32_t out)
{
    const double alone = out / p->base_ms, rate = alone < p->most ? alone : p->most;
    return out > p->knee ? rate * (1 - p->loss * (1 - p->knee / out)) : rate;
}

/* Tenants have turns for what may be out. */
static void note_parts(struct run *r, uint32_t out, double ended)
{
    for (uint32_t t = 0; t < TENANTS; t++) {
        const uint32_t turn = (uint32_t)((t + r->ms) % TENANTS);
        const uint32_t has = out / TENANTS + (turn < out % TENANTS);
        r->part_of[t] += (uint64_t)(ended * 1000 * has / out);
    }
}

static void look_at_parts(struct run *r)
{
    uint64_t all = 0;
    for (int t = 0; t < TENANTS; t++)
        all += r->part_of[t];
    for (int t = 0; t < TENANTS && all > 0; t++) {
        const double part = (double)r->part_of[t] / (double)all * TENANTS;
        r->least_part = part < r->least_part ? part : r->least_part;
    }
    memset(r->part_of, 0, sizeof r->part_of);
}

static void go_on(struct run *r)
{
    const struct plant *p = plant_of(r);
    const uint32_t wanted = wanted_of(r);
    const uint32_t size = r->finder.policy != NULL ? r->finder.size : r->fixed;
    const uint32_t out = size == 0 || wanted < size ? wanted : size;
    double ended = out == 0 ? 0 : rate_of(p, out) * (1 + p->noise * (2 * draw(r) - 1));
    ended /= r->swung ? 2 : 1;
    if (out > 0)
        note_parts(r, out, ended);
    if (++r->ms % PARTS_MS == 0)
        look_at_parts(r);
    r->held += ended;
    const uint32_t told = p->gather_ms == 0 || r->ms % p->gather_ms == 0 ? (uint32_t)r->held : 0;
    r->held -= told;
    if (r->ms > WARM_MS)
        r->work += (uint64_t)told * (p->size + REQUEST_COST);
    if (r->finder.policy == NULL)
        return;
    const struct window_sample s = {.ns = MS,
                                    .work = (uint64_t)told * (p->size + REQUEST_COST),
                                    .ops = told,
                                    .out = out,
                                    .wanted = wanted,
                                    .floor = r->load->floor,
                                    .may_explore = !r->others,
                                    .shared = r->shared};
    lane_window_finder_take(&r->finder, &s);
    r->changes += r->finder.size != size;
    ck_assert(r->finder.size == 0 || r->finder.size >= r->load->floor);
}

static struct run begin(const struct load *l, enum lane_window_policy policy, uint64_t seed)
{
    struct run r = {.load = l, .random = seed, .least_part = 1};
    if (policy != LANE_WINDOW_STATIC)
        lane_window_finder_begin(&r.finder, lane_window_policy(policy));
    return r;
}

static void run_all(struct run *r)
{
    while (r->ms < WARM_MS + RUN_MS)
        go_on(r);
}

/* The most that one size does, all the time. */
static uint64_t best_of(const struct load *l, uint64_t seed)
{
    uint64_t best = 0;
    for (double size = l->floor; size < 1100; size = size < 1024 ? size * 1.1 + 1 : 2000) {
        struct run r = begin(l, LANE_WINDOW_STATIC, seed);
        r.fixed = size < 1024 ? (uint32_t)size : 0;
        run_all(&r);
        best = r.work > best ? r.work : best;
    }
    return best;
}

static void hold_to_best(enum lane_window_policy policy, bool shared, int percent)
{
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct run r = begin(&loads[i], policy, seed);
            r.shared = shared;
            run_all(&r);
            const double part = 100.0 * (double)r.work / (double)best_of(&loads[i], seed);
            if (getenv("WINDOW_POLICY_SHOW") != NULL)
                printf("%s, %s, seed %d: %.1f %%, size %u, %d changes, least part %.2f\n",
                       r.finder.policy->name, loads[i].name, (int)seed, part, r.finder.size,
                       (int)r.changes, r.least_part);
            ck_assert_msg(part >= percent, "%s with seed %d: %.1f %% of the best size",
                          loads[i].name, (int)seed, part);
            ck_assert_msg(r.least_part >= 0.8, "%s: a tenant had %.2f of its part", loads[i].name,
                          r.least_part);
        }
}

/* ---- */

START_TEST(the_ladder_comes_within_5_percent_of_the_best_size)
{
    hold_to_best(LANE_WINDOW_LADDER, false, 95);
    hold_to_best(LANE_WINDOW_LADDER, true, 95);
}
END_TEST

START_TEST(delay_comes_within_5_percent_of_the_best_size)
{
    hold_to_best(LANE_WINDOW_DELAY, false, 95);
    hold_to_best(LANE_WINDOW_DELAY, true, 95);
}
END_TEST

/* A host that does other things too, and a card that no window helps: what is shared has none. */
START_TEST(what_a_busy_host_does_is_not_taken_for_a_knee)
{
    static const struct load busy = {
        .name = "busy host",
        .plant = {.base_ms = 0.05, .most = 1200, .knee = 1e9, .size = 64, .noise = 0.3},
        .wanted = 64,
        .floor = 8};
    uint64_t limited = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct run r = begin(&busy, LANE_WINDOW_LADDER, seed);
        r.shared = true;
        while (r.ms < WARM_MS + RUN_MS) {
            go_on(&r);
            limited += r.finder.size != 0 && !r.finder.explores;
        }
        ck_assert_double_ge((double)r.work, 0.95 * (double)best_of(&busy, seed));
    }
    ck_assert_uint_le(limited, 20 * (WARM_MS + RUN_MS) / 4);
}
END_TEST

START_TEST(who_finds_that_no_limit_does_best_says_so)
{
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        const bool none = loads[i].plant.knee > 1e8;
        struct run r = begin(&loads[i], LANE_WINDOW_LADDER, 1);
        r.shared = true;
        if (loads[i].later_wanted > 0 || loads[i].later.most > 0)
            continue;
        while (r.ms < WARM_MS + RUN_MS) {
            go_on(&r);
            ck_assert(!r.finder.content || (none && r.finder.size == 0 && !r.finder.explores));
        }
        ck_assert(r.finder.content == none || r.finder.explores);
    }
}
END_TEST

/* One at a time explores. */
START_TEST(two_destinations_of_unlike_speed_have_sizes_of_their_own)
{
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run a = begin(&fast, p, 3), b = begin(&slow, p, 4);
        while (a.ms < WARM_MS + RUN_MS) {
            a.others = b.finder.explores;
            go_on(&a);
            b.others = a.finder.explores;
            go_on(&b);
            ck_assert(!a.finder.explores || !b.finder.explores);
        }
        ck_assert_double_ge((double)a.work, 0.95 * (double)best_of(&fast, 3));
        ck_assert_double_ge((double)b.work, 0.95 * (double)best_of(&slow, 4));
        /* What is slow needs few, and takes no more. */
        ck_assert_uint_ne(b.finder.size, 0);
        ck_assert_uint_le(b.finder.size, 24);
        ck_assert(a.finder.size == 0 || a.finder.size > b.finder.size);
    }
}
END_TEST

/* A tenant that sees what is tried does much meanwhile, and little as soon as a size is kept, or
 * the other way round. */
START_TEST(who_lets_its_load_swing_does_not_have_sizes_tried_all_the_time)
{
    enum { LONG_MS = 20000 };
    for (int much_while_tried = 0; much_while_tried < 2; much_while_tried++) {
        struct run r = begin(&loads[1], LANE_WINDOW_LADDER, 1);
        uint64_t tried = 0;
        r.shared = true;
        while (r.ms < LONG_MS) {
            r.swung = r.finder.explores == (much_while_tried == 0);
            go_on(&r);
            tried += r.finder.explores;
        }
        ck_assert_uint_le(tried, LONG_MS / 5);
        ck_assert_uint_gt(tried, LONG_MS / 100);
    }
}
END_TEST

/* Likewise by what it asks for, where no limit is kept. */
START_TEST(who_asks_for_more_when_nothing_is_tried_does_not_have_it_tried_all_the_time)
{
    enum { LONG_MS = 20000 };
    struct run r = begin(&loads[5], LANE_WINDOW_LADDER, 1);
    uint64_t tried = 0;
    r.shared = true;
    while (r.ms < LONG_MS) {
        r.asks = r.finder.explores ? 40 : 200;
        go_on(&r);
        tried += r.finder.explores;
    }
    ck_assert_uint_le(tried, LONG_MS / 5);
    ck_assert_uint_gt(tried, LONG_MS / 100);
}
END_TEST

START_TEST(idle_time_teaches_nothing)
{
    const struct load *l = &loads[1];
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run r = begin(l, p, 1);
        while (r.ms < WARM_MS || r.finder.explores)
            go_on(&r);
        const uint32_t size = r.finder.size;
        const struct window_sample idle = {
            .ns = MS, .floor = l->floor, .may_explore = true, .wanted = 1, .ops = 1, .work = 300};
        const struct window_sample away = {
            .ns = 900 * MS, .floor = l->floor, .may_explore = true, .wanted = 999, .out = 999};
        for (int i = 0; i < 5000; i++) {
            lane_window_finder_take(&r.finder, &idle);
            lane_window_finder_take(&r.finder, &away);
            ck_assert_uint_eq(r.finder.size, size);
            ck_assert(!r.finder.explores);
        }
    }
}
END_TEST

/* While it tries sizes the load goes: it does not try for ever, and lets others try. */
START_TEST(a_load_that_goes_in_the_middle_ends_the_trying)
{
    const struct load *l = &loads[1];
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run r = begin(l, p, 1);
        while (!r.finder.explores || (p == LANE_WINDOW_LADDER && r.ms < 30))
            go_on(&r);
        const struct window_sample idle = {
            .ns = MS, .floor = l->floor, .wanted = 1, .may_explore = true};
        int ms = 0;
        for (; r.finder.explores && ms < 1000; ms++)
            lane_window_finder_take(&r.finder, &idle);
        ck_assert_int_le(ms, 200);
        while (r.ms < 1000) /* and goes on when it is back */
            go_on(&r);
        ck_assert_uint_gt(r.changes, 2);
    }
}
END_TEST

/* What is out stays more than the size, as when some of it ends slowly: it settles for none. */
START_TEST(what_does_not_settle_does_not_hold_up_the_trying)
{
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run r = begin(&loads[1], p, 1);
        const struct window_sample s = {.ns = MS,
                                        .work = 50 * REQUEST_COST,
                                        .ops = 50,
                                        .out = 600,
                                        .wanted = 600,
                                        .floor = 8,
                                        .may_explore = true};
        int ms = 0;
        do
            lane_window_finder_take(&r.finder, &s);
        while (r.finder.explores && ++ms < 1000);
        ck_assert_int_le(ms, 200);
    }
}
END_TEST

/* A peer with 100 requests out stops: the device's window is closed where it is no larger than that
 * until they fail, and of what others ask for nothing enters. */
START_TEST(a_silent_peer_does_not_keep_others_out)
{
    enum { STUCK = 100, ASKED = 600, ALL_MS = 4000 };
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run r = begin(&loads[1], p, 1);
        int closed = 0, now = 0, most = 0;
        for (int ms = 0; ms < ALL_MS; ms++) {
            const uint32_t size = r.finder.size;
            const uint32_t others = size == 0 ? ASKED : size > STUCK ? size - STUCK : 0;
            const uint32_t ops = others == 0 ? 0 : (uint32_t)rate_of(&loads[1].plant, others);
            const struct window_sample s = {.ns = MS,
                                            .work = (uint64_t)ops * REQUEST_COST,
                                            .ops = ops,
                                            .out = STUCK + others,
                                            .wanted = STUCK + ASKED,
                                            .floor = 8,
                                            .may_explore = true,
                                            .shared = true};
            lane_window_finder_take(&r.finder, &s);
            now = others == 0 ? now + 1 : 0;
            closed += others == 0;
            most = now > most ? now : most;
        }
        ck_assert_int_le(most, 70);
        ck_assert_int_le(closed, ALL_MS / 5);
    }
}
END_TEST

/* A destination's own window is left as it is, and explores no more. */
START_TEST(a_silent_destination_does_not_explore)
{
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct run r = begin(&slow, p, 1);
        while (!r.finder.explores || r.finder.size == 0)
            go_on(&r);
        const struct window_sample s = {
            .ns = MS, .out = 90, .wanted = 99, .floor = slow.floor, .may_explore = true};
        int explored = 0;
        for (int ms = 0; ms < 500; ms++) {
            lane_window_finder_take(&r.finder, &s);
            explored += r.finder.explores;
            ck_assert_uint_ne(r.finder.size, 0);
        }
        ck_assert_int_le(explored, 70);
    }
}
END_TEST

/* What requests took says nothing where none ends any more: the device's window is told the least
 * of all. */
START_TEST(a_destination_that_stalls_is_not_taken_for_a_fast_one)
{
    struct run r = begin(&fast, LANE_WINDOW_DELAY, 1);
    while (r.finder.slowed == 0)
        go_on(&r);
    const struct window_sample few = {.ns = MS, .floor = fast.floor, .wanted = 1, .out = 1};
    lane_window_finder_take(&r.finder, &few);
    ck_assert_uint_ne(r.finder.slowed, 0);
    const struct window_sample stalled = {.ns = MS, .floor = fast.floor, .wanted = 99, .out = 20};
    lane_window_finder_take(&r.finder, &stalled);
    ck_assert_uint_eq(r.finder.slowed, 0);
}
END_TEST

/* The floor rises with the number of tenants: at once, also in the middle of trying. */
START_TEST(no_size_is_below_the_floor)
{
    for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++) {
        struct load l = loads[1];
        struct run r = begin(&l, p, 2);
        for (int i = 0; i < 2000; i++) {
            l.floor = 8 + (uint32_t)(draw(&r) * 120);
            go_on(&r);
        }
    }
}
END_TEST

START_TEST(static_finds_nothing)
{
    struct run r = begin(&loads[1], LANE_WINDOW_STATIC, 1);
    lane_window_finder_begin(&r.finder, lane_window_policy(LANE_WINDOW_STATIC));
    run_all(&r);
    ck_assert_uint_eq(r.finder.size, 0);
    ck_assert_uint_eq(r.changes, 0);
    ck_assert(!lane_window_policy(LANE_WINDOW_STATIC)->finds);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_ladder_comes_within_5_percent_of_the_best_size)                                          \
    T(delay_comes_within_5_percent_of_the_best_size)                                               \
    T(what_a_busy_host_does_is_not_taken_for_a_knee)                                               \
    T(who_finds_that_no_limit_does_best_says_so)                                                   \
    T(two_destinations_of_unlike_speed_have_sizes_of_their_own)                                    \
    T(who_lets_its_load_swing_does_not_have_sizes_tried_all_the_time)                              \
    T(who_asks_for_more_when_nothing_is_tried_does_not_have_it_tried_all_the_time)                 \
    T(idle_time_teaches_nothing)                                                                   \
    T(a_load_that_goes_in_the_middle_ends_the_trying)                                              \
    T(what_does_not_settle_does_not_hold_up_the_trying)                                            \
    T(a_silent_peer_does_not_keep_others_out)                                                      \
    T(a_silent_destination_does_not_explore)                                                       \
    T(a_destination_that_stalls_is_not_taken_for_a_fast_one)                                       \
    T(no_size_is_below_the_floor)                                                                  \
    T(static_finds_nothing)

KEDGE_CHECK_MAIN("agent.lane.window_policy", TESTS)
