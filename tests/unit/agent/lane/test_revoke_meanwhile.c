/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker registers while the operator takes its other regions away by force. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, FAR = 8192, PASSES = 200 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, reader;
static uint32_t vkey, tag;

static void command(const struct lane_command *c)
{
    ck_assert_int_eq(lane_command(w->node[1].lane, c), 0);
    world_run(w, 1);
}

static void revoke(bool force)
{
    const struct lane_command c = {.kind = LANE_COMMAND_REVOKE,
                                   .session = owner.id,
                                   .revoke = {.tag = ++tag, .arenas = 1, .force = force}};
    command(&c);
    ck_assert_int_eq(w->node[1].answer.kind, LANE_EVENT_REVOKED);
    ck_assert_uint_eq(w->node[1].answer.answer.taken, 1);
}

static void force_is_over(void)
{
    const struct lane_command c = {.kind = LANE_COMMAND_FORCE_OVER, .session = owner.id};
    command(&c);
}

/* Asks for a region and waits for nothing. */
static void begin_to_register(uint64_t offset)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .slots = 1,
        .reg_mr = {.offset = offset, .length = 64, .vaddr = 0x10000 + offset, .access = ALL}};
    d.connect.tag = ++owner.tag; /* the same place in all */
    world_post(&owner, &d);
    lane_doorbell(w->node[1].lane, owner.id);
    world_run(w, PASSES);
}

static const struct schema_reply *reply(void)
{
    const struct schema_reply *r = &owner.r->reply[owner.tag % SCHEMA_REPLIES];
    return atomic_load(&r->tag) == owner.tag ? r : NULL;
}

/* The arena's other registration is there; the former one goes. */
static struct lane_event reregister(void)
{
    struct fab_mr *mr = world_mr(w, &owner, 0, owner.arena.size,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    const struct lane_command c = {
        .kind = LANE_COMMAND_ARENA_REREGISTER,
        .session = owner.id,
        .reregister = {
            .tag = ++tag, .number = 0, .lkey = mr->lkey, .rkey = mr->rkey, .iova = mr->addr}};
    command(&c);
    const struct lane_event e = w->node[1].answer;
    ck_assert_int_eq(e.kind, LANE_EVENT_ARENA_REREGISTERED);
    ck_assert_int_eq(e.answer.status, 0);
    struct fab_ctl dereg = {.kind = FAB_DEREG_MR, .mr = {.x = owner.arena_mr}};
    ck_assert_int_eq(fab_call(w->node[1].fab, &dereg), 0);
    owner.arena_mr = mr;
    const struct lane_command fenced = {
        .kind = LANE_COMMAND_FENCED, .session = owner.id, .tag = e.answer.fence_tag};
    command(&fenced);
    return e;
}

static enum lane_lease_state state_of(uint32_t number)
{
    struct lane_lease e;
    for (uint32_t i = 0; i < lane_leases(owner.memory); i++)
        if (lane_lease(owner.memory, i, &e) && e.number == number)
            return e.state;
    return LANE_LEASE_NONE;
}

static uint32_t read_status(uint32_t key)
{
    return world_do(w, &reader, world_rw(SCHEMA_OP_READ, 1, 0, 8, key, FAR), 20000).status;
}

START_TEST(a_region_that_is_registered_meanwhile_has_the_other_registration)
{
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
    revoke(true);
    begin_to_register(FAR);
    ck_assert_ptr_null(reply()); /* it waits for that */
    const struct lane_event e = reregister();
    ck_assert_uint_eq(e.answer.taken, 0);
    ck_assert_uint_eq(e.answer.last, 1); /* so that nobody names it as revoked */
    ck_assert_ptr_nonnull(reply());
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_int_eq(state_of(1), LANE_LEASE_REVOKED);
    ck_assert_int_eq(state_of(2), LANE_LEASE_LIVE);
    ck_assert_uint_eq(read_status((uint32_t)reply()->value[0]), IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    begin_to_register(FAR + 64); /* and nothing waits any more */
    ck_assert_ptr_nonnull(reply());
    world_close(w);
}
END_TEST

START_TEST(it_waits_no_longer_when_there_is_no_other_registration)
{
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
    revoke(true);
    begin_to_register(FAR);
    ck_assert_ptr_null(reply());
    force_is_over();
    ck_assert_ptr_nonnull(reply());
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_int_eq(state_of(2), LANE_LEASE_LIVE);
    ck_assert_uint_eq(read_status((uint32_t)reply()->value[0]), IBV_WC_SUCCESS);
    force_is_over(); /* once more is nothing */
    world_close(w);
}
END_TEST

/* Where nothing else ends its waiting, the control side does. */
START_TEST(who_has_waited_for_long_is_told_and_may_come_again)
{
    const struct lane_command late = {.kind = LANE_COMMAND_FORCE_LATE, .session = owner.id};
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
    command(&late); /* of what nobody forces, and nobody waits for */
    revoke(true);
    begin_to_register(FAR);
    command(&late);
    ck_assert_ptr_nonnull(reply());
    ck_assert_int_eq(reply()->status, -EAGAIN);
    ck_assert_uint_eq(reply()->reason, SCHEMA_REASON_FORCED);
    begin_to_register(FAR);
    ck_assert_ptr_null(reply());
    reregister();
    ck_assert_ptr_nonnull(reply());
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_int_eq(state_of(1), LANE_LEASE_REVOKED);
    ck_assert_int_eq(state_of(2), LANE_LEASE_LIVE); /* and the first one took no number */
    world_close(w);
}
END_TEST

START_TEST(by_the_rule_of_the_leases_nothing_waits)
{
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
    revoke(false);
    begin_to_register(FAR);
    ck_assert_ptr_nonnull(reply());
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_int_eq(state_of(2), LANE_LEASE_LIVE);
    world_close(w);
}
END_TEST

START_TEST(a_worker_that_ends_while_it_waits_is_no_more)
{
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
    revoke(true);
    begin_to_register(FAR);
    ck_assert_ptr_null(reply());
    const struct lane_command c = {
        .kind = LANE_COMMAND_SESSION_END, .session = owner.id, .reason = SCHEMA_REASON_CLOSED};
    command(&c);
    for (int i = 0; i < 20 && w->node[1].over == 0; i++)
        world_sleep(w, w->node[1].config.mr_lease_ns);
    ck_assert_uint_eq(w->node[1].over, 1);
    force_is_over();
    ck_assert_ptr_null(reply());
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_region_that_is_registered_meanwhile_has_the_other_registration)                            \
    T(it_waits_no_longer_when_there_is_no_other_registration)                                      \
    T(who_has_waited_for_long_is_told_and_may_come_again)                                          \
    T(by_the_rule_of_the_leases_nothing_waits)                                                     \
    T(a_worker_that_ends_while_it_waits_is_no_more)
KEDGE_CHECK_MAIN("agent.lane.revoke_meanwhile", TESTS)
