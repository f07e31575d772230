/* SPDX-License-Identifier: Apache-2.0 */
/* Many agents and one metaserver that does one thing after the other, in the order in which it was
 * asked, also what nobody waits for any more. It dies, and comes back to all of them at once. What
 * they ask for then takes it longer than any of them waits: if each asks again as soon as it has
 * given up, it never does anything in time again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "fabric/provider.h"
#include "bounds.h"
#include "pool.h"
#include "prefer.h"
#include "register.h"
#include "world.h"

enum {
    AGENTS = 1000,
    LEASE_MS = 90000,
    STEP_MS = 20,
    PUT_MS = 50, /* that one takes: 50 s for all, which wait for 10 */
    RENEWAL_MS = 5,
    DEAD_MS = 45000, /* longer than the third of a lease: all have noticed */
    BACK_MS = 5 * LEASE_MS,
    REQUESTS = 1 << 16,
};

struct member {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd;
    struct fab_ah ah;
    struct fab_ctl *resolving;
    bool known; /* to this life of the metaserver */
};

struct request {
    struct test_call call;
    struct member *of;
    uint64_t ends_ms; /* when its client gives it up */
    bool over;        /* for its client */
};

static struct {
    struct member *member;
    struct request *request; /* a ring, the oldest first */
    uint64_t first, end;
    uint64_t now_ms, spent_ms; /* of this step's time, by what it did before */
    char generation;
    bool dead, quick, sheds;
} model;

static void ignore_lane(const struct lane_command *command)
{
    (void)command;
}

static void submit_address(struct fab *fab, struct fab_ctl *ctl)
{
    struct member *m = (struct member *)((char *)fab - offsetof(struct member, fab));
    ck_assert_ptr_null(m->resolving);
    m->resolving = ctl;
}

static int run_nothing(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void begin_member(struct member *m, uint32_t number)
{
    test_world_init(&m->world);
    m->world.random = UINT64_C(0x9e3779b9) * (number + 1);
    m->world.lane_told = ignore_lane;
    m->agent.world = m->pool.world = &m->world.world;
    m->ops = (struct fab_ops){.submit = submit_address, .run = run_nothing};
    m->fab.ops = &m->ops;
    m->pd = (struct fab_pd){.fab = &m->fab};
    m->pool.agent = &m->agent;
    m->pool.config = &m->agent.config;
    m->pool.device.fab = m->agent.fab = &m->fab;
    m->pool.device.system_pd = &m->pd;
    m->agent.pools[0] = &m->pool;
    m->agent.config.metaservers = 1;
    agent_registrations_start(&m->pool);
}

static void end_call(struct request *r, int status, const char *body)
{
    const struct http_answer answer = {.status = status,
                                       .why = status < 0 ? body : "",
                                       .body = status < 0 ? "" : body,
                                       .body_length = status < 0 ? 0 : strlen(body)};
    r->over = true;
    r->call.done(r->call.user, &answer);
}

static bool is_put(const struct request *r)
{
    return strcmp(r->call.method, "PUT") == 0;
}

static void serve(struct request *r)
{
    char body[640];
    const bool known = r->of->known;
    r->of->known |= is_put(r);
    if (r->over)
        return;
    if (!is_put(r)) {
        snprintf(body, sizeof body, "{\"generation\":\"000000000000000%c\",\"dct_number\":7}",
                 model.generation);
        end_call(r, known ? 200 : 404, body);
        return;
    }
    snprintf(body, sizeof body,
             "{\"node_lease_ms\":%d,\"metaserver\":{\"endpoint\":{\"gid\":\"fd00::1\","
             "\"dct_number\":7,\"dc_key\":\"0000000000000001\"},\"table\":{\"addr\":"
             "\"0000000000001000\",\"rkey\":5,\"log2_slots\":4,\"seed\":\"0000000000000001\","
             "\"generation\":\"000000000000000%c\",\"version\":1}}}",
             LEASE_MS, model.generation);
    end_call(r, 201, body);
}

static void take_calls(struct member *m)
{
    struct request *r;
    for (uint32_t i = 0; i < m->world.calls; i++) {
        ck_assert_uint_lt(model.end - model.first, REQUESTS);
        r = &model.request[model.end++ % REQUESTS];
        *r = (struct request){.call = m->world.call[i],
                              .of = m,
                              .ends_ms = model.now_ms + m->world.call[i].timeout_ms};
    }
    m->world.calls = 0;
    if (m->resolving != NULL) {
        struct fab_ctl *ctl = m->resolving;
        m->resolving = NULL;
        ctl->status = 0;
        if (ctl->kind == FAB_CREATE_AH)
            ctl->ah.x = &m->ah;
        ctl->done(ctl);
    }
}

static void give_up_late(void)
{
    for (uint64_t i = model.first; i < model.end; i++) {
        struct request *r = &model.request[i % REQUESTS];
        if (!r->over && model.now_ms >= r->ends_ms)
            end_call(r, -ETIMEDOUT, "no answer in time");
    }
}

static void serve_some(void)
{
    model.spent_ms = model.spent_ms > STEP_MS ? model.spent_ms - STEP_MS : 0;
    while (model.first < model.end && model.spent_ms < STEP_MS) {
        struct request *r = &model.request[model.first++ % REQUESTS];
        if (model.dead) {
            if (!r->over)
                end_call(r, -ECONNREFUSED, "refused");
            continue;
        }
        if (model.sheds && r->over && is_put(r)) /* as ours does */
            continue;
        model.spent_ms += model.quick ? 0 : is_put(r) ? PUT_MS : RENEWAL_MS;
        serve(r);
    }
}

static void step_all(void)
{
    model.now_ms += STEP_MS;
    for (uint32_t i = 0; i < AGENTS; i++) {
        test_world_advance(&model.member[i].world, STEP_MS * BASE_NS_PER_MS);
        take_calls(&model.member[i]);
    }
    give_up_late();
    serve_some();
}

static uint32_t count_in(void)
{
    uint32_t in = 0;
    for (uint32_t i = 0; i < AGENTS; i++)
        in += model.member[i].known && agent_prefer_is_sound(&model.member[i].pool.registration[0]);
    return in;
}

static void step_for(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += STEP_MS)
        step_all();
}

