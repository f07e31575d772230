/* SPDX-License-Identifier: Apache-2.0 */
/* Of sessions and regions that wait for something a pass looks at a few, however many one tenant
 * has. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world_held.h"
#include "world_trio.h"

enum {
    TENANT = 1,
    OTHER = 2,
    MILLISECOND = 1000, /* passes */
    CROWD = 110,
    ROOM = 64, /* completions of a session */
    LONG = 4000,
    UNSTALLED = 32, /* sessions that are looked at in a millisecond, */
    TOLD = 8,       /* and whose CONNECT is answered in a pass */
    REGIONS = 40,
    GIVEN_BACK = 20
};
static const uint64_t LONG_LEASE_NS = 1000000000;
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world, *const w = &world;
static struct world_worker owner, crowd[CROWD];
static uint32_t key;

/* All of them are connected to node 1, and know its region. */
static void open_crowd(void)
{
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, i, TENANT);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
        ck_assert_uint_eq(
            world_do(w, &crowd[i], world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG).status,
            IBV_WC_SUCCESS);
    }
}

static void close_crowd(void)
{
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &owner);
    world_close(w);
}

/* Requests without a byte, which complete at once. */
static void post_empty(struct world_worker *k, uint32_t to, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, n, 0, 0, to, 0);
        world_post(k, &d);
    }
    lane_doorbell(w->node[0].lane, k->id);
}

static uint64_t walked_in_a_pass(uint32_t node)
{
    const uint64_t before = world_stats(w, node).walked;
    world_run(w, 1);
    return world_stats(w, node).walked - before;
}

START_TEST(of_many_that_sleep_without_room_a_few_are_looked_at_and_each_in_its_turn)
{
    struct schema_cqe e;
    uint64_t most = 0;
    open_crowd();
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, ROOM);
    world_run(w, LONG);
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, 1); /* for which there is no room */
    world_run(w, LONG);
    for (int i = 0; i < 2 * LONG; i++) {
        const uint64_t walked = walked_in_a_pass(0);
        most = walked > most ? walked : most;
    }
    ck_assert_uint_gt(most, 0);
    ck_assert_msg(most <= UNSTALLED, "%lu looks in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < CROWD; i++) /* their workers poll, and do not ring */
        for (uint32_t n = 0; n < ROOM; n++)
            ck_assert(world_poll(w, &crowd[i], &e, 0));
    world_run(w, 3 * LONG);
    for (uint32_t i = 0; i < CROWD; i++)
        ck_assert(world_poll(w, &crowd[i], &e, 0));
    close_crowd();
}
END_TEST

/* The one whose turn it is has found room, and its worker polls on without a ring. */
START_TEST(who_sleeps_without_room_beside_a_crowd_of_another_tenant_has_the_next_turn)
{
    struct world_worker k, its_owner;
    struct schema_cqe e;
    open_crowd();
    world_attach(w, &its_owner, 1, 1, OTHER);
    const uint32_t its_key = world_register(w, &its_owner, 0, 4096, ALL);
    world_attach(w, &k, 0, CROWD, OTHER);
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, ROOM);
    world_run(w, LONG);
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, 1);
    world_run(w, LONG / 2); /* the crowd sleeps, and some of it was looked at */
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_run(w, LONG / 10);
    post_empty(&k, its_key, ROOM);
    world_run(w, LONG / 2);
    post_empty(&k, its_key, 1);
    world_run(w, LONG);
    for (uint32_t n = 0; n < ROOM; n++)
        ck_assert(world_poll(w, &k, &e, 0));
    world_run(w, MILLISECOND + 10);
    ck_assert(world_poll(w, &k, &e, 0));
    world_detach(w, &k);
    world_detach(w, &its_owner);
    close_crowd();
}
END_TEST

static uint64_t wake_nobody(void *user, _Atomic uint32_t *word)
{
    (void)user, (void)word;
    return 0;
}

START_TEST(who_is_to_be_woken_is_looked_at_once)
{
    open_crowd();
    lane_set_wake(w->node[0].lane, wake_nobody, NULL);
    world_run(w, LONG);
    for (uint32_t i = 0; i < CROWD; i++) {
        atomic_store(&crowd[i].w->want_wake, 1);
        post_empty(&crowd[i], key, 1);
    }
    const uint64_t before = world_stats(w, 0).walked;
    world_run(w, CROWD);
    ck_assert_uint_eq(world_stats(w, 0).walked - before, CROWD);
    for (uint32_t i = 0; i < CROWD; i++)
        ck_assert_uint_eq(atomic_load(&crowd[i].r->wake), 1);
    for (uint32_t i = 0; i < CROWD; i++)
        atomic_store(&crowd[i].w->want_wake, 0);
    close_crowd();
}
END_TEST

static uint32_t woken(uint32_t i)
{
    return atomic_load(&crowd[i].r->wake);
}

/* All of a crowd are to be woken, few of them in a pass, since somebody else has come. Ten are gone
 * when their turn comes, with others behind them. */
