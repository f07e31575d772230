/* SPDX-License-Identifier: Apache-2.0 */
/* Ordinary regions on a device that keeps no deadlines: each has a registration of its own, which
 * goes when its lease is over, and only then its owner hears that the memory is free. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world.h"
#include "world_fenced.h"

enum { TENANT = 7, PASSES = 20000, SECRET = 0x5a };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_node *node; /* the owner's */
static struct world_worker owner, remote;
static uint32_t tag;

/* An owner on node 1, and a worker on node 0 that is connected to it. */
static void open_all(void)
{
    world_own_regions = true;
    world_open(w);
    node = &w->node[1];
    ck_assert(!node->config.deadlines);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &remote, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
}

static void close_all(void)
{
    world_close_empty(w, TENANT);
}

static uint32_t register_at(uint64_t offset, uint32_t kind)
{
    uint32_t vkey = world_register(w, &owner, offset, 4096, ALL | kind);
    ck_assert_uint_ne(vkey, 0);
    return vkey;
}

static int deregister(uint32_t vkey)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}};
    return world_ask(w, &owner, d, NULL);
}

/* Puts the question, and lets the lane see it, but waits for no answer. */
static void begin_deregistering(uint32_t vkey)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_DEREG_MR, .slots = 1, .dereg_mr = {.tag = ++owner.tag, .vkey = vkey}};
    world_post(&owner, &d);
    lane_doorbell(node->lane, owner.id);
    world_run(w, 3);
}

static bool is_answered(void)
{
    return atomic_load(&owner.r->reply[owner.tag % SCHEMA_REPLIES].tag) == owner.tag;
}

static struct schema_cqe do_one(struct world_worker *k, uint8_t op, uint32_t vkey, uint64_t at)
{
    return world_do(w, k, world_rw(op, 1, 8192, 8, vkey, at), PASSES);
}

static struct lane_lease lease(uint32_t number)
{
    struct lane_lease e;
    for (uint32_t i = 0; i < lane_leases(owner.memory); i++)
        if (lane_lease(owner.memory, i, &e) && e.number == number)
            return e;
    return (struct lane_lease){.state = LANE_LEASE_NONE};
}

static int revoke(uint32_t number, bool force)
{
    struct lane_command c = {
        .kind = LANE_COMMAND_REVOKE,
        .session = owner.id,
        .revoke = {.tag = ++tag, .number = number, .own = number == 0, .force = force}};
    uint32_t answers = node->answers;
    ck_assert_int_eq(lane_command(node->lane, &c), 0);
    world_run(w, 1);
    ck_assert_uint_eq(node->answers, answers + 1);
    return node->answer.answer.status < 0 ? node->answer.answer.status
                                          : (int)node->answer.answer.taken;
}

/* ---- a machine that stands still */

/* Node 0's device hears of one list of requests when its machine goes on. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    struct fab_qp *qp;
    struct fab_wr *wr;
} device;

static int post_later(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    (void)bad;
    ck_assert_ptr_null(device.wr);
    device.qp = qp;
    device.wr = wr;
    return 0;
}

/* A WRITE is under way when its machine is stopped, and goes on when the owner was told long ago
 * that its memory is free. Its completion; whether it arrived: *arrived. */
static struct schema_cqe write_late(uint32_t kind, bool *arrived)
{
    struct schema_cqe e;
    struct fab_wr *bad;
    volatile uint8_t *memory = owner.arena.addr;
    uint32_t vkey = register_at(0, kind);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_WRITE, vkey, 0).status, IBV_WC_SUCCESS);
    memset((uint8_t *)remote.arena.addr + 8192, SECRET, 8);
    device.real = w->node[0].fab->ops;
    device.ops = *device.real;
    device.ops.post_send = post_later;
    device.wr = NULL;
    w->node[0].fab->ops = &device.ops;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 2, 8192, 8, vkey, 0);
    world_post(&remote, &d);
    lane_doorbell(w->node[0].lane, remote.id);
    world_run(w, 3);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(memory[0], 0);
    world_sleep(w, 10 * node->config.mr_lease_ns);
    ck_assert_ptr_nonnull(device.wr);
    w->node[0].fab->ops = device.real;
    ck_assert_int_eq(device.real->post_send(device.qp, device.wr, &bad), 0);
    ck_assert(world_poll(w, &remote, &e, PASSES));
    *arrived = memory[0] == SECRET;
    return e;
}

START_TEST(a_machine_that_was_stopped_does_not_write_into_a_region_that_was_given_back)
{
    bool arrived;
    open_all();
    struct schema_cqe e = write_late(0, &arrived);
    ck_assert(!arrived);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, 0); /* by the device */
    close_all();
}
END_TEST

START_TEST(who_wants_the_lease_alone_takes_that_risk)
{
    bool arrived;
    open_all();
    struct schema_cqe e = write_late(SCHEMA_REG_LEASE_ONLY, &arrived);
    ck_assert(arrived);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(node->wanted, 0);
    close_all();
}
END_TEST

/* ---- politely */

