/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants have is counted along: it is what a look at all sessions finds, whatever becomes of
 * them, and no request of a worker has anybody look at them. The world and the device are the
 * test's. */
#include "quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../../check_main.h"
#include "base/random.h"
#include "session_bed.h"

enum { PLACES = 24, AHEAD = 4, STEPS = 20000 };

/* What the lane has been told of each session, and not answered. */
static struct {
    bool lives, ends, gets_arena;
} lane[PLACES];
static struct base_prng prng;

static void tell_lane(const struct lane_command *command)
{
    lane[command->session].ends |= command->kind == LANE_COMMAND_SESSION_END;
    lane[command->session].gets_arena |= command->kind == LANE_COMMAND_ARENA_ADD;
}

static void end_task(void)
{
    const bool fails = base_prng_below(&prng, 8) == 0;
    if (world.tasks != NULL)
        session_bed_end_task(fails && world.tasks->work == WORLD_MAKE_ARENA ? -ENOMEM : 0);
}

static void attach_one(void)
{
    uint32_t number, tenant = 1 + (uint32_t)base_prng_below(&prng, BED_TENANTS);
    struct base_errbuf why;
    if (!agent_session_is_ready(&pool, tenant) ||
        agent_quota_check(&pool, tenant, 1, 2 * MIB, &why) != 0)
        return;
    struct connection *c = &connections[base_prng_below(&prng, PLACES)];
    if (agent_session_take(&pool, tenant, BED_UID, 1, c, &number) != 0)
        return;
    lane[number].lives = true;
}

/* Something that may happen to it. */
static void go_on(uint32_t number)
{
    struct agent_session *s = &pool.sessions[number];
    struct base_errbuf why;
    switch (base_prng_below(&prng, 6)) {
    case 0:
        if (s->stage == STAGE_LIVE)
            (void)agent_session_add_arena(&pool, number, (1 + base_prng_below(&prng, 8)) * MIB,
                                          &why);
        return;
    case 1:
        if (s->stage == STAGE_LIVE || s->stage == STAGE_ENDING)
            agent_session_release(&pool, number, 0);
        return;
    case 2:
        if (s->stage == STAGE_LIVE && lane[number].lives) {
            session_bed_event(number, LANE_EVENT_SESSION_FAULT, 0);
            lane[number].ends = true;
        }
        return;
    case 3:
        if (lane[number].lives && lane[number].ends) {
            lane[number].lives = lane[number].ends = false;
            session_bed_event(number, LANE_EVENT_SESSION_OVER, 0);
        }
        return;
    default:
        if (lane[number].gets_arena) {
            lane[number].gets_arena = false;
            session_bed_event(number, LANE_EVENT_ARENA_ADDED,
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
    struct quota_used used[AGENT_TENANT_SLOTS];
    uint64_t most_sessions = 0, most_ended = 0, most_bytes = 0;
    memset(lane, 0, sizeof lane);
    base_prng_seed(&prng, 1);
    session_bed_begin(PLACES, AHEAD);
    world.lane_told = tell_lane;
    for (int i = 0; i < STEPS; i++) {
        const uint64_t what = base_prng_below(&prng, 8);
        if (what == 0)
            attach_one();
        else if (what < 3)
            end_task();
        else if (what == 3)
            agent_sessions_refill(&pool);
        else
            go_on((uint32_t)base_prng_below(&prng, PLACES));
        check_heard();
        ck_assert(agent_quotas_recount(&agent));
        agent_quotas_used(&agent, used);
        for (uint32_t t = 0; t < BED_TENANTS; t++) {
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
    session_bed_end();
}
END_TEST

START_TEST(what_was_counted_wrong_is_put_right_when_somebody_looks)
{
    struct quota_used used[AGENT_TENANT_SLOTS];
    uint32_t number;
    session_bed_begin(PLACES, AHEAD);
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_int_eq(agent_session_take(&pool, 2, BED_UID + 1, 1, &connections[0], &number), 0);
    agent.of_sessions[0].sessions--;
    agent.of_sessions[1].sessions += 7;
    pool.sessions[number].counted.bytes = 0;
    ck_assert(!agent_quotas_recount(&agent));
    ck_assert(agent_quotas_recount(&agent));
    agent_quotas_used(&agent, used);
    ck_assert_uint_eq(used[0].sessions, 0);
    ck_assert_uint_eq(used[1].sessions, 1);
    session_bed_leave(number);
    ck_assert(agent_quotas_recount(&agent));
    session_bed_end();
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
    const struct attach_peer peer = {.uid = BED_UID};
    struct base_errbuf why;
    struct connection next = {0};
    session_bed_begin(PLACES, 0);
    struct agent_session *sessions = pool.sessions;
    world.world.sockets = &SOCKET_OPS;
    agent.config.max_sessions = 1000000;
    agent.of_sessions[0].sessions = agent.tenants.at[0].config.sessions; /* it has all it may */
    pool.sessions = take_out_of_reach();
    ck_assert_int_eq(agent_quota_check(&pool, 1, 1, 0, &why), -EDQUOT);
    ck_assert_int_eq(agent_quota_check(&pool, 1, 0, 65 * MIB, &why), -EDQUOT);
    ck_assert_int_eq(agent_quota_check(&pool, 1, 0, 64 * MIB, &why), 0);
    ck_assert_int_eq(agent_arena_check_room(&agent, 1, &why), 0);
    struct connection *c = agent_attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    next.next = take_out_of_reach();
    c->next = &next;
    answers = 0;
    agent_connection_attach(c, &m);
    ck_assert_uint_eq(answers, 1);
    free(c);
    pool.sessions = sessions;
    agent.config.max_sessions = PLACES;
    agent.of_sessions[0].sessions = 0;
    session_bed_end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_counted_along_is_what_there_is)                                                      \
    T(what_was_counted_wrong_is_put_right_when_somebody_looks)                                     \
    T(a_refusal_looks_at_no_session_and_no_other_connection)

KEDGE_CHECK_MAIN("agent.control.quotas", TESTS)
