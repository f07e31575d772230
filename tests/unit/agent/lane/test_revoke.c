/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator takes away: by the rule of the leases, and by force. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"
#include "world_held.h"

enum { TENANT = 7, PASSES = 500 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, reader, other;
static uint32_t vkey, tag;

/* An owner on node 1 with a region of 4 KiB, a worker on node 0 that reads it, and one beside it
 * that reads a region of its own node's. */
static void open_all(void)
{
    vkey = world_pair(w, &owner, &reader, TENANT, ALL);
}

static void close_all(void)
{
    world_close(w);
}

static void command(const struct lane_command *c)
{
    ck_assert_int_eq(lane_command(w->node[1].lane, c), 0);
}

/* The lane's answer to a command. */
static struct lane_event tell(struct lane_command *c)
{
    struct world_node *n = &w->node[1];
    uint32_t answers = n->answers;
    c->session = owner.id;
    command(c);
    world_run(w, 1);
    ck_assert_uint_eq(n->answers, answers + 1);
    return n->answer;
}

static void end_owner(void)
{
    const struct lane_command c = {
        .kind = LANE_COMMAND_SESSION_END, .session = owner.id, .reason = SCHEMA_REASON_CLOSED};
    command(&c);
}

static int revoke_one(uint32_t number)
{
    struct lane_command c = {.kind = LANE_COMMAND_REVOKE,
                             .revoke = {.tag = ++tag, .number = number, .arenas = UINT32_MAX}};
    struct lane_event e = tell(&c);
    ck_assert_int_eq(e.kind, LANE_EVENT_REVOKED);
    ck_assert_uint_eq(e.answer.tag, tag);
    return e.answer.status < 0 ? e.answer.status : (int)e.answer.taken;
}

static struct lane_lease lease(uint32_t number)
{
    struct lane_lease e;
    for (uint32_t i = 0; i < lane_leases(owner.memory); i++)
        if (lane_lease(owner.memory, i, &e) && e.number == number)
            return e;
    return (struct lane_lease){.state = LANE_LEASE_NONE};
}

static struct schema_cqe read_it(struct world_worker *k, uint32_t key)
{
    return world_do(w, k, world_rw(SCHEMA_OP_READ, 1, 8192, 8, key, 0), 20000);
}

static int ask_status(uint32_t key)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_MR_STATUS, .dereg_mr = {.vkey = key}};
    return world_ask(w, &owner, d, NULL);
}

static int deregister(uint32_t key)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = key}};
    return world_ask(w, &owner, d, NULL);
}

/* ---- by the rule */

START_TEST(a_lease_is_shown_as_its_worker_registered_it)
{
    open_all();
    uint32_t more = world_register(w, &owner, 8192, 64, SCHEMA_RECORD_READ);
    struct lane_lease e = lease(2);
    ck_assert_int_eq(e.state, LANE_LEASE_LIVE);
    ck_assert_uint_eq(e.offset, 8192);
    ck_assert_uint_eq(e.length, 64);
    ck_assert_uint_eq(e.access, SCHEMA_RECORD_READ);
    ck_assert_uint_eq(e.arena, 0);
    ck_assert(!e.revoked);
    ck_assert_uint_le(e.born_ns, w->now_ns);
    ck_assert_uint_ge(e.born_ns, lease(1).born_ns);
    ck_assert_int_eq(deregister(more), 0);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_NONE);
    more = world_register(w, &owner, 8192, 64, SCHEMA_RECORD_READ); /* in the same place */
    ck_assert_uint_ne(more, 0);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_NONE);
    ck_assert_int_eq(lease(3).state, LANE_LEASE_LIVE);
    close_all();
}
END_TEST