START_TEST(its_registration_goes_when_its_lease_is_over_and_then_its_owner_hears)
{
    open_all();
    uint32_t vkey = register_at(0, 0);
    ck_assert_uint_eq(node->wanted, 1);
    ck_assert(lease(1).own && !lease(1).fenced);
    node->hold = true;
    begin_deregistering(vkey);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING);
    world_sleep(w, node->config.mr_lease_ns * 9 / 10);
    ck_assert_uint_eq(node->let_go, 0);
    world_sleep(w, node->config.mr_lease_ns / 5);
    ck_assert_uint_eq(node->let_go, 1);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WAITING);
    world_sleep(w, 3 * node->config.mr_lease_ns);
    ck_assert(!is_answered()); /* whatever the clock says */
    world_fenced_go_on(w, node);
    world_run(w, 3);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    close_all();
}
END_TEST

START_TEST(nobodys_connection_breaks_when_a_region_is_given_back_in_the_ordinary_way)
{
    struct schema_cqe e;
    open_all();
    uint32_t vkey = register_at(0, 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey, 0).status, IBV_WC_SUCCESS);
    begin_deregistering(vkey);
    /* It goes on reading until its agent refuses it. */
    for (int i = 0; i < PASSES && !is_answered(); i++) {
        e = do_one(&remote, SCHEMA_OP_READ, vkey, 0);
        if (e.status != IBV_WC_SUCCESS) {
            ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
            ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
            ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
            world_sleep(w, node->config.mr_lease_ns / 4);
        }
    }
    ck_assert(is_answered());
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_uint_eq(node->let_go, 1);
    close_all();
}
END_TEST

START_TEST(who_ends_with_such_regions_leaves_nothing_and_his_leases_are_waited_for)
{
    open_all();
    uint32_t vkey = register_at(0, 0);
    (void)register_at(4096, 0);
    begin_deregistering(vkey); /* and ends in the middle of it */
    uint64_t before = w->now_ns;
    world_detach(w, &owner);
    ck_assert_uint_ge(w->now_ns - before, node->config.mr_lease_ns);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    close_all();
}
END_TEST

START_TEST(no_region_is_fenced_and_for_the_lease_alone)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.length = 4096,
                   .vaddr = 0x10000,
                   .access = ALL | SCHEMA_REG_FENCED | SCHEMA_REG_LEASE_ONLY}};
    open_all();
    ck_assert_int_eq(world_ask(w, &owner, d, NULL), -EINVAL);
    ck_assert_uint_eq(node->wanted, 0);
    close_all();
}
END_TEST

/* ---- revoked */

START_TEST(by_the_rule_the_operator_waits_for_the_lease_and_takes_the_registration_then)
{
    open_all();
    uint32_t vkey = register_at(0, 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey, 0).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(revoke(1, false), 1);
    world_sleep(w, node->config.mr_lease_ns / 2);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WITHDRAWING);
    ck_assert_uint_eq(node->let_go, 0);
    world_sleep(w, node->config.mr_lease_ns);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    ck_assert_uint_eq(node->let_go, 1);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_int_eq(deregister(vkey), 0);
    close_all();
}
END_TEST

START_TEST(by_force_it_goes_at_once_and_others_in_its_arena_stay)
{
    open_all();
    uint32_t vkey = register_at(0, 0), beside = register_at(4096, 0);
    const uint64_t before = w->now_ns;
    ck_assert_int_eq(revoke(1, true), 1);
    world_run(w, 5);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    ck_assert_uint_lt(w->now_ns - before, node->config.mr_lease_ns / 10);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_LIVE);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, beside, 4096).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(revoke(0, true), 1);
    world_run(w, 5);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_REVOKED);
    close_all();
}
END_TEST

START_TEST(force_hurries_what_was_revoked_or_withdrawn_by_the_rule)
{
    open_all();
    uint32_t vkey = register_at(0, 0);
    (void)register_at(4096, 0);
    ck_assert_int_eq(revoke(2, false), 1);
    begin_deregistering(vkey);
    ck_assert(!is_answered());
    const uint64_t before = w->now_ns;
    ck_assert_int_eq(revoke(0, true), 0);
    world_run(w, 10);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_REVOKED);
    ck_assert_uint_lt(w->now_ns - before, node->config.mr_lease_ns / 10);
    close_all();
}
END_TEST

START_TEST(an_operator_and_its_worker_withdraw_the_same_one_and_both_hear)
{
    open_all();
    uint32_t vkey = register_at(0, 0);
    node->hold = true;
    ck_assert_int_eq(revoke(1, true), 1);
    world_run(w, 3);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WAITING);
    begin_deregistering(vkey);
    ck_assert(!is_answered());
    world_fenced_go_on(w, node);
    world_run(w, 5);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_eq(node->let_go, 1);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_machine_that_was_stopped_does_not_write_into_a_region_that_was_given_back)                 \
    T(who_wants_the_lease_alone_takes_that_risk)                                                   \
    T(its_registration_goes_when_its_lease_is_over_and_then_its_owner_hears)                       \
    T(nobodys_connection_breaks_when_a_region_is_given_back_in_the_ordinary_way)                   \
    T(who_ends_with_such_regions_leaves_nothing_and_his_leases_are_waited_for)                     \
    T(no_region_is_fenced_and_for_the_lease_alone)                                                 \
    T(by_the_rule_the_operator_waits_for_the_lease_and_takes_the_registration_then)                \
    T(by_force_it_goes_at_once_and_others_in_its_arena_stay)                                       \
    T(force_hurries_what_was_revoked_or_withdrawn_by_the_rule)                                     \
    T(an_operator_and_its_worker_withdraw_the_same_one_and_both_hear)
KEDGE_CHECK_MAIN("agent.lane.own", TESTS)
