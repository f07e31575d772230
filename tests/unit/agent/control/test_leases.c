/* SPDX-License-Identifier: Apache-2.0 */
/* A forced revocation of a worker with several arenas: the lane and the device are the test's, and
 * answer when it wants. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "agent_query.h"
#include "arenas.h"
#include "base/clock.h"
#include "fabric/provider.h"
#include "leases.h"
#include "pool.h"
#include "revocations.h"
#include "sessions.h"
#include "world.h"

enum { ARENAS = 3, SERIAL = 9, OUT = 16 };

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    struct agent_session session;
    struct fab fab;
    struct fab_ops ops;
    struct arena arena[ARENAS];
    struct fab_mr first[ARENAS], second[ARENAS];
    enum lane_lease_state state[ARENAS]; /* of the one lease in each */
    struct fab_ctl *out[OUT];            /* what the device has */
    uint32_t outs;
    struct lane_command told[OUT]; /* what the lane was */
    uint32_t tells;
} w;

/* ---- doubles, in whose place the linker puts these */

uint32_t __wrap_lane_leases(const struct lane_memory *memory);
bool __wrap_lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out);

static void tell_lane(const struct lane_command *command)
{
    ck_assert_uint_lt(w.tells, OUT);
    w.told[w.tells++] = *command;
}

uint32_t __wrap_lane_leases(const struct lane_memory *memory)
{
    (void)memory;
    return ARENAS;
}

bool __wrap_lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out)
{
    (void)memory;
    *out = (struct lane_lease){
        .state = w.state[index], .number = index + 1, .arena = index, .length = 64};
    return true;
}

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_uint_lt(w.outs, OUT);
    w.out[w.outs++] = ctl;
}

static uint32_t count_out(enum fab_ctl_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.outs; i++)
        n += w.out[i]->kind == kind;
    return n;
}

/* The registration of that arena's memory. */
static bool is_for(const struct fab_ctl *ctl, enum fab_ctl_kind kind, uint32_t arena)
{
    if (ctl->kind != kind)
        return false;
    return kind == FAB_REG_MR ? ctl->mr.mem == &w.arena[arena].mem
                              : ctl->mr.x == &w.first[arena] || ctl->mr.x == &w.second[arena];
}

static void device_answers(enum fab_ctl_kind kind, uint32_t arena, int status)
{
    uint32_t i = 0;
    while (i < w.outs && !is_for(w.out[i], kind, arena))
        i++;
    ck_assert_msg(i < w.outs, "nothing of arena %u is asked of the device", arena);
    struct fab_ctl *ctl = w.out[i];
    w.out[i] = w.out[--w.outs];
    ctl->status = status;
    if (kind == FAB_REG_MR && status == 0)
        ctl->mr.x = &w.second[arena];
    ctl->done(ctl);
}

static uint32_t count_told(enum lane_command_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.tells; i++)
        n += w.told[i].kind == kind;
    return n;
}

static void lane_answers(enum lane_event_kind kind, uint32_t tag, int status)
{
    const struct lane_event e = {.kind = kind,
                                 .answer = {.tag = tag, .status = status, .last = ARENAS}};
    agent_leases_event(&w.pool, &e);
}

/* That this arena has another registration, it was told last. */
static void lane_renews(uint32_t arena)
{
    ck_assert_uint_gt(w.tells, 0);
    const struct lane_command *c = &w.told[w.tells - 1];
    ck_assert_int_eq(c->kind, LANE_COMMAND_ARENA_REREGISTER);
    ck_assert_uint_eq(c->reregister.number, arena);
    lane_answers(LANE_EVENT_ARENA_REREGISTERED, c->reregister.tag, 0);
}

/* A live worker with a lease in each of its arenas. */
static void begin_worker(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit};
    w.fab.ops = &w.ops;
    w.agent.config.max_sessions = 1;
    w.agent.pools[0] = &w.pool;
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = w.pool.world = &w.world.world;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.device.fab = &w.fab;
    w.pool.sessions = &w.session;
    w.pool.lane = (struct lane *)&w; /* there is one */
    w.fab.caps.deadlines = true;     /* so that regions have none of their own */
    fab_iova_init(&w.agent.iova, 1);
    w.session = (struct agent_session){
        .pool = &w.pool, .stage = STAGE_LIVE, .arenas = ARENAS, .tenant = 1, .serial = SERIAL};
    for (uint32_t i = 0; i < ARENAS; i++) {
        w.arena[i] = (struct arena){.pool = &w.pool, .mr = &w.first[i], .mem.size = 4096};
        w.session.arena[i] = &w.arena[i];
        w.state[i] = LANE_LEASE_LIVE;
    }
}

