/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose requests another lane carries out, and which comes back: node 0 is its home, and
 * node 2's lane is the other one. The test is the control side of both. */
#include <errno.h>
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

/* Where it is heard: one lane at a time hears it. */
static void ring_doorbell(void)
{
    if (atomic_load(&k.r->doorbell) == 0)
        return;
    if (where == AWAY)
        (void)lane_doorbell(world.node[OTHER].lane, world.node[OTHER].config.max_sessions + LODGER);
    else
        (void)lane_doorbell(world.node[HOME].lane, k.id);
}

static struct schema_cqe take_completion(unsigned passes)
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

static void expect_word(uint64_t id)
{
    post_word(SCHEMA_OP_READ, id, 0, 0);
    const struct schema_cqe e = take_completion(20000);
    ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, id);
}

static struct fab_mr *register_anew(uint32_t node)
{
    const uint32_t before = k.node;
    k.node = node;
    struct fab_mr *mr =
        world_mr(&world, &k, 0, WORLD_ARENA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    k.node = before;
    return mr;
}

/* The other lane knows the endpoint. */
static void setup(void)
{
    struct world_worker local;
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    seed = 7;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    expect_word(1); /* from here on its VQP is of one life of its endpoint */
    world_attach(&world, &local, OTHER, 0, TENANT);
    ck_assert_int_eq(world_connect(&world, &local, 0, OWNER), 0);
    world_detach(&world, &local);
    other_mr = register_anew(OTHER);
}

static void deregister(uint32_t node, struct fab_mr *mr)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    ck_assert_int_eq(fab_call(world.node[node].fab, &c), 0);
}

static void teardown(void)
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

START_TEST(one_that_falls_silent_sleeps_where_it_lodges_and_wakes_there)
{
    enum { PAUSES = 200 };
    setup();
    go_away();
    const uint64_t before = world_stats(&world, HOME).posted;
    for (uint64_t id = 10; id < 10 + PAUSES; id++) {
        for (int i = 0; i < 1000 && atomic_load(&k.r->doorbell) == 0; i++) {
            world.now_ns += 10000;
            run(1);
        }
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
        expect_word(id);
    }
    ck_assert_int_eq(where, AWAY);
    ck_assert_uint_eq(moves, 0);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before);
    teardown();
}
END_TEST

/* As when it hands its processor over. */
START_TEST(a_lane_that_sleeps_keeps_its_lodgers)
{
    setup();
    go_away();
    for (uint64_t id = 10; id < 40; id++) {
        (void)lane_prepare_sleep(world.node[OTHER].lane, world.now_ns);
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
        expect_word(id);
        ck_assert_int_eq(where, AWAY);
    }
    (void)lane_prepare_sleep(world.node[OTHER].lane, world.now_ns);
    call_back(false); /* asleep, it goes when it is asked to, and is polled at home */
    for (int i = 0; i < 100 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    expect_word(40);
    ck_assert_uint_eq(moves, 1);
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
        for (int i = 0; i < 20000 && (!is_quiet() || where == LEAVES); i++)
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

/* It has requests out all the time, to a node that is silent, and is not called home. */
START_TEST(a_lodgers_regions_are_revoked_where_they_are_and_it_stays)
{
    go_away_with_a_region();
    world_silence_node(&world, OWNER);
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
    for (uint64_t id = 10; id < 14; id++)
        ck_assert_uint_eq(take_completion(200000).wr_id, id); /* in its turn, however it ended */
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

START_TEST(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)
{
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    expect_word(1);
    other_mr = register_anew(OTHER);
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
    T(one_that_falls_silent_sleeps_where_it_lodges_and_wakes_there)                                \
    T(a_lane_that_sleeps_keeps_its_lodgers)                                                        \
    T(a_hostile_lodger_ends_at_home)                                                               \
    T(whatever_it_writes_into_its_ring_ends_no_other)                                              \
    T(a_session_that_ends_is_called_back_at_once)                                                  \
    T(a_lodgers_regions_are_revoked_where_they_are_and_it_stays)                                   \
    T(a_lodger_goes_over_to_another_registration_where_it_is)                                      \
    T(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)                            \
    T(an_endpoint_that_restarts_meanwhile_ends_its_vqps)                                           \
    T(one_that_waits_by_descriptor_stays)
KEDGE_CHECK_MAIN("agent.lane.lodgers", TESTS)
