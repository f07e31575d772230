/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator takes away of a session that lodges (lodger_bed.h). */
#include <errno.h>

#include "../../check_main.h"
#include "lodger_bed.h"
#include "world_held.h"

static struct lane_event tell(uint32_t node, struct lane_command c, unsigned passes)
{
    const uint32_t answers = world.node[node].answers;
    order(node, c);
    for (unsigned i = 0; i < passes && world.node[node].answers == answers; i++)
        run(1);
    ck_assert_uint_eq(world.node[node].answers, answers + 1);
    return world.node[node].answer;
}

static struct lane_lease lease_of(uint32_t number)
{
    struct lane_lease e;
    for (uint32_t i = 0; i < lane_leases(k.memory); i++)
        if (lane_lease(k.memory, i, &e) && e.number == number)
            return e;
    return (struct lane_lease){.state = LANE_LEASE_NONE};
}

static void post_words(uint64_t from, uint64_t until)
{
    for (uint64_t id = from; id < until; id++)
        post_word(SCHEMA_OP_READ, id, 8 * (id % 32), 0);
}

static void go_away_with_a_region(void)
{
    setup();
    ck_assert_uint_ne(world_register(&world, &k, 8192, 64, SCHEMA_RECORD_READ), 0);
    go_away();
}

/* It has requests out all the time, which the device gives back late, and is not called home. */
START_TEST(a_lodgers_regions_are_revoked_where_they_are_and_it_stays)
{
    go_away_with_a_region();
    world_hold(&world.node[OTHER], world.node[OTHER].res.cq);
    post_words(10, 14);
    run(5);
    ck_assert_uint_eq(world_stats(&world, OTHER).inflight, 4);
    const uint32_t told = atomic_load(&k.r->revoked), wake = atomic_load(&k.r->wake);
    atomic_store(&k.w->want_wake, 4);
    const uint64_t begun_ns = world.now_ns;
    const struct lane_command c = {.kind = LANE_COMMAND_REVOKE,
                                   .session = k.id,
                                   .revoke = {.tag = 9, .number = 1, .arenas = UINT32_MAX}};
    const struct lane_event e = tell(HOME, c, 1);
    ck_assert_uint_eq(e.answer.taken, 1);
    ck_assert_int_eq(e.answer.status, 0);
    ck_assert_uint_eq(world_stats(&world, HOME).mrs, 0);     /* no peer finds it any more, */
    ck_assert_uint_eq(atomic_load(&k.r->revoked), told + 1); /* and its worker hears of it */
    ck_assert_uint_eq(atomic_load(&k.r->wake), wake + 1);
    ck_assert_int_eq(lease_of(1).state, LANE_LEASE_WITHDRAWING);
    const uint64_t most_ns = world.node[HOME].config.mr_lease_ns + 1000000;
    while (lease_of(1).state != LANE_LEASE_REVOKED && world.now_ns - begun_ns < 2 * most_ns)
        run(1);
    ck_assert_uint_le(world.now_ns - begun_ns, most_ns); /* its lease is over, and not more */
    ck_assert_int_eq(where, AWAY);
    ck_assert_uint_eq(moves, 0);
    atomic_store(&k.w->want_wake, 0);
    world_give();
    for (uint64_t id = 10; id < 14; id++)
        ck_assert_uint_eq(take_completion(200000).wr_id, id); /* in its turn, however it ended */
    world_held_end();
    teardown();
}
END_TEST

static struct lane_command rekey_command(uint32_t session, uint32_t tag, const struct fab_mr *mr)
{
    return (struct lane_command){
        .kind = LANE_COMMAND_ARENA_REREGISTER,
        .session = session,
        .reregister = {.tag = tag, .lkey = mr->lkey, .rkey = mr->rkey, .iova = mr->addr}};
}

static void limit_device(uint64_t ops)
{
    order(OTHER, (struct lane_command){.kind = LANE_COMMAND_WINDOW,
                                       .window = {.scope = LANE_WINDOW_DEVICE, .ops = ops}});
}

/* By force: what it has out names the arena. The other lane goes over to its other registration
 * and says when nothing names the former one; then its regions are taken at home. */
