/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever happens to names of regions, as a seed says. */
#include "world_publications.h"

struct wish {
    uint32_t region; /* + 1; 0: it has not published that name */
    bool sure;       /* it has heard so */
};

static struct base_prng prng;
static bool knows; /* metaservers take digests */
static struct wish wish[SESSIONS][NAMES];
static uint32_t asked[SESSIONS],
    asked_name[SESSIONS]; /* what it waits for: 1: publish, 2: the end */
static uint64_t asked_ns[SESSIONS];
static uint32_t heard[SESSIONS];

static uint32_t draw(uint32_t below)
{
    return (uint32_t)base_prng_below(&prng, below);
}

static void note_answers(void)
{
    for (uint32_t s = 0; s < SESSIONS; s++) {
        struct wish *x = &wish[s][asked_name[s]];
        ck_assert_uint_le(w.said[s].count, heard[s] + (asked[s] != 0));
        if (w.said[s].count == heard[s]) {
            ck_assert(asked[s] == 0 ||
                      w.world.now_ns - asked_ns[s] <= (RESOLVE_MS + 100) * BASE_NS_PER_MS);
            continue;
        }
        heard[s]++;
        if (asked[s] == 1 && w.said[s].status == 0)
            x->sure = true;
        else if (asked[s] == 1 && !x->sure)
            x->region = 0;
        asked[s] = 0;
    }
}

static void ask_something(uint32_t s)
{
    const uint32_t name = draw(NAMES), region = draw(REGIONS);
    if (asked[s] != 0 || w.session[s].stage != STAGE_LIVE)
        return;
    asked_name[s] = name;
    asked_ns[s] = w.world.now_ns;
    if (draw(3) != 0) {
        asked[s] = 1;
        if (wish[s][name].region == 0)
            wish[s][name] = (struct wish){.region = region + 1};
        publish(s, wish[s][name].region - 1, NAME[name]);
    } else {
        asked[s] = 2;
        const uint32_t had = wish[s][name].region;
        wish[s][name] = (struct wish){.region = 0};
        unpublish(s, had > 0 ? had - 1 : 0, NAME[name]);
    }
}

static void move_worker(uint32_t s)
{
    if (w.session[s].stage == STAGE_LIVE) {
        end_session(s);
        memset(wish[s], 0, sizeof wish[s]);
    } else {
        w.session[s].stage = STAGE_LIVE;
        w.session[s].serial += SESSIONS;
    }
}

static void move_call(struct call *c)
{
    static const int REFUSALS[] = {429, 503, 404, 500, 400, -ECONNREFUSED};
    switch (draw(8)) {
    case 0: /* the answer is lost */
        (void)carry_out(c);
        answer_call(c, -ETIMEDOUT);
        break;
    case 1: /* it comes later than the agent waits, as the metaserver may be slow */
        c->held_ns = w.world.now_ns + draw(CALL_MS / 2) * BASE_NS_PER_MS;
        c->held = c->puts;
        answer_call(c, -ETIMEDOUT);
        break;
    case 2:
        if (c->puts)
            answer_call(c, REFUSALS[draw(6)]);
        else
            answer_call(c, draw(2) ? 503 : -ECONNREFUSED);
        break;
    default:
        answer_call(c, carry_out(c));
    }
}

static void move_held(bool all)
{
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        if (c->held && !c->out && (all || w.world.now_ns >= c->held_ns)) {
            c->held = false;
            (void)carry_out(c);
        }
}

static void restart_metaserver(uint32_t m)
{
    memset(w.shown[m], 0, sizeof w.shown[m]);
    w.shown[m][TAKEN] = 1;
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        c->held &= c->metaserver != m;
    agent_publications_registered(&w.agent, m, 0);
}

static uint32_t saved[METASERVERS][NAMES];

/* To what it was when its disk was saved. */
static void put_back_metaserver(uint32_t m)
{
    if (draw(2) != 0) {
        memcpy(saved[m], w.shown[m], sizeof saved[m]);
        return;
    }
    memcpy(w.shown[m], saved[m], sizeof saved[m]);
    w.shown[m][TAKEN] = 1;
    agent_publications_registered(&w.agent, m, 0);
}

static void move_anything(void)
{
    const uint32_t s = draw(SESSIONS), m = draw(METASERVERS);
    struct call *c = &w.call[draw(16)];
    switch (draw(16)) {
    case 0:
        move_worker(s);
        break;
    case 1:
        if (draw(4) == 0)
            restart_metaserver(m);
        else if (knows)
            put_back_metaserver(m);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        ask_something(s);
        break;
    case 6:
    case 7:
        pass_time(1 + draw(600));
        break;
    default:
        if (c->out)
            move_call(c);
    }
    move_held(false);
    note_answers();
}

static void check_end(uint64_t seed)
{
    for (uint32_t m = 0; m < METASERVERS; m++)
        for (uint32_t n = 0; n < TAKEN; n++) {
            uint32_t wanted = 0;
            for (uint32_t s = 0; s < SESSIONS; s++)
                if (wish[s][n].region != 0) {
                    ck_assert_msg(wanted == 0, "seed %llu: two have %s", (unsigned long long)seed,
                                  NAME[n]);
                    wanted = vkey_of(s, wish[s][n].region - 1);
                }
            ck_assert_msg(w.shown[m][n] == wanted,
                          "seed %llu: metaserver %u shows %u for %s, not %u",
                          (unsigned long long)seed, m, w.shown[m][n], NAME[n], wanted);
        }
}

START_TEST(whatever_happens_metaservers_show_in_the_end_what_workers_were_told)
{
    for (uint64_t seed = 1; seed <= 240; seed++) {
        base_prng_seed(&prng, seed);
        memset(wish, 0, sizeof wish);
        memset(asked, 0, sizeof asked);
        memset(heard, 0, sizeof heard);
        memset(asked_name, 0, sizeof asked_name);
        memset(saved, 0, sizeof saved);
        begin(METASERVERS);
        knows = seed % 2 == 0;
        if (knows)
            know_digests();
        for (int i = 0; i < 300; i++)
            move_anything();
        for (int i = 0; i < 200; i++, pass_time(250)) {
            move_held(i > 100);
            for (uint32_t m = 0; m < METASERVERS; m++)
                serve(m);
            note_answers();
        }
        check_end(seed);
        for (uint32_t s = 0; s < SESSIONS; s++)
            ck_assert_uint_eq(asked[s], 0);
        ck_assert_uint_eq(w.agent.publications.out, 0);
        end();
    }
}
END_TEST

#define TESTS(T) T(whatever_happens_metaservers_show_in_the_end_what_workers_were_told)
KEDGE_CHECK_MAIN("agent.control.publications_seeds", TESTS)
