/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants have is counted along: it is what a look at all sessions finds, whatever becomes of
 * them, and no request of a worker has anybody look at them. The world and the device are the
 * test's. */
#include "quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../check_main.h"
#include "agent.h"
#include "arenas.h"
#include "base/random.h"
#include "connection.h"
#include "fabric/provider.h"
#include "pool.h"
#include "sessions.h"
#include "worker_events.h"
#include "world.h"

enum { TENANTS = 3, PLACES = 24, AHEAD = 4, STEPS = 20000, UID = 1000 };

/* The leak sanitizer asks for this: the arenas that are left when the test's world ends are
 * nobody's, since no device gives them back there. Arenas that the product loses are
 * test_arenas.c's. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:arena_new";
}

static const uint64_t MIB = 1 << 20;
static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct fab fab;
static struct fab_mr mr;
static struct connection connections[PLACES];
static struct schema_session_ro pages[PLACES];
static struct schema_session_rw written[PLACES];
/* What the lane has been told of each session, and not answered. */
static struct {
    bool lives, ends, gets_arena;
} lane[PLACES];
static struct base_prng prng;
static char memory; /* of all arenas: nobody looks at it */

static void hear_pool(struct pool *p)
{
    (void)p;
}

static void hear_failure(struct pool *p, int status)
{
    (void)p, (void)status;
}

static void hear_arena(struct connection *c, int status, const struct arena *arena, uint32_t number)
{
    (void)c, (void)status, (void)arena, (void)number;
}

static void hear_end(struct connection *c)
{
    (void)c;
}

static const struct worker_events HEARS = {.ready = hear_pool,
                                           .failed = hear_failure,
                                           .arena = hear_arena,
                                           .ending = hear_end,
                                           .ended = hear_end};

static void tell_lane(const struct lane_command *command)
{
    lane[command->session].ends |= command->kind == LANE_COMMAND_SESSION_END;
    lane[command->session].gets_arena |= command->kind == LANE_COMMAND_ARENA_ADD;
}

/* At once. */
static void submit(struct fab *f, struct fab_ctl *ctl)
{
    (void)f;
    ctl->status = 0;
    if (ctl->kind == FAB_REG_MR)
        ctl->mr.x = &mr;
    ctl->done(ctl);
}

static const struct fab_ops DEVICE = {.submit = submit};

static void begin(void)
{
    memset(&agent, 0, sizeof agent);
    memset(lane, 0, sizeof lane);
    test_world_init(&world);
    world.world.page_bytes = 4096;
    world.lane_told = tell_lane;
    fab.ops = &DEVICE;
    agent.world = &world.world;
    agent.worker_events = &HEARS;
    agent.config.max_sessions = PLACES;
    agent.config.arena_bytes = 2 * MIB;
    agent.unmade = 0;
    for (uint32_t i = 0; i < TENANTS; i++) {
        agent.tenants.at[i].state = AGENTD_TENANT_LIVE;
        agent.tenants.at[i].config.memory = 64 * MIB;
        agent.tenants.at[i].config.sessions = 10;
        agent.tenants.at[i].config.uid_ranges = 1;
        agent.tenants.at[i].config.uids[0].first = agent.tenants.at[i].config.uids[0].last =
            UID + i;
    }
    pool = (struct pool){.agent = &agent,
                         .config = &agent.config,
                         .world = &world.world,
                         .lane = (struct lane *)&pool /* there is one */};
    pool.device.fab = &fab;
    agent.pools[0] = &pool;
    pool.prewarm.desired.numbers.sessions_ahead = pool.prewarm.desired.numbers.arenas_ahead = AHEAD;
    pool.prewarm.sessions = pool.prewarm.arenas = AHEAD;
}

static void end_task(void)
{
    struct world_task *task = world.tasks;
    if (task == NULL)
        return;
    if (task->work == WORLD_MAKE_ARENA)
        *task->arena.memory =
            (struct fab_mem){.addr = &memory, .size = task->arena.bytes, .fd = -1};
    test_world_end_task(
        &world, base_prng_below(&prng, 8) == 0 && task->work == WORLD_MAKE_ARENA ? -ENOMEM : 0);
}

static void attach_one(void)
{
    uint32_t number, tenant = 1 + (uint32_t)base_prng_below(&prng, TENANTS);
    struct base_errbuf why;
    if (!session_is_ready(&pool, tenant) || quota_check(&pool, tenant, 1, 2 * MIB, &why) != 0)
        return;
    struct connection *c = &connections[base_prng_below(&prng, PLACES)];
    if (session_take(&pool, tenant, UID, 1, c, &number) != 0)
        return;
    lane[number].lives = true;
}

static void send_event(uint32_t number, enum lane_event_kind kind, int status)
{
    struct lane_event e = {.kind = kind, .session = number};
    if (kind == LANE_EVENT_ARENA_ADDED)
        e.arena.status = status;
    sessions_event(&pool, &e);
}

