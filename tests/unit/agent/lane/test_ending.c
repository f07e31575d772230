/* SPDX-License-Identifier: Apache-2.0 */
/* However many sessions end at once, with whatever they have, a pass of the lane does a little of
 * it, and of each tenant's as much. */
#include "../../check_main.h"
#include "schema/table.h"
#include "world_accomplices.h"

enum {
    CROWD = 30,     /* sessions */
    EACH = 8,       /* VQPs of each, and requests that wait */
    REGIONS = 12,   /* of each */
    FIRST = 10,     /* the number of the first */
    STRANGER = 5,   /* the number of one of another tenant */
    ENDED = 100,    /* VQPs, regions and requests, in a pass */
    SOON = 20,      /* passes */
    STEPS_LEFT = 7, /* of a turn of 8, in which the look at the session is one */
    LARGE = 24,     /* sessions, whose regions are shown in two turns each */
    SMALL = 40,     /* and in one */
    FEW = 10,       /* of a third tenant, that end one by one */
    BEGUN = 70,     /* passes, after which the regions of the others are being shown */
    FEW_PASSES = 12
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker crowd[CROWD];
static uint32_t vkey[CROWD];

/* With regions, and requests to a node that does not answer. */
static void open_crowd(struct world_worker *owner)
{
    world_max_mrs = REGIONS;
    world_open(w);
    world_attach(w, owner, 1, 0, GUILTY);
    const uint32_t key = world_register(w, owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, FIRST + i, GUILTY);
        for (uint16_t vqp = 0; vqp < EACH; vqp++)
            ck_assert_int_eq(world_connect(w, &crowd[i], vqp, 1), 0);
        for (uint32_t n = 0; n < REGIONS; n++)
            ck_assert_uint_ne(vkey[i] = world_register(w, &crowd[i], n * 64, 64, ALL), 0);
    }
    world_silence_node(w, 1);
    for (uint32_t i = 0; i < CROWD; i++) {
        for (uint16_t vqp = 0; vqp < EACH; vqp++) {
            struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, vqp, 0, 8, key, 0);
            d.vqp = vqp;
            world_post(&crowd[i], &d);
        }
        lane_doorbell(w->node[0].lane, FIRST + i);
    }
    world_run(w, 3);
    ck_assert_uint_eq(world_stats(w, 0).mrs, CROWD * REGIONS);
    ck_assert_uint_eq(world_stats(w, 0).inflight, CROWD * EACH);
}

