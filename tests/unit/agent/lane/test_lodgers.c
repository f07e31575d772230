/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose requests another lane carries out, and which comes back: node 0 is its home, and
 * node 2's lane is the other one. The test is the control side of both. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "session_memory.h"
#include "world.h"

enum { TENANT = 5, HOME = 0, OWNER = 1, OTHER = 2, LODGER = 3, WORD = 8, SLOTS = 16 };

static struct world world;
static struct world_worker owner, k;
static struct fab_mr *other_mr;
static uint32_t vkey;
static enum where { AT_HOME, LEAVES, AWAY } where;
static uint32_t seen_lefts, seen_lodgers, moves, refusals;
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static void order(uint32_t node, struct lane_command c)
{
    ck_assert_int_eq(lane_command(world.node[node].lane, &c), 0);
}

static void leave_home(void)
{
    where = LEAVES;
    ck_assert_int_eq(lane_memory_let_move(k.memory), 0);
    order(HOME, (struct lane_command){.kind = LANE_COMMAND_SESSION_LEAVE, .session = k.id});
}

/* The other lane is another node's here, whose device has a registration of its own of the arena.
 */
static void enter_other(void)
{
    k.memory->handed->arena[0] = (struct lane_arena){.iova = other_mr->addr,
                                                     .bytes = WORLD_ARENA,
                                                     .lkey = other_mr->lkey,
                                                     .rkey = other_mr->rkey};
    order(OTHER,
          (struct lane_command){.kind = LANE_COMMAND_LODGER_ADD,
                                .add = {.id = LODGER,
                                        .rw = k.w,
                                        .ro = k.r,
                                        .sq_slots = 64,
                                        .cq_slots = 64,
                                        .tenant = TENANT,
                                        .tenant_slot = TENANT % WORLD_TENANTS,
                                        .max_vqps = 8,
                                        .max_inflight = 32,
                                        .max_mrs = 4,
                                        .quota = &world.node[HOME].quota[TENANT % WORLD_TENANTS],
                                        .memory = k.memory}});
    where = AWAY;
}

static void call_back(bool hurry)
{
    order(OTHER, (struct lane_command){
                     .kind = LANE_COMMAND_LODGER_RETURN, .session = LODGER, .hurry = hurry});
}

/* What the control side does when it hears of something. */
static void take_events(void)
{
    struct world_node *home = &world.node[HOME], *other = &world.node[OTHER];
    if (home->lefts != seen_lefts) {
        seen_lefts++;
        ck_assert_uint_eq(home->lefts, seen_lefts);
        where = AT_HOME;
        if (home->left.status == 0)
            enter_other();
        else
            refusals++;
    }
    if (other->lodgers_left != seen_lodgers) {
        seen_lodgers++;
        ck_assert_uint_eq(other->lodgers_left, seen_lodgers);
        ck_assert_uint_eq(other->lodger_left.session, LODGER);
        moves += other->lodger_left.status == 0;
        refusals += other->lodger_left.status != 0;
        order(HOME, (struct lane_command){.kind = LANE_COMMAND_SESSION_BACK, .session = k.id});
        where = AT_HOME;
    }
}

static void run(unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        world_run(&world, 1);
        take_events();
    }
}

static bool is_quiet(void)
{
    return world_stats(&world, HOME).inflight == 0 && world_stats(&world, OTHER).inflight == 0;
}

static void post_word(uint8_t op, uint64_t id, uint64_t offset, uint64_t remote)
{
    const struct schema_sq_desc d = world_rw(op, id, offset, WORD, vkey, remote);
    world_post(&k, &d);
}

static struct schema_cqe take_completion(unsigned passes)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k.r + SCHEMA_CQ_OFFSET);
    for (unsigned i = 0; i < passes && atomic_load(&k.r->cq_tail) == k.cq_head; i++) {
        if (atomic_load(&k.r->doorbell) != 0)
            (void)lane_doorbell(world.node[HOME].lane, k.id);
        run(1);
    }
    ck_assert_uint_ne(atomic_load(&k.r->cq_tail), k.cq_head);
    const struct schema_cqe e = ring[k.cq_head++ & 63];
    atomic_store(&k.w->cq_head, k.cq_head);
    return e;
}

static void expect_word(uint64_t id)
{
    post_word(SCHEMA_OP_READ, id, 0, 0);
    const struct schema_cqe e = take_completion(20000);
    ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, id);
}