START_TEST(a_revoked_lease_ends_with_its_period_and_a_fence_and_its_worker_lives_on)
{
    open_all();
    const uint64_t period = w->node[1].config.mr_lease_ns;
    ck_assert_uint_eq(read_it(&reader, vkey).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ask_status(vkey), 0);
    ck_assert_int_eq(revoke_one(1), 1);
    uint64_t before = w->now_ns;
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    ck_assert_uint_eq(w->node[1].quota[TENANT % WORLD_TENANTS].mrs, 0);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING);
    ck_assert(lease(1).revoked);
    while (lease(1).state == LANE_LEASE_WITHDRAWING)
        world_run(w, 1);
    ck_assert_uint_ge(w->now_ns - before, period);
    world_run(w, 5);
    ck_assert_uint_eq(w->node[1].fences, 1);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    struct schema_cqe e = read_it(&reader, vkey);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    /* Its worker is told when it asks, withdraws it without a wait, and registers anew. */
    ck_assert_uint_eq(owner.r->revoked, 1);
    ck_assert_int_eq(ask_status(vkey), -EACCES);
    before = w->now_ns;
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_uint_lt(w->now_ns - before, period / 10);
    ck_assert_int_eq(ask_status(vkey), -ENOENT);
    ck_assert_int_eq(deregister(vkey), -ENOENT);
    uint32_t again = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_uint_eq(read_it(&reader, again).status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

START_TEST(the_period_counts_from_a_clock_that_is_read_after_the_revocation)
{
    open_all();
    const uint64_t period = w->node[1].config.mr_lease_ns;
    ck_assert_int_eq(revoke_one(1), 1);
    world_sleep(w, 2 * period); /* the lane stood still */
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING);
    world_sleep(w, period - 10000);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING);
    world_sleep(w, period / 100);
    world_run(w, 5);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    close_all();
}
END_TEST

START_TEST(who_withdraws_what_is_being_revoked_waits_for_a_whole_period)
{
    open_all();
    const uint64_t period = w->node[1].config.mr_lease_ns;
    ck_assert_int_eq(revoke_one(1), 1);
    world_sleep(w, period / 2);
    uint64_t before = w->now_ns;
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_uint_ge(w->now_ns - before, period);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    world_sleep(w, 2 * period); /* nothing of the revocation is left */
    ck_assert_uint_eq(w->node[1].fences, 1);
    ck_assert_uint_eq(w->node[1].quota[TENANT % WORLD_TENANTS].mrs, 0);
    close_all();
}
END_TEST

START_TEST(a_lane_that_sleeps_wakes_when_the_period_is_over)
{
    open_all();
    ck_assert_int_eq(revoke_one(1), 1);
    world_run(w, 2);
    uint64_t due = lane_prepare_sleep(w->node[1].lane, w->now_ns);
    ck_assert_uint_eq(due, lease(1).due_ns);
    ck_assert_uint_gt(due, w->now_ns);
    /* And tells its control side, which would not look otherwise, that it wants a fence. */
    ck_assert_uint_gt(lane_step(w->node[1].lane, due), 0);
    ck_assert(lane_has_events(w->node[1].lane));
    w->now_ns = due;
    world_run(w, 5);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    close_all();
}
END_TEST

START_TEST(revoking_twice_or_what_is_not_there_changes_nothing)
{
    open_all();
    ck_assert_int_eq(revoke_one(2), -ENOENT);
    ck_assert_int_eq(revoke_one(UINT32_MAX), -ENOENT);
    ck_assert_int_eq(revoke_one(1), 1);
    ck_assert_int_eq(revoke_one(1), 0);
    ck_assert_int_eq(revoke_one(0), 0);
    world_sleep(w, 2 * w->node[1].config.mr_lease_ns);
    world_sleep(w, 2 * w->node[1].config.mr_lease_ns);
    ck_assert_int_eq(revoke_one(1), 0);
    ck_assert_uint_eq(owner.r->revoked, 1);
    world_detach(w, &owner);
    struct lane_command c = {.kind = LANE_COMMAND_REVOKE, .revoke = {.tag = ++tag}};
    owner.id = 0;
    ck_assert_int_eq(tell(&c).answer.status, -ENOENT);
    c.session = 1u << 20;
    uint32_t answers = w->node[1].answers;
    command(&c);
    world_run(w, 1);
    ck_assert_uint_eq(w->node[1].answers, answers + 1);
    close_all();
}
END_TEST

START_TEST(all_of_a_worker_go_together_behind_one_fence)
{
    open_all();
    for (uint64_t i = 1; i < 4; i++)
        ck_assert_uint_ne(world_register(w, &owner, i * 4096, 64, ALL), 0);
    ck_assert_int_eq(revoke_one(0), 4);
    world_sleep(w, w->node[1].config.mr_lease_ns / 2);
    for (uint32_t i = 1; i <= 4; i++)
        ck_assert_int_eq(lease(i).state, LANE_LEASE_WITHDRAWING);
    /* Its places are taken until it has withdrawn them. */
    ck_assert_uint_eq(world_register(w, &owner, 0, 64, ALL), 0);
    world_sleep(w, w->node[1].config.mr_lease_ns);
    world_run(w, 10);
    for (uint32_t i = 1; i <= 4; i++)
        ck_assert_int_eq(lease(i).state, LANE_LEASE_REVOKED);
    ck_assert_uint_eq(w->node[1].fences, 1);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_uint_ne(world_register(w, &owner, 0, 64, ALL), 0);
    close_all();
}
END_TEST