/* Something that may happen to it. */
static void go_on(uint32_t number)
{
    struct agent_session *s = &pool.sessions[number];
    struct base_errbuf why;
    switch (base_prng_below(&prng, 6)) {
    case 0:
        if (s->stage == STAGE_LIVE)
            (void)session_more(&pool, number, (1 + base_prng_below(&prng, 8)) * MIB, &why);
        return;
    case 1:
        if (s->stage == STAGE_LIVE || s->stage == STAGE_ENDING)
            session_release(&pool, number, 0);
        return;
    case 2:
        if (s->stage == STAGE_LIVE && lane[number].lives) {
            send_event(number, LANE_EVENT_SESSION_FAULT, 0);
            lane[number].ends = true;
        }
        return;
    case 3:
        if (lane[number].lives && lane[number].ends) {
            lane[number].lives = lane[number].ends = false;
            send_event(number, LANE_EVENT_SESSION_OVER, 0);
        }
        return;
    default:
        if (lane[number].gets_arena) {
            lane[number].gets_arena = false;
            send_event(number, LANE_EVENT_ARENA_ADDED,
                       base_prng_below(&prng, 4) == 0 ? -EDQUOT : 0);
        }
    }
}

/* Neither longer nor shorter than the lane has its session. */
static void check_heard(void)
{
    for (uint32_t i = 0; i < PLACES; i++)
        ck_assert_ptr_eq(world.heard[i], lane[i].lives ? &pool.sessions[i].rings : NULL);
}

START_TEST(what_is_counted_along_is_what_there_is)
{
    struct quota_used used[AGENTD_TENANT_SLOTS];
    struct base_errbuf err;
    uint64_t most_sessions = 0, most_ended = 0, most_bytes = 0;
    begin();
    base_prng_seed(&prng, 1);
    ck_assert_int_eq(sessions_start(&pool, &err), 0);
    for (uint32_t i = 0; i < PLACES; i++) {
        pool.sessions[i].rings.rw = &written[i];
        pool.sessions[i].rings.ro = &pages[i];
    }
    for (int i = 0; i < STEPS; i++) {
        const uint64_t what = base_prng_below(&prng, 8);
        if (what == 0)
            attach_one();
        else if (what < 3)
            end_task();
        else if (what == 3)
            sessions_refill(&pool);
        else
            go_on((uint32_t)base_prng_below(&prng, PLACES));
        check_heard();
        quotas_used(&agent, used); /* asserts it */
        for (uint32_t t = 0; t < TENANTS; t++) {
            most_sessions = used[t].sessions > most_sessions ? used[t].sessions : most_sessions;
            most_ended = used[t].ended > most_ended ? used[t].ended : most_ended;
            most_bytes = used[t].bytes > most_bytes ? used[t].bytes : most_bytes;
            ck_assert_uint_le(used[t].bytes_left, used[t].bytes);
            ck_assert_uint_le(used[t].bytes, 64 * MIB);
        }
    }
    ck_assert_uint_ge(most_sessions, 4);
    ck_assert_uint_ge(most_ended, 2);
    ck_assert_uint_ge(most_bytes, 40 * MIB);
    free(pool.sessions);
}
END_TEST

static uint32_t answers;

static int hear_answer(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                       const struct world_lent *lent)
{
    const struct schema_control_error *m = message;
    (void)w, (void)s, (void)bytes, (void)lent;
    ck_assert_int_eq(m->h.type, SCHEMA_CONTROL_ERROR);
    ck_assert_int_eq(m->status, -EDQUOT);
    answers++;
    return 0;
}

static bool close_socket(struct world *w, struct world_socket *s)
{
    (void)w, (void)s;
    return false;
}

static const struct world_socket_ops SOCKET_OPS = {.reply = hear_answer, .close = close_socket};

/* Nobody may look at them. */
static void *take_out_of_reach(void)
{
    void *at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

START_TEST(a_refusal_looks_at_no_session_and_no_other_connection)
{
    const struct schema_control_attach m = {.h = {.type = SCHEMA_CONTROL_ATTACH}};
    const struct attach_peer peer = {.uid = UID};
    struct base_errbuf why;
    struct connection next = {0};
    begin();
    world.world.sockets = &SOCKET_OPS;
    agent.config.max_sessions = 1000000;
    agent.of_sessions[0].sessions = agent.tenants.at[0].config.sessions; /* it has all it may */
    pool.sessions = take_out_of_reach();
    ck_assert_int_eq(quota_check(&pool, 1, 1, 0, &why), -EDQUOT);
    ck_assert_int_eq(quota_check(&pool, 1, 0, 65 * MIB, &why), -EDQUOT);
    ck_assert_int_eq(quota_check(&pool, 1, 0, 64 * MIB, &why), 0);
    struct connection *c = attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    next.next = take_out_of_reach();
    c->next = &next;
    answers = 0;
    connection_attach(c, &m);
    ck_assert_uint_eq(answers, 1);
    free(c);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_counted_along_is_what_there_is)                                                      \
    T(a_refusal_looks_at_no_session_and_no_other_connection)

KEDGE_CHECK_MAIN("agent.control.quotas", TESTS)