/* The other lane knows the endpoint. */
static void setup(void)
{
    const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    struct world_worker local;
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    seed = 7;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    expect_word(1); /* from here on its VQP is of one life of its endpoint */
    world_attach(&world, &local, OTHER, 0, TENANT);
    ck_assert_int_eq(world_connect(&world, &local, 0, OWNER), 0);
    world_detach(&world, &local);
    const uint32_t node = k.node;
    k.node = OTHER;
    other_mr = world_mr(&world, &k, 0, WORLD_ARENA, all);
    k.node = node;
}

static void teardown(void)
{
    const uint32_t slot = TENANT % WORLD_TENANTS;
    for (int i = 0; i < 20000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert(is_quiet());
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = other_mr}};
    ck_assert_int_eq(fab_call(world.node[OTHER].fab, &c), 0);
    ck_assert_uint_eq(world_stats(&world, OTHER).vqps, 0);
    world_detach(&world, &k);
    ck_assert_uint_eq(world_stats(&world, HOME).vqps, 0);
    ck_assert_uint_eq(atomic_load(&world.node[HOME].quota[slot].vqps), 0);
    world_detach(&world, &owner);
    world_close(&world);
}

static void go_away(void)
{
    leave_home();
    for (int i = 0; i < 1000 && where != AWAY; i++)
        run(1);
    ck_assert_int_eq(where, AWAY);
    run(1);
}

START_TEST(another_lane_posts_for_a_session)
{
    setup();
    go_away();
    const uint64_t before = world_stats(&world, HOME).posted;
    for (uint64_t id = 10; id < 30; id++)
        expect_word(id);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before);
    ck_assert_uint_ge(world_stats(&world, OTHER).posted, 20);
    call_back(false);
    for (int i = 0; i < 100 && where != AT_HOME; i++)
        run(1);
    expect_word(31);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before + 1);
    teardown();
}
END_TEST

/* WRITEs a number to a slot, and READs it from there behind that: the READ brings that number, and
 * completions come in order, while the session goes to and fro at any moment. */
START_TEST(nothing_is_lost_repeated_or_reordered_while_it_moves)
{
    enum { ROUNDS = 30000, MOVES = 300 };
    setup();
    uint8_t *memory = k.arena.addr;
    uint64_t posted = 0, done = 0;
    while ((done < ROUNDS || moves < MOVES) && done < 20 * ROUNDS) {
        while (posted - done < SLOTS / 2 && draw(4) != 0) {
            const uint64_t slot = posted % SLOTS;
            memcpy(memory + slot * WORD, &posted, WORD);
            post_word(SCHEMA_OP_WRITE, 2 * posted, slot * WORD, slot * WORD);
            post_word(SCHEMA_OP_READ, 2 * posted + 1, 2048 + slot * WORD, slot * WORD);
            posted++;
        }
        if (where == AT_HOME && draw(3) == 0)
            leave_home();
        else if (where == AWAY && draw(6) == 0)
            call_back(false);
        while (done < posted && draw(5) != 0) {
            struct schema_cqe e = take_completion(20000);
            ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, 2 * done);
            e = take_completion(20000);
            ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, 2 * done + 1);
            uint64_t brought;
            memcpy(&brought, memory + 2048 + done % SLOTS * WORD, WORD);
            ck_assert_uint_eq(brought, done);
            done++;
        }
        run(draw(3));
    }
    ck_assert_uint_ge(moves, MOVES);
    ck_assert_uint_gt(world_stats(&world, HOME).posted, ROUNDS / 10);
    ck_assert_uint_gt(world_stats(&world, OTHER).posted, ROUNDS / 10);
    while (done < posted) {
        (void)take_completion(20000);
        (void)take_completion(20000);
        done++;
    }
    teardown();
}
END_TEST