START_TEST(who_ends_while_he_is_to_be_woken_keeps_nobody_from_being_woken)
{
    struct world_worker k;
    bool gone[CROWD] = {false};
    uint32_t left = 10, behind = 0, had[CROWD];
    world_mr_lease_ns[1] = LONG_LEASE_NS; /* no record is READ again */
    open_crowd();
    lane_set_wake(w->node[0].lane, wake_nobody, NULL);
    world_run(w, LONG);
    world_hold(&w->node[0], w->node[0].cq);
    for (uint32_t i = 0; i < CROWD; i++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
        had[i] = atomic_load(&crowd[i].r->cq_tail);
        atomic_store(&crowd[i].w->want_wake, 1);
        world_post(&crowd[i], &d);
        lane_doorbell(w->node[0].lane, i);
    }
    world_run(w, CROWD);
    world_attach(w, &k, 0, CROWD, OTHER);
    world_give();
    world_run(w, 1);
    for (uint32_t i = CROWD; i-- > 0 && left > 0;) {
        const struct lane_command end = {
            .kind = LANE_COMMAND_SESSION_END, .session = i, .reason = SCHEMA_REASON_CLOSED};
        if (woken(i) > 0 || atomic_load(&crowd[i].r->cq_tail) == had[i] || behind++ < 5)
            continue;
        ck_assert_int_eq(lane_command(w->node[0].lane, &end), 0);
        gone[i] = true;
        left--;
    }
    ck_assert_uint_eq(left, 0);
    while (world_stats(w, 0).sessions > CROWD - 10 + 1)
        world_run(w, 1);
    for (uint32_t i = 0; i < CROWD; i++)
        left += gone[i] && woken(i) == 1; /* which its end was, and not its turn */
    ck_assert_uint_gt(left, 0);
    world_run(w, CROWD);
    for (uint32_t i = 0; i < CROWD; i++)
        ck_assert(gone[i] || woken(i) == 1);
    world_held_end();
    world_detach(w, &k);
    close_crowd();
    world_mr_lease_ns[1] = 0;
}
END_TEST

static bool is_answered(const struct world_worker *k)
{
    return atomic_load(&k->r->reply[k->tag % SCHEMA_REPLIES].tag) == k->tag;
}

static uint32_t count_answered(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < CROWD; i++)
        n += is_answered(&crowd[i]);
    return n;
}

START_TEST(of_many_that_wait_for_one_endpoint_a_few_are_told_in_a_pass)
{
    uint32_t most = 0, before = 0;
    world_fault = (struct fault_plan){.seed = 1};
    world_open(w);
    world_delay(w, LONG / 2);
    for (uint32_t i = 0; i < CROWD; i++) {
        struct schema_sq_desc d = {
            .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
        world_attach(w, &crowd[i], 0, i, TENANT);
        memset(d.connect.gid, 7, sizeof d.connect.gid);
        d.connect.tag = ++crowd[i].tag;
        world_post(&crowd[i], &d);
        lane_doorbell(w->node[0].lane, i);
    }
    for (int i = 0; i < 4 * LONG && before < CROWD; i++) {
        world_run(w, 1);
        const uint32_t now = count_answered();
        most = now - before > most ? now - before : most;
        before = now;
    }
    ck_assert_uint_eq(before, CROWD);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    ck_assert_msg(most <= TOLD, "%u are told in a pass", most);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_close(w);
    world_fault = (struct fault_plan){0};
}
END_TEST

/* Requests of one region each, taken in one pass after the other, all of whose leases begin. */
START_TEST(a_pass_looks_at_the_regions_of_who_gives_some_back_once)
{
    uint32_t keys[REGIONS];
    uint64_t most = 0;
    world_max_mrs = REGIONS;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    for (uint32_t i = 0; i < REGIONS; i++)
        keys[i] = world_register(w, &owner, 64 * i, 64, ALL);
    for (uint32_t i = 0; i < GIVEN_BACK; i++) {
        const struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR,
                                         .slots = 1,
                                         .dereg_mr = {.tag = ++owner.tag, .vkey = keys[i]}};
        world_post(&owner, &d);
    }
    lane_doorbell(w->node[1].lane, 0);
    for (int i = 0; i < 3 * GIVEN_BACK; i++) {
        const uint64_t walked = walked_in_a_pass(1);
        most = walked > most ? walked : most;
    }
    ck_assert_uint_gt(most, 0);
    ck_assert_msg(most <= REGIONS, "%lu looks in a pass", (unsigned long)most);
    world_run(w, LONG);
    ck_assert_uint_eq(world_stats(w, 1).mrs, REGIONS - GIVEN_BACK);
    world_detach(w, &owner);
    world_close(w);
    world_max_mrs = 0;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_many_that_sleep_without_room_a_few_are_looked_at_and_each_in_its_turn)                    \
    T(who_sleeps_without_room_beside_a_crowd_of_another_tenant_has_the_next_turn)                  \
    T(who_is_to_be_woken_is_looked_at_once)                                                        \
    T(who_ends_while_he_is_to_be_woken_keeps_nobody_from_being_woken)                              \
    T(of_many_that_wait_for_one_endpoint_a_few_are_told_in_a_pass)                                 \
    T(a_pass_looks_at_the_regions_of_who_gives_some_back_once)
KEDGE_CHECK_MAIN("agent.lane.walks", TESTS)
