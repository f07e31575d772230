/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose requests another lane carries out, and which comes back: node 0 is its home, and
 * node 2's lane is the other one. The test is the control side of both. */
#ifndef UNIT_AGENT_LANE_LODGER_BED_H
#define UNIT_AGENT_LANE_LODGER_BED_H

#include <check.h>
#include <stdatomic.h>

#include "session_memory.h"
#include "world.h"

enum { TENANT = 5, HOME = 0, OWNER = 1, OTHER = 2, LODGER = 3, WORD = 8 };

static struct world world;
static struct world_worker owner, k;
static struct fab_mr *other_mr;
static uint32_t vkey;
static enum where { AT_HOME, LEAVES, AWAY } where;
static uint32_t seen_lefts, seen_lodgers, moves, refusals;

static inline void order(uint32_t node, struct lane_command c)
{
    ck_assert_int_eq(lane_command(world.node[node].lane, &c), 0);
}

static inline void leave_home(void)
{
    where = LEAVES;
    ck_assert_int_eq(lane_memory_let_move(k.memory), 0);
    order(HOME, (struct lane_command){.kind = LANE_COMMAND_SESSION_LEAVE, .session = k.id});
}

/* The other lane is another node's here, whose device has a registration of its own of the arena.
 */
static inline void enter_other(void)
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

static inline void call_back(bool hurry)
{
    order(OTHER, (struct lane_command){
                     .kind = LANE_COMMAND_LODGER_RETURN, .session = LODGER, .hurry = hurry});
}

/* What the control side does when it hears of something. */
static inline void take_events(void)
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

static inline void run(unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        world_run(&world, 1);
        take_events();
    }
}

static inline bool is_quiet(void)
{
    return world_stats(&world, HOME).inflight == 0 && world_stats(&world, OTHER).inflight == 0;
}

static inline void post_word(uint8_t op, uint64_t id, uint64_t offset, uint64_t remote)
{
    const struct schema_sq_desc d = world_rw(op, id, offset, WORD, vkey, remote);
    world_post(&k, &d);
}

/* Where it is heard: one lane at a time hears it. */
static inline void ring_doorbell(void)
{
    if (atomic_load(&k.r->doorbell) == 0)
        return;
    if (where == AWAY)
        (void)lane_doorbell(world.node[OTHER].lane, world.node[OTHER].config.max_sessions + LODGER);
    else
        (void)lane_doorbell(world.node[HOME].lane, k.id);
}

static inline struct schema_cqe take_completion(unsigned passes)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k.r + SCHEMA_CQ_OFFSET);
    for (unsigned i = 0; i < passes && atomic_load(&k.r->cq_tail) == k.cq_head; i++) {
        ring_doorbell();
        run(1);
    }
    ck_assert_uint_ne(atomic_load(&k.r->cq_tail), k.cq_head);
    const struct schema_cqe e = ring[k.cq_head++ & 63];
    atomic_store(&k.w->cq_head, k.cq_head);
    return e;
}

static inline void expect_word(uint64_t id)
{
    post_word(SCHEMA_OP_READ, id, 0, 0);
    const struct schema_cqe e = take_completion(20000);
    ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, id);
}

static inline struct fab_mr *register_anew(uint32_t node)
{
    const uint32_t before = k.node;
    k.node = node;
    struct fab_mr *mr =
        world_mr(&world, &k, 0, WORLD_ARENA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    k.node = before;
    return mr;
}

/* The other lane knows the endpoint. */
static inline void setup(void)
{
    struct world_worker local;
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    expect_word(1); /* from here on its VQP is of one life of its endpoint */
    world_attach(&world, &local, OTHER, 0, TENANT);
    ck_assert_int_eq(world_connect(&world, &local, 0, OWNER), 0);
    world_detach(&world, &local);
    other_mr = register_anew(OTHER);
}

static inline void deregister(uint32_t node, struct fab_mr *mr)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    ck_assert_int_eq(fab_call(world.node[node].fab, &c), 0);
}

static inline void teardown(void)
{
    const uint32_t slot = TENANT % WORLD_TENANTS;
    if (where == AWAY)
        call_back(false);
    for (int i = 0; i < 20000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert(is_quiet());
    deregister(OTHER, other_mr);
    ck_assert_uint_eq(world_stats(&world, OTHER).vqps, 0);
    world_detach(&world, &k);
    ck_assert_uint_eq(world_stats(&world, HOME).vqps, 0);
    ck_assert_uint_eq(atomic_load(&world.node[HOME].quota[slot].vqps), 0);
    world_detach(&world, &owner);
    world_close(&world);
}

static inline void go_away(void)
{
    leave_home();
    for (int i = 0; i < 1000 && where != AWAY; i++)
        run(1);
    ck_assert_int_eq(where, AWAY);
    run(1);
}

#endif