/* All of which are being revoked by force. */
static void begin(void)
{
    const struct asker nobody = {.request = NULL};
    begin_worker();
    ck_assert_int_eq(agent_revocation_begin(nobody, &w.session, 0, true), 0);
    ck_assert_uint_eq(w.told[0].revoke.arenas, (1u << ARENAS) - 1);
    lane_answers(LANE_EVENT_REVOKED, w.told[0].revoke.tag, 0);
}

/* It is over: the worker's regions wait for nothing more, and the arenas are nobody's else. */
static void expect_over(uint32_t freed)
{
    ck_assert_ptr_null(w.pool.leases.list);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
    ck_assert_uint_eq(w.pool.leases.forced, freed);
    for (uint32_t i = 0; i < ARENAS; i++)
        ck_assert(!w.arena[i].busy && !w.arena[i].lost);
}

START_TEST(all_arenas_get_their_other_registrations_at_once)
{
    begin();
    ck_assert_uint_eq(count_out(FAB_REG_MR), ARENAS);
    for (uint32_t i = ARENAS; i-- > 0;) { /* in any order */
        device_answers(FAB_REG_MR, i, 0);
        lane_renews(i);
    }
    ck_assert_uint_eq(count_out(FAB_DEREG_MR), ARENAS);
    for (uint32_t i = 0; i < ARENAS; i++) {
        ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_OVER), 0);
        device_answers(FAB_DEREG_MR, i, 0);
        ck_assert_ptr_eq(w.arena[i].mr, &w.second[i]);
    }
    ck_assert_uint_eq(count_told(LANE_COMMAND_FENCED), ARENAS);
    ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_OVER), 1);
    expect_over(ARENAS);
}
END_TEST

START_TEST(where_there_is_no_room_for_all_at_once_they_go_one_after_the_other)
{
    begin();
    device_answers(FAB_REG_MR, 0, 0);
    device_answers(FAB_REG_MR, 2, -ENOMEM);
    device_answers(FAB_REG_MR, 1, -ENOMEM);
    ck_assert_uint_eq(w.outs, 0); /* while the former one of arena 0 is still there */
    lane_renews(0);
    device_answers(FAB_DEREG_MR, 0, 0);
    for (uint32_t i = 1; i < ARENAS; i++) {
        ck_assert_uint_eq(w.outs, 1);
        device_answers(FAB_REG_MR, i, 0);
        lane_renews(i);
        device_answers(FAB_DEREG_MR, i, 0);
    }
    ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_OVER), 1);
    expect_over(ARENAS);
}
END_TEST

START_TEST(who_registers_while_it_takes_long_is_told_before_he_gives_up)
{
    begin();
    device_answers(FAB_REG_MR, 0, 0);
    agent_leases_tick(&w.pool);
    ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_LATE), 0);
    test_world_advance(&w.world, 4 * BASE_NS_PER_S); /* of the 5 that kedge_reg_mr() waits */
    agent_leases_tick(&w.pool);
    agent_leases_tick(&w.pool); /* and who has come since then */
    ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_LATE), 2);
}
END_TEST

START_TEST(where_one_alone_has_no_room_nothing_more_is_tried)
{
    begin();
    for (uint32_t i = 0; i < ARENAS; i++)
        device_answers(FAB_REG_MR, i, -ENOMEM);
    ck_assert_uint_eq(w.outs, 1); /* all of them may have been refused for each other's sake */
    device_answers(FAB_REG_MR, 0, -ENOMEM);
    ck_assert_uint_eq(count_told(LANE_COMMAND_ARENA_REREGISTER), 0);
    ck_assert_uint_eq(count_told(LANE_COMMAND_FORCE_OVER), 1);
    expect_over(0);
}
END_TEST

