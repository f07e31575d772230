/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a session has imported, and those that it gives back. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 1 };

static struct world world;
static struct world *w = &world;
static struct world_worker k;

static int ask(uint8_t op, uint32_t which, struct schema_reply *reply)
{
    struct schema_sq_desc d = {.op = op, .import = {.vkey = 100 + which}};
    d.import.secret[0] = (uint8_t)which;
    d.import.secret[15] = (uint8_t)(which >> 8);
    return world_ask(w, &k, d, reply);
}

/* In whatever order they are given back, the others are there, and there is room for as many. */
START_TEST(grants_are_given_back_and_others_take_their_place)
{
    enum { DIFFERENT = 64, STEPS = 4000 };
    bool has[DIFFERENT] = {false};
    uint32_t count = 0;
    uint64_t random = 1;
    struct schema_reply reply;
    world_open(w);
    const uint32_t most = w->node[0].config.max_grants;
    ck_assert_uint_lt(most, DIFFERENT);
    world_attach(w, &k, 0, 0, TENANT);
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t which = (uint32_t)(random >> 33) % DIFFERENT;
        if (random >> 63 != 0) {
            const bool fits = has[which] || count < most;
            ck_assert_int_eq(ask(SCHEMA_OP_IMPORT, which, NULL), fits ? 0 : -EDQUOT);
            count += fits && !has[which];
            has[which] |= fits;
        } else {
            ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, which, &reply), has[which] ? 0 : -ENOENT);
            count -= has[which];
            has[which] = false;
            ck_assert_uint_eq(reply.value[0], count);
        }
    }
    world_detach(w, &k);
    world_close(w);
}
END_TEST

/* ---- many at once */

enum { GRANT_SLOTS = SCHEMA_MAX_EXTRA / SCHEMA_LINE, PASSES = 200 };

static struct schema_grant grant_of(uint32_t which)
{
    struct schema_grant g = {.vkey = 100 + which};
    g.secret[0] = (uint8_t)which;
    g.secret[15] = (uint8_t)(which >> 8);
    return g;
}

/* Writes a message of those from `first` on, that says it has `count` of them in `slots` slots. */
static void put_message(uint32_t first, uint32_t count, uint32_t slots)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT_MANY, .slots = (uint8_t)slots};
    struct schema_sq_desc behind[GRANT_SLOTS] = {{.op = 0}};
    d.import_many.tag = ++k.tag;
    d.import_many.count = count;
    for (uint32_t i = 0; i < count && i < SCHEMA_IMPORTS_AT_ONCE; i++) {
        const struct schema_grant g = grant_of(first + i);
        memcpy((uint8_t *)behind + i * sizeof g, &g, sizeof g);
    }
    world_post(&k, &d);
    for (uint32_t i = 0; i < GRANT_SLOTS && i + 1 < slots; i++)
        world_post(&k, &behind[i]);
    lane_doorbell(w->node[0].lane, k.id);
}

static uint32_t slots_of(uint32_t count)
{
    return 1 + (count * (uint32_t)sizeof(struct schema_grant) + SCHEMA_LINE - 1) / SCHEMA_LINE;
}

static const struct schema_reply *ask_for_many(uint32_t first, uint32_t count)
{
    put_message(first, count, slots_of(count));
    const struct schema_reply *r = &k.r->reply[k.tag % SCHEMA_REPLIES];
    for (int i = 0; i < PASSES && atomic_load(&r->tag) != k.tag; i++)
        world_run(w, 1);
    ck_assert_uint_eq(atomic_load(&r->tag), k.tag);
    return r;
}

START_TEST(a_message_imports_as_many_as_it_has_and_each_is_given_back)
{
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    const uint32_t most = w->node[0].config.max_grants;
    for (uint32_t round = 0; round < 40; round++) { /* round the ring */
        const uint32_t count = 1 + round % SCHEMA_IMPORTS_AT_ONCE;
        const struct schema_reply *r = ask_for_many(round * 50, count);
        ck_assert_int_eq(r->status, count <= most ? 0 : -EDQUOT);
        ck_assert_uint_eq(r->value[0], count < most ? count : most);
        ck_assert_uint_eq(atomic_load(&k.r->sq_head), k.sq_tail);
        for (uint32_t i = 0; i < count; i++)
            ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, round * 50 + i, NULL), i < most ? 0 : -ENOENT);
    }
    world_detach(w, &k);
    world_close(w);
}
END_TEST

START_TEST(those_for_which_there_is_no_room_are_refused_and_the_others_stay)
{
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    const uint32_t most = w->node[0].config.max_grants;
    for (uint32_t i = 0; i + 1 < most; i++)
        ck_assert_int_eq(ask(SCHEMA_OP_IMPORT, i, NULL), 0);
    const struct schema_reply *r = ask_for_many(most - 2, 3); /* the first one is there already */
    ck_assert_int_eq(r->status, -EDQUOT);
    ck_assert_uint_eq(r->reason, SCHEMA_REASON_QUOTA);
    ck_assert_uint_eq(r->value[0], most);
    ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, most - 1, NULL), 0);
    ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, most, NULL), -ENOENT);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

/* Nothing is read that the message does not have. */
START_TEST(a_message_whose_count_lies_ends_the_session)
{
    static const struct {
        uint32_t count, slots;
    } lies[] = {{0, 1},
                {0, 2},
                {1, 1},
                {1, 3},
                {16, 5},
                {17, 6},
                {17, 7},
                {3, 3},
                {4, 2},
                {UINT32_MAX, 1},
                {UINT32_MAX / 20 + 2, 2},
                {16, 255}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        world_open(w);
        world_attach(w, &k, 0, 0, TENANT);
        put_message(0, lies[i].count, lies[i].slots);
        world_run(w, 10);
        ck_assert_msg(atomic_load(&k.r->ended) == SCHEMA_REASON_DESCRIPTOR, "lie %zu", i);
        world_detach(w, &k);
        world_close(w);
    }
}
END_TEST

/* And what a single one may do always, and what not. */
START_TEST(a_message_costs_of_its_quota_what_its_parts_cost)
{
    struct lane_quota *const quota = &w->node[0].quota[TENANT];
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    ck_assert_uint_gt(w->node[0].config.max_grants, 2);
    ck_assert_int_eq(ask_for_many(0, 2)->status, 0);
    ck_assert_uint_eq(quota->control_ops, 2);
    atomic_store(&quota->control_ops_per_s, 1);
    (void)lane_quota_ask(quota, w->now_ns);
    const struct schema_reply *r = ask_for_many(1, 2); /* one that is there, and one that is not */
    ck_assert_int_eq(r->status, -EDQUOT);
    ck_assert_uint_eq(r->reason, SCHEMA_REASON_QUOTA_CONTROL_OPS);
    ck_assert_uint_eq(r->value[0], 1);
    ck_assert_uint_eq(quota->control_ops, 4);
    atomic_store(&quota->control_ops_per_s, 0);
    ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, 2, NULL), 0);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(grants_are_given_back_and_others_take_their_place)                                           \
    T(a_message_imports_as_many_as_it_has_and_each_is_given_back)                                  \
    T(those_for_which_there_is_no_room_are_refused_and_the_others_stay)                            \
    T(a_message_whose_count_lies_ends_the_session)                                                 \
    T(a_message_costs_of_its_quota_what_its_parts_cost)
KEDGE_CHECK_MAIN("agent.lane.grants", TESTS)