START_TEST(what_is_not_a_read_or_a_write_takes_it_home)
{
    setup();
    go_away();
    expect_word(10);
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .slots = 1,
        .reg_mr = {.length = 4096, .vaddr = 0x20000, .access = SCHEMA_RECORD_READ, .tag = ++k.tag}};
    world_post(&k, &d);
    post_word(SCHEMA_OP_READ, 11, 0, 0);
    const struct schema_cqe e = take_completion(20000);
    ck_assert_uint_eq(e.wr_id, 11);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(atomic_load(&k.r->reply[k.tag % SCHEMA_REPLIES].tag), k.tag);
    ck_assert_int_eq(k.r->reply[k.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_eq(world_stats(&world, HOME).mrs, 1);
    ck_assert_uint_eq(world_stats(&world, OTHER).mrs, 0);
    go_away(); /* its region stays at home */
    expect_word(12);
    teardown();
}
END_TEST

START_TEST(one_that_falls_silent_sleeps_at_home)
{
    setup();
    go_away();
    for (int i = 0; i < 100000 && where != AT_HOME; i++) {
        world.now_ns += 10000;
        run(1);
    }
    ck_assert_int_eq(where, AT_HOME);
    run(2);
    (void)lane_prepare_sleep(world.node[HOME].lane, world.now_ns);
    ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
    expect_word(10);
    teardown();
}
END_TEST

START_TEST(a_hostile_lodger_ends_at_home)
{
    setup();
    go_away();
    atomic_store(&k.w->sq_tail, k.sq_tail + 1000);
    for (int i = 0; i < 1000 && world.node[HOME].faults == 0; i++)
        run(1);
    ck_assert_uint_eq(world.node[HOME].faults, 1);
    ck_assert_uint_eq(world.node[HOME].last_reason, SCHEMA_REASON_RING);
    ck_assert_uint_eq(world.node[OTHER].faults, 0);
    ck_assert_uint_eq(atomic_load(&k.r->ended), SCHEMA_REASON_RING);
    teardown();
}
END_TEST

START_TEST(whatever_it_writes_into_its_ring_ends_no_other)
{
    for (uint32_t round = 0; round < 60; round++) {
        setup();
        seed = round;
        go_away();
        for (int i = 0; i < 40; i++) {
            uint8_t *ring = (uint8_t *)k.w + SCHEMA_SQ_OFFSET;
            for (uint32_t at = 0; at < SCHEMA_LINE; at++)
                ring[(k.sq_tail & 63) * SCHEMA_LINE + at] = (uint8_t)draw(draw(2) ? 256 : 30);
            atomic_store(&k.w->sq_tail, ++k.sq_tail);
            if (draw(4) == 0 && where == AWAY)
                call_back(false);
            else if (draw(4) == 0 && where == AT_HOME && world.node[HOME].faults == 0)
                leave_home();
            k.cq_head = atomic_load(&k.r->cq_tail);
            atomic_store(&k.w->cq_head, k.cq_head);
            run(draw(4));
        }
        for (int i = 0; i < 20000 && (!is_quiet() || where != AT_HOME); i++)
            run(1);
        teardown();
    }
}
END_TEST

/* What it had queued goes no more, and its lane ends it when it is back. */
START_TEST(a_session_that_ends_is_called_back_at_once)
{
    setup();
    go_away();
    for (uint64_t id = 10; id < 26; id++)
        post_word(SCHEMA_OP_READ, id, 0, 0);
    run(1);
    call_back(true);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    teardown();
}
END_TEST

START_TEST(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)
{
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    expect_word(1);
    k.node = OTHER;
    other_mr = world_mr(&world, &k, 0, WORLD_ARENA, IBV_ACCESS_LOCAL_WRITE);
    k.node = HOME;
    leave_home();
    for (int i = 0; i < 100; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[OTHER].lodger_left.status, -EAGAIN);
    expect_word(2);
    go_away();
    expect_word(3);
    ck_assert_uint_gt(world_stats(&world, OTHER).posted, 0);
    teardown();
}
END_TEST

/* A VQP of an earlier life of its endpoint goes on with no later one. */
START_TEST(an_endpoint_that_restarts_meanwhile_ends_its_vqps)
{
    setup();
    go_away();
    expect_word(10);
    world_restart_node(&world, OWNER);
    bool failed = false;
    for (uint64_t id = 11; id < 14 && !failed; id++) {
        post_word(SCHEMA_OP_READ, id, 0, 0);
        failed = take_completion(200000).status != IBV_WC_SUCCESS;
    }
    ck_assert(failed);
    call_back(false);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    post_word(SCHEMA_OP_READ, 20, 0, 0);
    ck_assert_int_ne(take_completion(20000).status, IBV_WC_SUCCESS);
    teardown();
}
END_TEST

START_TEST(one_that_waits_by_descriptor_stays)
{
    setup();
    atomic_store(&k.w->armed, 1);
    leave_home();
    run(10);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    atomic_store(&k.w->armed, 0);
    go_away();
    atomic_store(&k.w->armed, 1); /* and goes home when it begins to */
    expect_word(10);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(another_lane_posts_for_a_session)                                                            \
    T(nothing_is_lost_repeated_or_reordered_while_it_moves)                                        \
    T(what_is_not_a_read_or_a_write_takes_it_home)                                                 \
    T(one_that_falls_silent_sleeps_at_home)                                                        \
    T(a_hostile_lodger_ends_at_home)                                                               \
    T(whatever_it_writes_into_its_ring_ends_no_other)                                              \
    T(a_session_that_ends_is_called_back_at_once)                                                  \
    T(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)                            \
    T(an_endpoint_that_restarts_meanwhile_ends_its_vqps)                                           \
    T(one_that_waits_by_descriptor_stays)
KEDGE_CHECK_MAIN("agent.lane.lodgers", TESTS)
