/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations of tenants at a device that carries out one after the other, in the order of their
 * coming; the lane is the test's. */
#include "mr_ops.h"

#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "arenas.h"
#include "connection.h"
#include "dedicated_mrs.h"
#include "fabric/provider.h"
#include "pool.h"
#include "sessions.h"
#include "world.h"

enum {
    MANY = 1000, /* registrations of tenant A, of so many: */
    SESSIONS = 128,
    A = 1,
    B = 2,
    OF_B = SESSIONS, /* the session of tenant B */
    ALL = SESSIONS + 1
};

static const uint64_t MIB = 1 << 20;

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    struct agent_session session[ALL];
    struct arena arena[ALL];
    struct fab fab;
    struct fab_ops ops;
    struct fab_mr mr[4 * MANY];
    uint32_t mrs;
    struct fab_ctl *first, **end; /* what the device has */
    uint32_t at_device, most_at_device;
    uint32_t registered, deregistered; /* by the device, */
    uint32_t told, told_b;             /* and registered as the lane was told: of all, and of B */
    int device_says, worker_hears;     /* of a registration; the latter last */
} w;

static void tell_lane(const struct lane_command *command)
{
    w.told += command->kind == LANE_COMMAND_MR_READY && command->mr.status == 0;
    w.told_b += command->kind == LANE_COMMAND_MR_READY && command->session == OF_B;
    if (command->kind == LANE_COMMAND_MR_READY)
        w.worker_hears = command->mr.status;
}

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ctl->next = NULL;
    *w.end = ctl;
    w.end = &ctl->next;
    if (++w.at_device > w.most_at_device)
        w.most_at_device = w.at_device;
}

/* The first that it has. */
static void device_goes_on(void)
{
    struct fab_ctl *ctl = w.first;
    ck_assert_ptr_nonnull(ctl);
    w.first = ctl->next;
    if (w.first == NULL)
        w.end = &w.first;
    w.at_device--;
    ctl->status = ctl->kind == FAB_REG_MR ? w.device_says : 0;
    if (ctl->status != 0) {
        ck_assert_int_eq(ctl->kind, FAB_REG_MR);
    } else if (ctl->kind == FAB_REG_MR) {
        w.registered++;
        w.mr[w.mrs].rkey = w.mrs;
        ctl->mr.x = &w.mr[w.mrs++];
    } else {
        ck_assert_int_eq(ctl->kind, FAB_DEREG_MR);
        w.deregistered++;
    }
    ctl->done(ctl);
}

static void device_does_all(void)
{
    while (w.first != NULL)
        device_goes_on();
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.end = &w.first;
    w.ops = (struct fab_ops){.submit = submit};
    w.fab.ops = &w.ops;
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = w.pool.world = &w.world.world;
    agent_attach_init(&w.agent);
    w.agent.config.max_sessions = ALL;
    w.agent.config.arena_bytes = 2 * MIB;
    w.agent.config.fenced_regions = 4 * MANY;
    w.agent.pools[0] = &w.pool;
    for (uint32_t i = 0; i < B; i++) {
        w.agent.tenants.at[i].state = AGENT_TENANT_LIVE;
        w.agent.tenants.at[i].config.memory = 1024 * MIB;
        w.agent.tenants.at[i].config.sessions = SESSIONS;
    }
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.device.fab = &w.fab;
    w.pool.sessions = w.session;
    w.pool.lane = (struct lane *)&w; /* there is one */
    fab_iova_init(&w.agent.iova, 1);
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t tenant = i == OF_B ? B : A;
        w.arena[i] = (struct arena){.pool = &w.pool,
                                    .bytes = 2 * MIB,
                                    .mem = {.addr = &w.arena[i], .size = 2 * MIB, .fd = -1},
                                    .tenant = tenant};
        w.session[i] = (struct agent_session){.pool = &w.pool,
                                              .stage = STAGE_LIVE,
                                              .tenant = tenant,
                                              .arenas = 1,
                                              .arena = {&w.arena[i]}};
    }
}

static void register_region(uint32_t session)
{
    const struct lane_event e = {
        .kind = LANE_EVENT_WANT_MR, .session = session, .want_mr = {.length = 4096}};
    agent_dedicated_mrs_event(&w.pool, &e);
}

static void register_many(void)
{
    for (uint32_t i = 0; i < MANY; i++)
        register_region(i % SESSIONS);
}