START_TEST(a_worker_that_ends_in_the_middle_takes_its_revoked_leases_with_it)
{
    open_all();
    const uint64_t period = w->node[1].config.mr_lease_ns;
    ck_assert_int_eq(revoke_one(1), 1);
    world_sleep(w, period / 2);
    uint64_t before = w->now_ns;
    end_owner();
    world_run(w, 2);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING); /* shown until it is over */
    while (w->node[1].over == 0)
        world_run(w, 1);
    ck_assert_uint_ge(w->now_ns - before, period);
    ck_assert_uint_eq(lane_leases(owner.memory), 1);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    owner.r->ended = 1; /* for world_detach() */
    close_all();
}
END_TEST

/* ---- by force */

static struct fab_mr *register_anew(void)
{
    return world_mr(w, &owner, 0, owner.arena.size,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC);
}

static struct lane_command reregistration(const struct fab_mr *mr)
{
    return (struct lane_command){
        .kind = LANE_COMMAND_ARENA_REREGISTER,
        .session = owner.id,
        .reregister = {
            .tag = ++tag, .number = 0, .lkey = mr->lkey, .rkey = mr->rkey, .iova = mr->addr}};
}

/* The former registration goes, and the lane hears that it did. */
static void let_go(struct fab_mr *mr, uint32_t fence_tag)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = owner.arena_mr}};
    ck_assert_int_eq(fab_call(w->node[1].fab, &c), 0);
    owner.arena_mr = mr;
    struct lane_command fenced = {
        .kind = LANE_COMMAND_FENCED, .session = owner.id, .tag = fence_tag};
    command(&fenced);
    world_run(w, 1);
}