static void begin_all(void)
{
    memset(&model, 0, sizeof model);
    model.member = calloc(AGENTS, sizeof *model.member);
    model.request = calloc(REQUESTS, sizeof *model.request);
    ck_assert(model.member != NULL && model.request != NULL);
    base_log_init("unit", BASE_LOG_ERROR);
    model.quick = true;
    model.generation = '1';
    for (uint32_t i = 0; i < AGENTS; i++)
        begin_member(&model.member[i], i);
    step_for(1000);
    ck_assert_uint_eq(count_in(), AGENTS);
    model.quick = false;
}

static void end_all(void)
{
    free(model.member);
    free(model.request);
}

static void die_and_come_back(void)
{
    model.dead = true;
    step_for(DEAD_MS);
    ck_assert_uint_eq(count_in(), 0);
    model.dead = false;
    model.generation = '2';
    for (uint32_t i = 0; i < AGENTS; i++)
        model.member[i].known = false;
}

/* Milliseconds until all are in; and there they stay. */
static uint64_t wait_for_all(bool sheds)
{
    uint64_t in_ms = 0;
    begin_all();
    model.sheds = sheds;
    die_and_come_back();
    for (; in_ms < BACK_MS && count_in() < AGENTS; in_ms += STEP_MS)
        step_all();
    ck_assert_msg(count_in() == AGENTS, "%u of %u are in after %d s", count_in(), AGENTS,
                  BACK_MS / 1000);
    printf("all %u are in %llu ms after its return\n", AGENTS, (unsigned long long)in_ms);
    step_for(LEASE_MS);
    ck_assert_uint_eq(count_in(), AGENTS);
    end_all();
    return in_ms;
}

START_TEST(a_metaserver_that_cannot_keep_up_is_asked_less_often_until_all_are_in)
{
    (void)wait_for_all(false);
}
END_TEST

START_TEST(one_that_does_nothing_for_who_has_gone_has_all_of_them_soon)
{
    ck_assert_uint_lt(wait_for_all(true), 3 * PUT_MS * AGENTS);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_metaserver_that_cannot_keep_up_is_asked_less_often_until_all_are_in)                       \
    T(one_that_does_nothing_for_who_has_gone_has_all_of_them_soon)
KEDGE_CHECK_MAIN("agent.control.congestion", TESTS)
