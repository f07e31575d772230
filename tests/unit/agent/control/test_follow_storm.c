/* SPDX-License-Identifier: Apache-2.0 */
/* Many agents that follow one metaserver, which dies: all of them lose their streams at one moment,
 * and go to the next one. It begins one stream after the other, in the order in which they came,
 * also those that their agents have given up since. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "bounds.h"
#include "follow.h"
#include "pool.h"
#include "register.h"
#include "world.h"

enum {
    AGENTS = 1000,
    STEP_MS = 20,
    QUICK_MS = 1000, /* in which all are at the next one, if that is quick */
    SLOW_MS = 20,    /* that a stream takes one that is slow: 20 s for all, who wait for 15 */
    IN_MS = 90000,
    REQUESTS = 1 << 14,
};

struct member {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    uint64_t stream;   /* which one it has asked for, and not given up; 0: none */
    uint32_t asked_of; /* its metaserver */
    uint64_t asked_ms;
    bool is_in; /* it has heard something */
};

struct request {
    struct member *of;
    uint64_t stream;
};

static struct {
    struct member *member;
    struct request *request; /* at the second metaserver, a ring, the oldest first */
    uint64_t first, end;
    uint64_t now_ms, spent_ms, streams;
    uint32_t takes_ms;  /* that a stream takes the second one */
    uint32_t most, now; /* streams that were begun at it in one step */
    bool dead;          /* the first one */
} model;

static void begin_member(struct member *m, uint32_t number)
{
    test_world_init(&m->world);
    m->world.random = UINT64_C(0x9e3779b9) * (number + 1);
    m->agent.world = m->pool.world = &m->world.world;
    m->agent.config.metaservers = 2;
    m->pool.agent = &m->agent;
    m->pool.config = &m->agent.config;
    m->agent.pools[0] = &m->pool;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(m->agent.config.metaserver[i], AGENT_TEXT, "http://m%u", i);
        m->pool.registration[i] =
            (struct registration){.pool = &m->pool, .state = REGISTRATION_DONE};
    }
    agent_follow_start(&m->agent);
}

static void end_stream(struct member *m, int status)
{
    const uint32_t call = (uint32_t)m->agent.follow.call - 1;
    m->stream = 0;
    m->is_in = false;
    test_world_answer(&m->world, call, status, "");
    m->world.calls = 0;
}

/* One that hears nothing is given up. */
static void look_at(struct member *m)
{
    if (m->stream == 0 && m->agent.follow.call != 0) {
        m->stream = ++model.streams;
        m->asked_of = m->agent.follow.metaserver;
        m->asked_ms = model.now_ms;
        m->is_in = m->asked_of == 0 && !model.dead;
        if (m->asked_of == 1) {
            ck_assert_uint_lt(model.end - model.first, REQUESTS);
            model.request[model.end++ % REQUESTS] = (struct request){.of = m, .stream = m->stream};
            model.now++;
        }
    }
    if (m->stream != 0 && m->asked_of == 0 && model.dead)
        end_stream(m, -ECONNREFUSED);
    else if (m->stream != 0 && !m->is_in && model.now_ms >= m->asked_ms + STREAM_SILENCE_MS)
        end_stream(m, -ETIMEDOUT);
}

static void serve_some(void)
{
    model.spent_ms = model.spent_ms > STEP_MS ? model.spent_ms - STEP_MS : 0;
    while (model.first < model.end && model.spent_ms < STEP_MS) {
        const struct request *r = &model.request[model.first++ % REQUESTS];
        model.spent_ms += model.takes_ms;
        if (r->of->stream == r->stream)
            r->of->is_in = true;
    }
}

static uint32_t step_all(void)
{
    uint32_t in = 0;
    model.now_ms += STEP_MS;
    model.now = 0;
    for (uint32_t i = 0; i < AGENTS; i++) {
        struct member *m = &model.member[i];
        test_world_advance(&m->world, STEP_MS * BASE_NS_PER_MS);
        agent_follow_tick(&m->agent);
        look_at(m);
        in += m->is_in;
    }
    serve_some();
    model.most = model.now > model.most ? model.now : model.most;
    return in;
}

/* Milliseconds until all are in at the second one. */
static uint64_t move_all(uint32_t takes_ms)
{
    uint32_t in = 0;
    memset(&model, 0, sizeof model);
    model.takes_ms = takes_ms;
    model.member = calloc(AGENTS, sizeof *model.member);
    model.request = calloc(REQUESTS, sizeof *model.request);
    ck_assert(model.member != NULL && model.request != NULL);
    base_log_init("unit", BASE_LOG_ERROR);
    for (uint32_t i = 0; i < AGENTS; i++)
        begin_member(&model.member[i], i);
    for (uint32_t ms = 0; ms < 2000; ms += STEP_MS)
        in = step_all();
    ck_assert_uint_eq(in, AGENTS);
    model.dead = true;
    const uint64_t since_ms = model.now_ms;
    do
        in = step_all();
    while (in < AGENTS && model.now_ms < since_ms + IN_MS);
    ck_assert_msg(in == AGENTS, "%u of %u are in after %d s", in, AGENTS, IN_MS / 1000);
    const uint64_t took_ms = model.now_ms - since_ms;
    printf("all %u are in after %llu ms, %u at most in %d ms\n", AGENTS,
           (unsigned long long)took_ms, model.most, STEP_MS);
    for (uint32_t i = 0; i < AGENTS; i++) {
        agent_follow_stop(&model.member[i].agent);
        agent_follow_fini(&model.member[i].agent);
    }
    free(model.member);
    free(model.request);
    return took_ms;
}

START_TEST(all_that_lose_a_metaserver_are_soon_at_the_next_one_and_not_at_one_moment)
{
    ck_assert_uint_le(move_all(0), QUICK_MS);
    ck_assert_uint_le(model.most, AGENTS / 8);
}
END_TEST

START_TEST(one_that_cannot_begin_their_streams_in_time_has_all_of_them_in_the_end)
{
    (void)move_all(SLOW_MS);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(all_that_lose_a_metaserver_are_soon_at_the_next_one_and_not_at_one_moment)                   \
    T(one_that_cannot_begin_their_streams_in_time_has_all_of_them_in_the_end)
KEDGE_CHECK_MAIN("agent.control.follow_storm", TESTS)