START_TEST(a_lodger_goes_over_to_another_registration_where_it_is)
{
    go_away_with_a_region();
    const struct lane_command revoke = {.kind = LANE_COMMAND_REVOKE,
                                        .session = k.id,
                                        .revoke = {.tag = 1, .arenas = 1, .force = true}};
    struct fab_mr *const former = other_mr, *const at_home = register_anew(HOME);
    other_mr = register_anew(OTHER);
    limit_device(1);
    post_words(10, 30); /* of which some wait at the window, and name the former one */
    struct lane_event e = tell(HOME, revoke, 2);
    ck_assert_uint_eq(e.answer.taken, 1);
    const uint32_t there = world.node[OTHER].config.max_sessions + LODGER;
    e = tell(OTHER, rekey_command(there, 2, other_mr), 2000);
    ck_assert_int_eq(e.kind, LANE_EVENT_ARENA_REREGISTERED);
    ck_assert_uint_eq(e.session, there);
    ck_assert_int_eq(e.answer.status, 0);
    ck_assert_int_eq(lease_of(1).state, LANE_LEASE_WITHDRAWING); /* what is at home is let be */
    ck_assert_uint_gt(world_stats(&world, OTHER).inflight, 8);
    deregister(OTHER, former);
    limit_device(0);
    for (uint64_t id = 10; id < 30; id++) { /* nothing of it names the former one any more */
        const struct schema_cqe done = take_completion(20000);
        ck_assert_uint_eq(done.wr_id, id);
        ck_assert_int_eq(done.status, IBV_WC_SUCCESS);
    }
    e = tell(HOME, rekey_command(k.id, 3, at_home), 1);
    ck_assert_int_eq(e.answer.status, 0);
    ck_assert_int_eq(lease_of(1).state, LANE_LEASE_WAITING);
    order(HOME, (struct lane_command){
                    .kind = LANE_COMMAND_FENCED, .session = k.id, .tag = e.answer.fence_tag});
    run(1);
    ck_assert_int_eq(lease_of(1).state, LANE_LEASE_REVOKED);
    expect_word(30);
    ck_assert_int_eq(where, AWAY);
    call_back(false);
    for (int i = 0; i < 100 && where != AT_HOME; i++)
        run(1);
    expect_word(31);
    e = tell(OTHER, rekey_command(there, 4, other_mr), 1);
    ck_assert_int_eq(e.answer.status, -ENOENT); /* its own lane would hear of it then */
    deregister(HOME, k.arena_mr);
    k.arena_mr = at_home;
    teardown();
}
END_TEST

/* Its worker breaks a rule while that is asked for. What it has out names the former registration,
 * which goes when the answer has come: so that waits for all of it. */
START_TEST(a_lodger_that_is_to_end_says_when_nothing_of_it_names_the_former_registration)
{
    go_away_with_a_region();
    expect_word(9);
    world_hold(&world.node[OTHER], world.node[OTHER].res.cq);
    post_words(10, 14);
    run(5);
    ck_assert_uint_eq(world_stats(&world, OTHER).inflight, 4);
    atomic_store(&k.w->sq_tail, k.sq_tail + 1000);
    run(1);
    ck_assert_uint_eq(world_stats(&world, OTHER).inflight, 4);
    const uint32_t there = world.node[OTHER].config.max_sessions + LODGER;
    const uint32_t answers = world.node[OTHER].answers;
    order(OTHER, rekey_command(there, 2, other_mr));
    run(100);
    ck_assert_uint_eq(world.node[OTHER].answers, answers);
    ck_assert_uint_eq(world_stats(&world, OTHER).inflight, 4);
    world_give();
    for (int i = 0; i < 2000000 && world.node[OTHER].answers == answers; i++)
        run(1);
    world_held_end();
    ck_assert_uint_eq(world.node[OTHER].answers, answers + 1);
    ck_assert_uint_eq(world_stats(&world, OTHER).inflight, 0);
    ck_assert_int_eq(world.node[OTHER].answer.answer.status, 0);
    ck_assert_uint_eq(world.node[OTHER].answer.answer.tag, 2);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lodgers_regions_are_revoked_where_they_are_and_it_stays)                                   \
    T(a_lodger_goes_over_to_another_registration_where_it_is)                                      \
    T(a_lodger_that_is_to_end_says_when_nothing_of_it_names_the_former_registration)
KEDGE_CHECK_MAIN("agent.lane.lodger_regions", TESTS)