static void end_session(uint32_t id)
{
    const struct lane_command c = {
        .kind = LANE_COMMAND_SESSION_END, .session = id, .reason = SCHEMA_REASON_CLOSED};
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

static void end_crowd(void)
{
    for (uint32_t i = 0; i < CROWD; i++)
        end_session(FIRST + i);
}

static uint64_t count_left(void)
{
    const struct lane_stats s = world_stats(w, 0);
    return s.mrs + s.vqps + s.inflight;
}

START_TEST(however_many_sessions_end_a_pass_ends_a_little)
{
    struct world_worker owner;
    uint64_t most = 0;
    open_crowd(&owner);
    end_crowd();
    for (int i = 0; i < LONG && world_stats(w, 0).vqps + world_stats(w, 0).mrs > 0; i++) {
        const uint64_t before = count_left();
        world_run(w, 1);
        const uint64_t ended = before - count_left();
        most = ended > most ? ended : most;
    }
    ck_assert_uint_eq(world_stats(w, 0).vqps + world_stats(w, 0).mrs, 0);
    ck_assert_msg(most <= ENDED, "%lu ended in a pass", (unsigned long)most);
    world_close(w);
    world_max_mrs = 0;
}
END_TEST

START_TEST(whose_session_ends_behind_a_crowd_of_another_tenant_waits_for_a_few)
{
    struct world_worker owner, stranger;
    open_crowd(&owner);
    world_attach(w, &stranger, 0, STRANGER, HONEST);
    end_crowd();
    end_session(STRANGER);
    for (int i = 0; i < SOON && w->node[0].overs[STRANGER] == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(w->node[0].overs[STRANGER], 1);
    ck_assert_uint_gt(world_stats(w, 0).mrs, 0); /* the crowd's are not done yet */
    world_close(w);
    world_max_mrs = 0;
}
END_TEST

static bool is_published(uint32_t key)
{
    const struct schema_table *t = &w->node[0].mr_table;
    struct schema_mr_record r;
    const uint8_t *span = t->slots + (size_t)schema_mr_home(&t->desc, key) * SCHEMA_RECORD_BYTES;
    return schema_mr_find(&t->desc, span, key, &r) == 0;
}

/* The answer says that there is no such session: nobody finds a region of it, then. */
START_TEST(what_is_revoked_of_a_session_that_ends_goes_at_once)
{
    const uint32_t last = CROWD - 1;
    struct world_worker owner;
    const struct lane_command revoke = {
        .kind = LANE_COMMAND_REVOKE, .session = FIRST + last, .revoke = {.tag = 7, .own = true}};
    open_crowd(&owner);
    end_crowd();
    ck_assert_int_eq(lane_command(w->node[0].lane, &revoke), 0);
    ck_assert(is_published(vkey[last]));
    world_run(w, 2); /* commands of one pass have a bound too */
    ck_assert_uint_eq(w->node[0].answer.answer.tag, 7);
    ck_assert_int_eq(w->node[0].answer.answer.status, -ENOENT);
    ck_assert(!is_published(vkey[last]));
    ck_assert_uint_gt(world_stats(w, 0).mrs, REGIONS);
    world_close(w);
    world_max_mrs = 0;
}
END_TEST

/* Sessions with so many regions each, which are all that there is to end. last: of each the key of
 * the last one. */
static void attach_some(struct world_worker *k, uint32_t first, uint32_t count, uint32_t tenant,
                        uint32_t regions, uint32_t *last)
{
    for (uint32_t i = 0; i < count; i++) {
        world_attach(w, &k[i], 0, first + i, tenant);
        for (uint32_t n = 0; n < regions; n++)
            ck_assert_uint_ne(last[i] = world_register(w, &k[i], n * 64, 64, ALL), 0);
    }
}

/* While what two tenants had is shown as withdrawn, the turns of one take 8 of the 16 steps of each
 * pass, and those of the other `of_second`. Returns how many passes a session of a third tenant
 * waits until what it had is withdrawn, at the most. */
static uint32_t wait_beside(uint32_t of_second)
{
    static struct world_worker one[LARGE], two[SMALL], few[FEW], awake;
    uint32_t key[LARGE + SMALL], ended = 0, waited = 0, most = 0;
    world_max_mrs = 2 * STEPS_LEFT;
    world_open(w);
    attach_some(one, 0, LARGE, 1, 2 * STEPS_LEFT, key);
    attach_some(two, LARGE, SMALL, 2, of_second - 1, key);
    attach_some(few, LARGE + SMALL, FEW, 3, 2 * STEPS_LEFT, key);
    world_attach(w, &awake, 0, LARGE + SMALL + FEW, 0);
    for (uint32_t i = 0; i < LARGE + SMALL; i++)
        end_session(i);
    for (uint32_t i = 0; ended < FEW; i++) {
        lane_doorbell(w->node[0].lane, LARGE + SMALL + FEW - 1); /* so that several are active */
        lane_doorbell(w->node[0].lane, LARGE + SMALL + FEW);
        if (i >= BEGUN && waited++ == 0)
            end_session(LARGE + SMALL + ended);
        world_run(w, 1);
        most = waited > most ? waited : most;
        if (waited == 0 || (waited < LONG && is_published(key[ended])))
            continue;
        ended++;
        waited = 0;
    }
    world_close(w);
    world_max_mrs = 0;
    return most;
}

START_TEST(no_size_of_others_sessions_takes_a_tenant_its_turns)
{
    for (uint32_t of_second = 2; of_second <= STEPS_LEFT + 1; of_second++) {
        const uint32_t most = wait_beside(of_second);
        ck_assert_msg(most <= FEW_PASSES, "%u passes beside turns of 8 and %u", most, of_second);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(however_many_sessions_end_a_pass_ends_a_little)                                              \
    T(whose_session_ends_behind_a_crowd_of_another_tenant_waits_for_a_few)                         \
    T(what_is_revoked_of_a_session_that_ends_goes_at_once)                                         \
    T(no_size_of_others_sessions_takes_a_tenant_its_turns)
KEDGE_CHECK_MAIN("agent.lane.ending", TESTS)
