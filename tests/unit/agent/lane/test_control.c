/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: how many are done in a pass, and whose. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "world.h"

enum { TENANT = 1, OTHER = 2, CROWD = 16, ASKED = 30, IN_A_PASS = 2 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world;
static struct world *w = &world;

static void ask(struct world_worker *k, uint8_t op, uint64_t which)
{
    struct schema_sq_desc d = {.op = op, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    if (op == SCHEMA_OP_CONNECT)
        memcpy(d.connect.gid, &which, sizeof which);
    d.connect.tag = ++k->tag;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
}

static uint32_t answered(const struct world_worker *k)
{
    return atomic_load(&k->r->sq_head);
}

START_TEST(a_few_are_done_in_a_pass_however_many_are_asked_for)
{
    static struct world_worker crowd[CROWD];
    world_open(w);
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], 0, i, TENANT + i % 2);
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < ASKED; n++)
            ask(&crowd[i], SCHEMA_OP_MR_STATUS, 0);
    for (uint32_t passes = 1; passes <= CROWD * ASKED / IN_A_PASS; passes++) {
        uint32_t done = 0;
        world_run(w, 1);
        for (uint32_t i = 0; i < CROWD; i++)
            done += answered(&crowd[i]);
        ck_assert_uint_eq(done, passes * IN_A_PASS);
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        ck_assert_uint_eq(atomic_load(&crowd[i].r->reply[ASKED % SCHEMA_REPLIES].tag), ASKED);
        world_detach(w, &crowd[i]);
    }
    world_close(w);
}
END_TEST

/* Of one session so many in a row, and of all twice as many, which nobody else waits for. */
START_TEST(where_a_tenant_is_alone_its_sessions_have_several_in_a_row)
{
    enum { IN_A_TURN = 16, ALONE = 32 };
    static struct world_worker crowd[CROWD], other;
    world_open(w);
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], 0, i, TENANT);
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < ASKED; n++)
            ask(&crowd[i], SCHEMA_OP_MR_STATUS, 0);
    for (uint32_t passes = 1, before = 0; passes <= CROWD / 2; passes++) {
        uint32_t done = 0, most = 0;
        world_run(w, 1);
        for (uint32_t i = 0; i < CROWD; i++) {
            done += answered(&crowd[i]);
            most = answered(&crowd[i]) > most ? answered(&crowd[i]) : most;
        }
        ck_assert_uint_eq(done - before, ALONE);
        if (passes == 1) /* and the one that came before anybody waited */
            ck_assert_uint_le(most, IN_A_TURN + 1);
        before = done;
    }
    world_attach(w, &other, 0, CROWD, OTHER);
    ask(&other, SCHEMA_OP_MR_STATUS, 0);
    world_run(w, 1);
    ck_assert_uint_eq(answered(&other), 1);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &other);
    world_close(w);
}
END_TEST

/* Sixteen in a message are sixteen of a pass. */
START_TEST(many_imports_in_a_message_are_as_many_of_a_pass)
{
    enum { MESSAGES = 4, AT_ONCE = SCHEMA_IMPORTS_AT_ONCE };
    static struct world_worker crowd[4];
    const uint32_t slots =
        1 + (AT_ONCE * (uint32_t)sizeof(struct schema_grant) + SCHEMA_LINE - 1) / SCHEMA_LINE;
    world_open(w);
    for (uint32_t i = 0; i < 4; i++)
        world_attach(w, &crowd[i], 0, i, TENANT);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t n = 0; n < MESSAGES; n++) {
            struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT_MANY, .slots = (uint8_t)slots};
            d.import_many.count = AT_ONCE;
            d.import_many.tag = ++crowd[i].tag;
            world_post(&crowd[i], &d);
            for (uint32_t k = 1; k < slots; k++) { /* keys that are all one's own */
                const struct schema_sq_desc behind = {.op = (uint8_t)n};
                world_post(&crowd[i], &behind);
            }
        }
        lane_doorbell(w->node[0].lane, crowd[i].id);
    }
    for (uint32_t passes = 1, before = 0; passes <= 6; passes++) {
        uint32_t done = 0;
        world_run(w, 1);
        for (uint32_t i = 0; i < 4; i++)
            done += answered(&crowd[i]) / slots;
        ck_assert_uint_ge(done, before + 1);
        ck_assert_uint_le(done, before + 3);
        before = done;
    }
    for (uint32_t i = 0; i < 4; i++)
        world_detach(w, &crowd[i]);
    world_close(w);
}
END_TEST