START_TEST(a_worker_that_ends_meanwhile_leaves_no_second_registration)
{
    begin();
    device_answers(FAB_REG_MR, 0, 0);
    const uint32_t asked = w.told[w.tells - 1].reregister.tag;
    w.session.stage = STAGE_EMPTY;
    device_answers(FAB_REG_MR, 1, 0);
    device_answers(FAB_REG_MR, 2, -ENOMEM);
    lane_answers(LANE_EVENT_ARENA_REREGISTERED, asked, -ENOENT);
    ck_assert_uint_eq(count_out(FAB_DEREG_MR), 2);
    for (uint32_t i = 0; i < w.outs; i++)
        ck_assert(w.out[i]->mr.x == &w.second[0] || w.out[i]->mr.x == &w.second[1]);
    device_answers(FAB_DEREG_MR, 0, 0);
    device_answers(FAB_DEREG_MR, 1, 0);
    expect_over(0);
}
END_TEST

/* A metaserver's question that has no answer yet. */
static struct asker ask_by(uint32_t metaserver)
{
    struct agent_query *q = calloc(1, sizeof *q);
    ck_assert_ptr_nonnull(q);
    *q = (struct agent_query){
        .agent = &w.agent, .metaserver = metaserver, .next = w.agent.asked.list};
    snprintf(q->id, sizeof q->id, "%016u", metaserver);
    w.agent.asked.list = q;
    w.agent.asked.count++;
    w.agent.asked.of[metaserver]++;
    return (struct asker){.world = &w.world.world, .asked = q};
}

START_TEST(what_two_metaservers_ask_for_is_revoked_once_and_answered_at_both)
{
    for (int force = 0; force < 2; force++) {
        begin_worker();
        base_text_init(&w.agent.answer, 1 << 16);
        w.agent.config.metaservers = 2;
        snprintf(w.agent.config.metaserver[0], AGENT_TEXT, "http://one");
        snprintf(w.agent.config.metaserver[1], AGENT_TEXT, "http://two");
        for (uint32_t i = 0; i < 2; i++)
            ck_assert_int_eq(agent_revocation_begin(ask_by(i), &w.session, 2, force != 0), 0);
        ck_assert_uint_eq(count_told(LANE_COMMAND_REVOKE), 1);
        const int other = agent_revocation_begin(ask_by(0), &w.session, 3, force != 0);
        ck_assert_int_eq(other, force ? -EBUSY : 0);
        for (uint32_t i = 0; i < ARENAS; i++)
            w.state[i] = LANE_LEASE_REVOKED;
        lane_answers(LANE_EVENT_REVOKED, w.told[0].revoke.tag, 0);
        while (w.outs > 0) { /* by force: the arena's other registration */
            device_answers(FAB_REG_MR, 1, -EIO);
        }
        agent_leases_tick(&w.pool);
        ck_assert_uint_ge(w.world.calls, 2);
        int at[2] = {0, 0};
        for (uint32_t i = 0; i < w.world.calls; i++) {
            at[0] += strstr(w.world.call[i].url, "http://one/") != NULL &&
                     strstr(w.world.call[i].url, "answers/0000000000000000") != NULL;
            at[1] += strstr(w.world.call[i].url, "http://two/") != NULL &&
                     strstr(w.world.call[i].url, "answers/0000000000000001") != NULL;
        }
        ck_assert_int_ge(at[0], 1);
        ck_assert_int_eq(at[1], 1);
        agent_leases_stop(&w.pool);
        while (w.agent.asked.list != NULL)
            agent_query_forget(w.agent.asked.list);
        base_text_fini(&w.agent.answer);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_two_metaservers_ask_for_is_revoked_once_and_answered_at_both)                           \
    T(all_arenas_get_their_other_registrations_at_once)                                            \
    T(where_there_is_no_room_for_all_at_once_they_go_one_after_the_other)                          \
    T(who_registers_while_it_takes_long_is_told_before_he_gives_up)                                \
    T(where_one_alone_has_no_room_nothing_more_is_tried)                                           \
    T(a_worker_that_ends_meanwhile_leaves_no_second_registration)
KEDGE_CHECK_MAIN("agent.control.leases", TESTS)