START_TEST(what_is_forced_is_over_at_once_and_the_others_on_the_connection_go_on)
{
    struct world_worker beside;
    open_all();
    const uint64_t period = w->node[1].config.mr_lease_ns;
    world_attach(w, &beside, 1, 1, TENANT);
    world_attach(w, &other, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    uint32_t safe = world_register(w, &beside, 0, 4096, ALL);
    uint32_t shared = world_register(w, &owner, 8192, 64, ALL);
    ck_assert_uint_eq(read_it(&reader, vkey).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(read_it(&other, safe).status, IBV_WC_SUCCESS);
    uint64_t before = w->now_ns;
    struct fab_mr *mr = register_anew();
    struct lane_command c = reregistration(mr);
    struct lane_event e = tell(&c);
    ck_assert_int_eq(e.kind, LANE_EVENT_ARENA_REREGISTERED);
    ck_assert_int_eq(e.answer.status, 0);
    ck_assert_uint_eq(e.answer.tag, tag);
    ck_assert_uint_eq(e.answer.taken, 2);
    ck_assert_uint_eq(e.answer.last, 2);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WAITING);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_WAITING);
    let_go(mr, e.answer.fence_tag);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_REVOKED);
    ck_assert_uint_lt(w->now_ns - before, period / 10);
    /* Still believed over there: refused by the device, and not believed any more then. */
    struct schema_sq_desc bad = world_rw(SCHEMA_OP_READ, 1, 8192, 8, vkey, 0);
    struct schema_sq_desc good = world_rw(SCHEMA_OP_READ, 2, 8192, 8, safe, 0);
    struct schema_cqe done;
    world_post(&reader, &bad);
    world_post(&other, &good);
    ck_assert(world_poll(w, &reader, &done, 20000));
    ck_assert_uint_eq(done.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert(world_poll(w, &other, &done, 20000));
    ck_assert_uint_eq(done.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
        done = read_it(&reader, vkey);
        ck_assert_uint_eq(done.status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_uint_eq(done.vendor_err, SCHEMA_REASON_VKEY);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(deregister(shared), 0);
    /* The same memory under its new registration. */
    vkey = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_uint_eq(read_it(&reader, vkey).status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

/* Its second registration may have been given the keys of the one before the first was made. */
START_TEST(who_has_a_former_record_does_not_reach_what_has_its_place_after_two_renewals)
{
    open_all();
    volatile uint8_t *memory = owner.arena.addr;
    ck_assert_uint_eq(read_it(&reader, vkey).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) {
        struct fab_mr *mr = register_anew();
        struct lane_command c = reregistration(mr);
        let_go(mr, tell(&c).answer.fence_tag);
    }
    uint32_t present = world_register(w, &owner, 0, 4096, ALL);
    struct schema_cqe done;
    memset((uint8_t *)reader.arena.addr + 8192, 0x5a, 8);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 8192, 8, vkey, 0);
    world_post(&reader, &d);
    ck_assert(world_poll(w, &reader, &done, 20000));
    ck_assert_uint_eq(done.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert(done.vendor_err == 0 && memory[0] != 0x5a); /* by the device */
    ck_assert_int_eq(world_connect(w, &reader, 0, 1), 0);
    ck_assert_uint_eq(read_it(&reader, present).status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

/* As open_all(), and node 2 has a region that the owner can read into its own arena. Its key. */
static uint32_t open_with_far_region(void)
{
    open_all();
    world_attach(w, &other, 2, 0, TENANT);
    uint32_t far = world_register(w, &other, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &owner, 0, 2), 0);
    return far;
}

static void post_reads(uint32_t key, int count)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 8192, 8, key, 0);
    for (int i = 0; i < count; i++)
        world_post(&owner, &d);
    lane_doorbell(w->node[1].lane, owner.id);
}

static void expect_reads(int count)
{
    struct schema_cqe e;
    for (int i = 0; i < count; i++) {
        ck_assert(world_poll(w, &owner, &e, 20000));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
}

/* The owner reads from node 2 into its own arena, in more requests than fit anywhere: some are out
 * and some wait when the registration changes. */
START_TEST(the_owners_own_requests_are_seen_out_before_its_registration_goes)
{
    uint32_t far = open_with_far_region();
    ck_assert_uint_eq(read_it(&owner, far).status, IBV_WC_SUCCESS);
    memset(other.arena.addr, 0x5a, 4096);
    world_hold(&w->node[1], NULL); /* and with them, on soft, what is carried out */
    post_reads(far, 20);
    world_run(w, 5);
    ck_assert_uint_ge(world_stats(w, 1).inflight, 20);
    struct fab_mr *mr = register_anew();
    struct lane_command c = reregistration(mr);
    uint32_t answers = w->node[1].answers;
    command(&c);
    post_reads(far, 8); /* these name the new one */
    world_run(w, 50);
    ck_assert_uint_eq(w->node[1].answers, answers); /* some of the old ones are out */
    struct lane_command twice = reregistration(mr);
    command(&twice);
    world_run(w, 1);
    ck_assert_int_eq(w->node[1].answer.answer.status, -EBUSY);
    answers = w->node[1].answers;
    world_give();
    for (int i = 0; w->node[1].answers == answers; i++) {
        ck_assert_int_lt(i, PASSES);
        world_run(w, 1);
    }
    ck_assert_int_eq(w->node[1].answer.answer.status, 0);
    ck_assert_uint_eq(w->node[1].answer.answer.tag, c.reregister.tag);
    let_go(mr, w->node[1].answer.answer.fence_tag);
    expect_reads(28);
    ck_assert_int_eq(((uint8_t *)owner.arena.addr)[8192], 0x5a);
    ck_assert_uint_eq(world_stats(w, 1).qp_broken, 0);
    ck_assert_uint_eq(read_it(&owner, far).status, IBV_WC_SUCCESS);
    world_held_end();
    close_all();
}
END_TEST

/* What waits (for the record of a region, here) has not been posted, and takes the new key. */
START_TEST(requests_that_wait_take_the_new_registration)
{
    uint32_t far = open_with_far_region();
    world_run(w, 10);
    world_hold(&w->node[1], NULL);
    /* and with them, on soft, what is carried out */ /* of the READ of the record */
    post_reads(far, 10);
    world_run(w, 5);
    struct fab_mr *mr = register_anew();
    struct lane_command c = reregistration(mr);
    struct lane_event answer = tell(&c);
    ck_assert_int_eq(answer.kind, LANE_EVENT_ARENA_REREGISTERED);
    ck_assert_int_eq(answer.answer.status, 0);
    let_go(mr, answer.answer.fence_tag);
    world_give();
    expect_reads(10);
    ck_assert_uint_eq(world_stats(w, 1).qp_broken, 0);
    world_held_end();
    close_all();
}
END_TEST

START_TEST(a_worker_that_ends_while_its_registration_goes_is_answered_for_before_its_end)
{
    uint32_t far = open_with_far_region();
    ck_assert_uint_eq(read_it(&owner, far).status, IBV_WC_SUCCESS);
    world_hold(&w->node[1], NULL); /* and with them, on soft, what is carried out */
    post_reads(far, 1);
    world_run(w, 5);
    struct fab_mr *mr = register_anew();
    struct lane_command c = reregistration(mr);
    uint32_t answers = w->node[1].answers;
    command(&c);
    world_run(w, 1);
    end_owner();
    for (int i = 0; i < 20; i++)
        world_sleep(w, w->node[1].config.mr_lease_ns);
    ck_assert_uint_eq(w->node[1].answers, answers); /* what it had out is still out */
    ck_assert_uint_eq(w->node[1].over, 0);
    world_give();
    while (w->node[1].answers == answers)
        world_run(w, 1);
    ck_assert_int_eq(w->node[1].answer.answer.status, 0);
    world_run(w, 10);
    ck_assert_uint_eq(w->node[1].over, 1);
    let_go(mr, w->node[1].answer.answer.fence_tag); /* nobody's any more */
    c.reregister.tag = ++tag;
    ck_assert_int_eq(tell(&c).answer.status, -ENOENT);
    world_held_end();
    close_all();
}
END_TEST

START_TEST(an_arena_that_is_not_there_is_not_renewed)
{
    open_all();
    struct lane_command c = reregistration(owner.arena_mr);
    c.reregister.number = 1;
    ck_assert_int_eq(tell(&c).answer.status, -ENOENT);
    c.reregister.number = UINT32_MAX;
    ck_assert_int_eq(tell(&c).answer.status, -ENOENT);
    ck_assert_uint_eq(read_it(&reader, vkey).status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

/* ---- another thread looks on */

static _Atomic bool stop;

/* Of each lease offset and length are its number's. */
static void *look(void *arg)
{
    const struct lane_memory *memory = arg;
    struct lane_lease e;
    uintptr_t seen = 0;
    while (!atomic_load(&stop) || seen == 0) {
        for (uint32_t i = 0; i < lane_leases(memory); i++) {
            if (!lane_lease(memory, i, &e))
                continue;
            ck_assert_uint_eq(e.offset, e.number * 8);
            ck_assert_uint_eq(e.length, e.number);
            seen++;
        }
        sched_yield();
    }
    return (void *)seen;
}

START_TEST(who_looks_at_leases_while_they_change_sees_whole_ones)
{
    pthread_t thread;
    void *seen;
    open_all();
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, look, owner.memory), 0);
    for (uint32_t i = 2; i < 1000; i++) {
        uint32_t key = world_register(w, &owner, i * 8, i, ALL);
        ck_assert_uint_ne(key, 0);
        if (i % 2 == 0)
            ck_assert_int_eq(revoke_one(i), 1);
        ck_assert_int_eq(deregister(key), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, &seen);
    ck_assert_uint_gt((uintptr_t)seen, 0);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_has_a_former_record_does_not_reach_what_has_its_place_after_two_renewals)                \
    T(a_lease_is_shown_as_its_worker_registered_it)                                                \
    T(a_revoked_lease_ends_with_its_period_and_a_fence_and_its_worker_lives_on)                    \
    T(the_period_counts_from_a_clock_that_is_read_after_the_revocation)                            \
    T(who_withdraws_what_is_being_revoked_waits_for_a_whole_period)                                \
    T(a_lane_that_sleeps_wakes_when_the_period_is_over)                                            \
    T(revoking_twice_or_what_is_not_there_changes_nothing)                                         \
    T(all_of_a_worker_go_together_behind_one_fence)                                                \
    T(a_worker_that_ends_in_the_middle_takes_its_revoked_leases_with_it)                           \
    T(what_is_forced_is_over_at_once_and_the_others_on_the_connection_go_on)                       \
    T(the_owners_own_requests_are_seen_out_before_its_registration_goes)                           \
    T(requests_that_wait_take_the_new_registration)                                                \
    T(a_worker_that_ends_while_its_registration_goes_is_answered_for_before_its_end)               \
    T(an_arena_that_is_not_there_is_not_renewed)                                                   \
    T(who_looks_at_leases_while_they_change_sees_whole_ones)
KEDGE_CHECK_MAIN("agent.lane.revoke", TESTS)
