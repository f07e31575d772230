/* SPDX-License-Identifier: Apache-2.0 */
/* Several arenas of one worker get other registrations by force at the same time. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world.h"

enum { TENANT = 7, ARENAS = 2, PASSES = 200, OFFSET = 8192, HALF = 8 };
static const uint64_t LEASES_NS = 10000000; /* of a record, some */
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, far;
static struct fab_mr *present[ARENAS], *former[ARENAS];
static uint32_t far_key, tag;

/* The node's lane sees no completion, so that what is posted stays out. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    bool on;
} hold;

static int poll_unless_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    return hold.on ? 0 : hold.real->poll(cq, n, wc);
}

static void command(const struct lane_command *c)
{
    ck_assert_int_eq(lane_command(w->node[1].lane, c), 0);
    world_run(w, 1);
}

static struct fab_mr *register_all(void)
{
    return world_mr(w, &owner, 0, owner.arena.size,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC);
}

static void deregister(struct fab_mr *mr)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    ck_assert_int_eq(fab_call(w->node[1].fab, &c), 0);
}

/* The owner, on node 1, has the same memory as two arenas; node 2 has a region that it can read. */
static void begin(void)
{
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &far, 2, 0, TENANT);
    present[0] = owner.arena_mr;
    present[1] = register_all();
    const struct lane_command c = {.kind = LANE_COMMAND_ARENA_ADD,
                                   .session = owner.id,
                                   .arena = {.iova = present[1]->addr,
                                             .bytes = owner.arena.size,
                                             .lkey = present[1]->lkey,
                                             .rkey = present[1]->rkey}};
    command(&c);
    far_key = world_register(w, &far, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &owner, 0, 2), 0);
    memset(far.arena.addr, 0x5a, 4096);
    hold.real = w->node[1].fab->ops;
    hold.ops = *hold.real;
    hold.ops.poll = poll_unless_held;
    hold.on = false;
    w->node[1].fab->ops = &hold.ops;
}

static void end(void)
{
    w->node[1].fab->ops = hold.real;
    owner.arena_mr = present[0];
    world_detach(w, &owner);
    deregister(present[1]);
    world_close(w);
}

static struct schema_sq_desc read_into(uint32_t arena)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, OFFSET, 2 * HALF, far_key, 0);
    d.post.arena = arena;
    return d;
}

/* One READ into both arenas. */
static void post_read_into_both(void)
{
    struct schema_sq_desc d = read_into(0), next;
    const struct schema_sq_sges to = {
        .sge = {{.offset = OFFSET, .length = HALF, .arena = 0},
                {.offset = OFFSET + HALF, .length = HALF, .arena = 1}}};
    d.num_sge = 2;
    d.slots = 2;
    memcpy(&next, &to, sizeof next);
    world_post(&owner, &d);
    world_post(&owner, &next);
}

static void expect_reads(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(world_done(w, &owner, 20000).status, IBV_WC_SUCCESS);
    const uint8_t *memory = owner.arena.addr;
    for (uint32_t i = 0; i < 2 * HALF; i++)
        ck_assert_uint_eq(memory[OFFSET + i], 0x5a);
    ck_assert_uint_eq(world_stats(w, 1).qp_broken, 0);
}

static void run_lane(void)
{
    lane_doorbell(w->node[1].lane, owner.id);
    world_run(w, PASSES);
}

static void revoke(void)
{
    const struct lane_command c = {
        .kind = LANE_COMMAND_REVOKE,
        .session = owner.id,
        .revoke = {.tag = ++tag, .arenas = (1u << ARENAS) - 1, .force = true}};
    command(&c);
    ck_assert_int_eq(w->node[1].answer.kind, LANE_EVENT_REVOKED);
}

/* Returns the tag. */
static uint32_t reregister(uint32_t arena)
{
    former[arena] = present[arena];
    present[arena] = register_all();
    const struct lane_command c = {.kind = LANE_COMMAND_ARENA_REREGISTER,
                                   .session = owner.id,
                                   .reregister = {.tag = ++tag,
                                                  .number = arena,
                                                  .lkey = present[arena]->lkey,
                                                  .rkey = present[arena]->rkey,
                                                  .iova = present[arena]->addr}};
    command(&c);
    return tag;
}

/* The lane said last that this one's former registration is used no more: it goes. */
static void expect_reregistered(uint32_t arena, uint32_t by)
{
    const struct lane_event e = w->node[1].answer;
    ck_assert_int_eq(e.kind, LANE_EVENT_ARENA_REREGISTERED);
    ck_assert_int_eq(e.answer.status, 0);
    ck_assert_uint_eq(e.answer.tag, by);
    deregister(former[arena]);
    const struct lane_command c = {
        .kind = LANE_COMMAND_FENCED, .session = owner.id, .tag = e.answer.fence_tag};
    command(&c);
}