START_TEST(a_worker_of_another_tenant_waits_for_none_of_a_crowd)
{
    static struct world_worker crowd[CROWD], k;
    world_open(w);
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], 0, i, TENANT);
    world_attach(w, &k, 0, CROWD, OTHER);
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < ASKED; n++)
            ask(&crowd[i], SCHEMA_OP_MR_STATUS, 0);
    world_run(w, 20);
    for (uint32_t n = 1; n <= 10; n++) {
        ask(&k, SCHEMA_OP_MR_STATUS, 0);
        world_run(w, 1);
        ck_assert_uint_eq(answered(&k), n);
    }
    world_detach(w, &k);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_close(w);
}
END_TEST

/* Lookups of random endpoints for so many passes, a microsecond each, beside one who READs. */
static uint64_t lookups_in(struct world_worker *curious, struct world_worker *k, uint32_t vkey,
                           bool beside, uint32_t passes)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    const uint64_t before = world_stats(w, 0).endpoint_reads;
    struct schema_cqe e;
    for (uint32_t i = 0; i < passes; i++) {
        if (atomic_load(&curious->r->reply[curious->tag % SCHEMA_REPLIES].tag) == curious->tag)
            ask(curious, SCHEMA_OP_CONNECT, i + 1);
        if (!beside) {
            world_run(w, 1);
            continue;
        }
        world_post(k, &d);
        ck_assert(world_poll(w, k, &e, 4));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    return world_stats(w, 0).endpoint_reads - before;
}

START_TEST(lookups_have_a_budget_beside_others_and_none_alone)
{
    enum { PASSES = 40000, FAST = PASSES / 4, BURST = 1251 };
    struct world_worker owner, k, curious;
    world_mr_lease_ns[1] = 60 * BASE_NS_PER_S;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_mr_lease_ns[1] = 0;
    world_attach(w, &curious, 0, 1, OTHER);
    ck_assert_uint_gt(lookups_in(&curious, &k, vkey, false, PASSES), FAST);
    w->now_ns += BASE_NS_PER_S;
    const uint64_t from_ns = w->now_ns, looked_up = lookups_in(&curious, &k, vkey, true, PASSES);
    ck_assert_uint_le(looked_up, BURST + (w->now_ns - from_ns) / 80000 + 2);
    ck_assert_uint_ge(looked_up, BURST);
    world_detach(w, &curious);
    world_unpair(w, &owner, &k);
}
END_TEST

/* The former one in its place has used up more than its budget. */
START_TEST(whose_place_was_anothers_has_a_whole_budget)
{
    enum { PASSES = 8000, BURST = 1251 };
    struct world_worker owner, k, curious;
    const struct lane_command next = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_TENANT, .tenant = OTHER % WORLD_TENANTS, .anew = true}};
    world_mr_lease_ns[1] = 60 * BASE_NS_PER_S;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_mr_lease_ns[1] = 0;
    for (int round = 0; round < 2; round++) {
        world_attach(w, &curious, 0, 1, OTHER);
        ck_assert_uint_ge(lookups_in(&curious, &k, vkey, true, PASSES), BURST);
        world_detach(w, &curious);
        ck_assert_int_eq(lane_command(w->node[0].lane, &next), 0);
    }
    world_unpair(w, &owner, &k);
}
END_TEST

/* They end in the middle of it; others go on. */
START_TEST(sessions_that_end_while_they_wait_leave_nothing)
{
    static struct world_worker crowd[CROWD];
    world_open(w);
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], 0, i, TENANT + i % 3);
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < ASKED; n++)
            ask(&crowd[i], SCHEMA_OP_MR_STATUS, 0);
    for (uint32_t i = 0; i + 1 < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_run(w, ASKED);
    ck_assert_uint_eq(answered(&crowd[CROWD - 1]), ASKED);
    ck_assert_uint_eq(world_stats(w, 0).sessions, 1);
    world_detach(w, &crowd[CROWD - 1]);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_few_are_done_in_a_pass_however_many_are_asked_for)                                         \
    T(where_a_tenant_is_alone_its_sessions_have_several_in_a_row)                                  \
    T(many_imports_in_a_message_are_as_many_of_a_pass)                                             \
    T(a_worker_of_another_tenant_waits_for_none_of_a_crowd)                                        \
    T(lookups_have_a_budget_beside_others_and_none_alone)                                          \
    T(whose_place_was_anothers_has_a_whole_budget)                                                 \
    T(sessions_that_end_while_they_wait_leave_nothing)
KEDGE_CHECK_MAIN("agent.lane.control", TESTS)