START_TEST(a_strangers_registration_stands_behind_few_of_another_tenants_thousand)
{
    begin();
    register_many();
    device_goes_on(); /* it is in the middle of them */
    register_region(OF_B);
    while (w.told_b == 0)
        device_goes_on();
    ck_assert_uint_le(w.told, 1 + MR_OPS_OF_ONE + 1);
    device_does_all();
    ck_assert_uint_eq(w.told, MANY + 1);
    ck_assert_uint_le(w.most_at_device, MR_OPS_OF_ONE + 1);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(an_arena_for_whoever_comes_stands_behind_few_of_a_tenants_thousand)
{
    begin();
    register_many();
    w.pool.prewarm.arenas = 1;
    agent_arenas_refill(&w.pool);
    const uint32_t before = w.registered;
    test_world_end_task(&w.world, 0); /* it is made, and then registered */
    while (!agent_arena_is_ready(&w.pool, B))
        device_goes_on();
    ck_assert_uint_le(w.registered - before, MR_OPS_OF_ONE + 1);
    device_does_all();
}
END_TEST

START_TEST(what_is_given_back_does_not_stand_behind_what_is_to_be_registered)
{
    begin();
    register_region(0);
    device_does_all();
    register_many();
    const struct lane_event gives_back = {
        .kind = LANE_EVENT_WANT_DEREG, .session = 0, .fence = {.rkey = w.mr[0].rkey}};
    agent_dedicated_mrs_event(&w.pool, &gives_back);
    while (w.deregistered == 0)
        device_goes_on();
    ck_assert_uint_le(w.registered, 1 + MR_OPS_OF_ONE);
    device_does_all();
}
END_TEST

START_TEST(the_device_never_hears_what_an_ended_session_had_waiting)
{
    begin();
    register_many();
    for (uint32_t i = 0; i < SESSIONS; i++)
        agent_dedicated_mrs_drop(&w.arena[i]);
    ck_assert_uint_eq(w.pool.fab_ops, MR_OPS_OF_ONE);
    ck_assert_uint_eq(w.agent.mr_queue.waiting, 0);
    ck_assert_uint_eq(w.agent.fenced.own, MR_OPS_OF_ONE);
    device_does_all(); /* what it had begun is given back */
    ck_assert_uint_eq(w.registered, MR_OPS_OF_ONE);
    ck_assert_uint_eq(w.deregistered, MR_OPS_OF_ONE);
    ck_assert_uint_eq(w.told, 0);
    ck_assert_uint_eq(w.agent.fenced.own, 0);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

/* EAGAIN is what the kernel says of an rdma cgroup's limit, and a worker's word to try again. */
START_TEST(a_device_without_room_is_no_memory_to_the_worker_whatever_it_says)
{
    static const int says[] = {-EAGAIN, -ENOMEM, -ENOSPC, -EINVAL};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        begin();
        w.device_says = says[i];
        register_region(0);
        device_does_all();
        ck_assert_int_eq(w.worker_hears, -ENOMEM);
    }
}
END_TEST

/* One that a worker has asked for, made and on its way to the device. */
static struct arena *ask_for_arena(void)
{
    struct arena *arena;
    ck_assert_int_eq(agent_arena_ask(&w.pool, A, 4 * MIB, 0, &arena), 0);
    arena->mem = (struct fab_mem){.addr = arena, .size = 4 * MIB, .fd = -1};
    test_world_end_task(&w.world, 0);
    return arena;
}

START_TEST(an_arena_that_nobody_waits_for_any_more_is_not_registered)
{
    begin();
    register_many();
    struct arena *arena = ask_for_arena();
    ck_assert(arena->busy);
    agent_arena_retire(arena);
    ck_assert_int_eq(arena->task.work, WORLD_FREE_ARENA);
    test_world_end_task(&w.world, 0);
    ck_assert_uint_eq(w.agent.tenants.at[A - 1].arena_bytes, 0);
    ck_assert_uint_eq(w.agent.tenants.at[A - 1].arenas, 0);
    device_does_all();
    ck_assert_uint_eq(w.registered, MANY);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(many_tenants_have_their_turns_one_after_the_other)
{
    begin();
    for (uint32_t i = 0; i < SESSIONS; i++) /* as many tenants as there is room for */
        w.session[i].tenant = w.arena[i].tenant = i % (AGENT_TENANT_SLOTS - 2) + 3;
    register_many();
    register_region(OF_B);
    while (w.told_b == 0)
        device_goes_on();
    ck_assert_uint_le(w.told, MR_OPS_OF_TENANTS + AGENT_TENANT_SLOTS);
    ck_assert_uint_le(w.most_at_device, MR_OPS_OF_TENANTS);
    device_does_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_strangers_registration_stands_behind_few_of_another_tenants_thousand)                      \
    T(an_arena_for_whoever_comes_stands_behind_few_of_a_tenants_thousand)                          \
    T(what_is_given_back_does_not_stand_behind_what_is_to_be_registered)                           \
    T(the_device_never_hears_what_an_ended_session_had_waiting)                                    \
    T(a_device_without_room_is_no_memory_to_the_worker_whatever_it_says)                           \
    T(an_arena_that_nobody_waits_for_any_more_is_not_registered)                                   \
    T(many_tenants_have_their_turns_one_after_the_other)

KEDGE_CHECK_MAIN("agent.control.mr_ops", TESTS)