static void run_until_answers(uint32_t answers)
{
    for (int i = 0; w->node[1].answers < answers; i++) {
        ck_assert_int_lt(i, 20000);
        world_run(w, 1);
    }
    ck_assert_uint_eq(w->node[1].answers, answers);
}

START_TEST(an_arena_does_not_wait_for_requests_from_another)
{
    begin();
    const struct schema_sq_desc d = read_into(0);
    ck_assert_uint_eq(world_do(w, &owner, d, 20000).status, IBV_WC_SUCCESS);
    hold.on = true;
    world_post(&owner, &d);
    run_lane();
    revoke();
    struct schema_sq_desc more = {
        .op = SCHEMA_OP_REG_MR, .slots = 1, .reg_mr = {.arena = 1, .length = 64, .access = ALL}};
    more.connect.tag = ++owner.tag;
    world_post(&owner, &more);
    run_lane();
    const struct schema_reply *reply = &owner.r->reply[owner.tag % SCHEMA_REPLIES];
    ck_assert_uint_ne(atomic_load(&reply->tag), owner.tag); /* it waits for that arena's */
    const uint32_t answers = w->node[1].answers;
    const uint32_t first = reregister(0);
    ck_assert_uint_eq(w->node[1].answers, answers); /* which its READ still uses */
    expect_reregistered(1, reregister(1));
    run_lane();
    ck_assert_uint_eq(atomic_load(&reply->tag), owner.tag);
    ck_assert_int_eq(reply->status, 0);
    reregister(1);
    ck_assert_uint_eq(w->node[1].answers, answers + 2);
    expect_reregistered(1, tag);
    hold.on = false;
    run_until_answers(answers + 3);
    expect_reregistered(0, first);
    expect_reads(1);
    end();
}
END_TEST

START_TEST(a_request_into_two_arenas_is_seen_out_for_each)
{
    begin();
    const struct schema_sq_desc d = read_into(0);
    ck_assert_uint_eq(world_do(w, &owner, d, 20000).status, IBV_WC_SUCCESS);
    hold.on = true;
    post_read_into_both();
    run_lane();
    const uint32_t answers = w->node[1].answers;
    uint32_t by[ARENAS];
    for (uint32_t i = 0; i < ARENAS; i++)
        by[i] = reregister(i);
    run_lane();
    ck_assert_uint_eq(w->node[1].answers, answers);
    struct lane_command again = {.kind = LANE_COMMAND_ARENA_REREGISTER,
                                 .session = owner.id,
                                 .reregister = {.tag = ++tag, .number = 0}};
    command(&again);
    ck_assert_int_eq(w->node[1].answer.answer.status, -EBUSY);
    post_read_into_both(); /* with the present keys */
    hold.on = false;
    run_until_answers(answers + 1 + ARENAS);
    expect_reregistered(1, by[1]); /* the last answer */
    deregister(former[0]);
    expect_reads(2);
    end();
}
END_TEST

START_TEST(requests_into_two_arenas_that_wait_take_both_registrations)
{
    begin();
    hold.on = true; /* also of the READ of the record, for which they wait */
    for (int i = 0; i < 5; i++)
        post_read_into_both();
    run_lane();
    for (uint32_t i = 0; i < ARENAS; i++)
        expect_reregistered(i, reregister(i));
    hold.on = false;
    expect_reads(5);
    end();
}
END_TEST

/* Requests of a worker's are made of what its former ones were, also of one that had others behind
 * it in its work request. */
START_TEST(requests_that_wait_have_nothing_of_merged_ones_before_them)
{
    enum { ADJACENT = 5 };
    begin();
    struct schema_sq_desc d = read_into(0);
    d.flags |= SCHEMA_OP_RELAXED;
    for (uint32_t i = 0; i < ADJACENT; i++) {
        world_post(&owner, &d);
        d.post.offset += d.post.length;
        d.post.remote_addr += d.post.length;
    }
    expect_reads(ADJACENT);
    ck_assert_uint_eq(world_stats(w, 1).merged, ADJACENT - 1);
    world_sleep(w, LEASES_NS);
    hold.on = true; /* of the READ of the record, which is old */
    for (int i = 0; i < ADJACENT; i++)
        post_read_into_both();
    run_lane();
    for (uint32_t i = 0; i < ARENAS; i++)
        expect_reregistered(i, reregister(i));
    hold.on = false;
    expect_reads(ADJACENT);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_arena_does_not_wait_for_requests_from_another)                                            \
    T(a_request_into_two_arenas_is_seen_out_for_each)                                              \
    T(requests_into_two_arenas_that_wait_take_both_registrations)                                  \
    T(requests_that_wait_have_nothing_of_merged_ones_before_them)
KEDGE_CHECK_MAIN("agent.lane.revoke_arenas", TESTS)
