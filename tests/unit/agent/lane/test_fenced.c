/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with registrations of their own: what comes late is refused by the device, also where it
 * keeps no deadlines, as here. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world.h"
#include "world_rc.h"
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
    world_open(w);
    node = &w->node[1];
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &remote, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
}

static void close_all(void)
{
    world_close_empty(w, TENANT);
}

static struct schema_sq_desc registration(uint64_t offset, uint32_t access)
{
    return (struct schema_sq_desc){.op = SCHEMA_OP_REG_MR,
                                   .slots = 1,
                                   .reg_mr = {.tag = ++owner.tag,
                                              .offset = offset,
                                              .length = 4096,
                                              .vaddr = 0x10000 + offset,
                                              .access = access}};
}

static uint32_t register_fenced(uint64_t offset)
{
    uint32_t vkey = world_register(w, &owner, offset, 4096, ALL | SCHEMA_REG_FENCED);
    ck_assert_uint_ne(vkey, 0);
    return vkey;
}

static int deregister(uint32_t vkey)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}};
    return world_ask(w, &owner, d, NULL);
}

/* Puts the question, and lets the lane see it, but waits for no answer. */
static void begin(struct schema_sq_desc d)
{
    d.slots = 1;
    d.dereg_mr.tag = ++owner.tag;
    world_post(&owner, &d);
    lane_doorbell(node->lane, owner.id);
    world_run(w, 3);
}

static void begin_deregistering(uint32_t vkey)
{
    begin((struct schema_sq_desc){.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}});
}

static bool is_answered(void)
{
    return atomic_load(&owner.r->reply[owner.tag % SCHEMA_REPLIES].tag) == owner.tag;
}

static struct schema_cqe do_one_at(struct world_worker *k, uint8_t op, uint32_t vkey, uint64_t at)
{
    return world_do(w, k, world_rw(op, 1, 8192, 8, vkey, at), PASSES);
}

static struct schema_cqe do_one(struct world_worker *k, uint8_t op, uint32_t vkey)
{
    return do_one_at(k, op, vkey, 0);
}

static int revoke(uint32_t number, uint32_t arenas, bool fenced)
{
    struct lane_command c = {
        .kind = LANE_COMMAND_REVOKE,
        .session = owner.id,
        .revoke = {.tag = ++tag, .number = number, .arenas = arenas, .own = fenced}};
    uint32_t answers = node->answers;
    ck_assert_int_eq(lane_command(node->lane, &c), 0);
    world_run(w, 1);
    ck_assert_uint_eq(node->answers, answers + 1);
    return node->answer.answer.status < 0 ? node->answer.answer.status
                                          : (int)node->answer.answer.taken;
}

static struct lane_lease lease(uint32_t number)
{
    struct lane_lease e;
    for (uint32_t i = 0; i < lane_leases(owner.memory); i++)
        if (lane_lease(owner.memory, i, &e) && e.number == number)
            return e;
    return (struct lane_lease){.state = LANE_LEASE_NONE};
}

/* ---- what the flag is for */

/* Node 0's device hears of one list of requests when it is let to: as when the lane stands still
 * between its clock and the doorbell. The requests are the lane's own, and stay where they are. */
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

static void hold_device(void)
{
    device.real = w->node[0].fab->ops;
    device.ops = *device.real;
    device.ops.post_send = post_later;
    device.wr = NULL;
    w->node[0].fab->ops = &device.ops;
}

static void release_device(void)
{
    struct fab_wr *bad;
    ck_assert_ptr_nonnull(device.wr);
    w->node[0].fab->ops = device.real;
    ck_assert_int_eq(device.real->post_send(device.qp, device.wr, &bad), 0);
}

/* A WRITE is taken by node 0's device in time, and carried out when the owner was told long ago
 * that its memory is free. Its completion; whether it arrived: *arrived. */
static struct schema_cqe write_late(uint32_t access, bool *arrived)
{
    struct schema_cqe e;
    volatile uint8_t *memory = owner.arena.addr;
    uint32_t vkey = world_register(w, &owner, 0, 4096, access);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_WRITE, vkey).status, IBV_WC_SUCCESS);
    memset((uint8_t *)remote.arena.addr + 8192, SECRET, 8);
    hold_device();
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 2, 8192, 8, vkey, 0);
    world_post(&remote, &d);
    lane_doorbell(w->node[0].lane, remote.id);
    world_run(w, 3);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(memory[0], 0);
    world_sleep(w, 10 * node->config.mr_lease_ns);
    release_device();
    ck_assert(world_poll(w, &remote, &e, PASSES));
    *arrived = memory[0] == SECRET;
    return e;
}

START_TEST(what_comes_late_never_arrives_in_a_fenced_region_that_was_given_back)
{
    bool arrived;
    open_all();
    ck_assert(!node->config.deadlines);
    struct schema_cqe e = write_late(ALL | SCHEMA_REG_FENCED, &arrived);
    ck_assert(!arrived);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, 0); /* by the device */
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    /* Which is the initiator's own affair: connected again, it goes on. */
    uint32_t again = register_fenced(0);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_WRITE, again).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    close_all();
}
END_TEST

/* What a device without deadlines leaves open, and the reason for the flag. */
START_TEST(without_the_flag_it_arrives_where_the_device_keeps_no_deadlines)
{
    bool arrived;
    open_all();
    struct schema_cqe e = write_late(ALL, &arrived);
    ck_assert(arrived);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

/* Whoever lent again at once, at the same place, has what a device may give it: the same keys. */
START_TEST(who_has_a_former_record_does_not_reach_the_region_that_has_its_place)
{
    open_all();
    volatile uint8_t *memory = owner.arena.addr;
    for (int i = 0; i < 10; i++) {
        uint32_t former = register_fenced(0);
        ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, former).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(deregister(former), 0);
        uint32_t present = register_fenced(0);
        memset((uint8_t *)remote.arena.addr + 8192, SECRET, 8);
        struct schema_cqe e = do_one(&remote, SCHEMA_OP_WRITE, former); /* still believed */
        ck_assert_uint_ne(memory[0], SECRET);
        ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_uint_eq(e.vendor_err, 0); /* by the device */
        ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
        ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_WRITE, present).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(memory[0], SECRET);
        memset(owner.arena.addr, 0, 8);
        ck_assert_int_eq(deregister(present), 0);
    }
    close_all();
}
END_TEST

START_TEST(others_on_the_connection_go_on_when_a_late_request_breaks_it)
{
    struct world_worker beside, other;
    struct schema_cqe e;
    open_all();
    world_attach(w, &beside, 1, 1, TENANT);
    world_attach(w, &other, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    uint32_t safe = world_register(w, &beside, 0, 4096, ALL);
    uint32_t vkey = register_fenced(0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(do_one(&other, SCHEMA_OP_READ, safe).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(deregister(vkey), 0);
    struct schema_sq_desc late = world_rw(SCHEMA_OP_READ, 1, 8192, 8, vkey, 0);
    struct schema_sq_desc good = world_rw(SCHEMA_OP_READ, 2, 8192, 8, safe, 0);
    world_post(&remote, &late); /* the record is still believed */
    world_post(&other, &good);
    ck_assert(world_poll(w, &remote, &e, PASSES));
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert(world_poll(w, &other, &e, PASSES));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    /* Refused once by the device, it is believed no more, and the next is refused before it. */
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    close_all();
}
END_TEST

/* ---- coming and going */

START_TEST(it_is_a_region_as_any_other_with_a_key_of_its_own)
{
    struct schema_cqe e;
    open_all();
    uint32_t vkey = register_fenced(0), plain = world_register(w, &owner, 4096, 64, ALL);
    ck_assert_uint_eq(node->wanted, 1);
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 2);
    ck_assert(lease(1).fenced && !lease(2).fenced);
    ck_assert_uint_eq(lease(1).access, ALL);
    ck_assert_uint_ne(node->fenced[0].rkey, owner.arena_mr->rkey);
    for (uint8_t op = SCHEMA_OP_READ; op <= SCHEMA_OP_FAA; op++)
        ck_assert_uint_eq(do_one(&remote, op, vkey).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(do_one_at(&remote, SCHEMA_OP_READ, plain, 4096).status, IBV_WC_SUCCESS);
    struct schema_sq_desc beyond = world_rw(SCHEMA_OP_READ, 1, 8192, 8, vkey, 4089);
    world_post(&remote, &beyond);
    ck_assert(world_poll(w, &remote, &e, PASSES));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_REMOTE_RANGE);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    ck_assert_int_eq(deregister(vkey), -ENOENT);
    close_all();
}
END_TEST

START_TEST(deregistering_waits_for_the_registrations_end_and_for_no_lease)
{
    open_all();
    uint32_t vkey = register_fenced(0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    node->hold = true;
    begin_deregistering(vkey);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_WAITING);
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 0);
    world_sleep(w, 3 * node->config.mr_lease_ns);
    ck_assert(!is_answered()); /* whatever the clock says */
    uint64_t before = w->now_ns;
    world_fenced_go_on(w, node);
    world_run(w, 3);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    vkey = register_fenced(0);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_uint_lt(w->now_ns - before, node->config.mr_lease_ns / 10);
    ck_assert_uint_eq(node->fences, 0);
    ck_assert_uint_eq(node->let_go, 2);
    close_all();
}
END_TEST

START_TEST(what_its_worker_posts_waits_while_it_is_registered_and_others_do_not)
{
    struct world_worker beside;
    struct schema_cqe e;
    open_all();
    world_attach(w, &beside, 1, 1, TENANT);
    uint32_t far = world_register(w, &remote, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &owner, 0, 0), 0);
    ck_assert_int_eq(world_connect(w, &beside, 0, 0), 0);
    ck_assert_uint_eq(do_one(&owner, SCHEMA_OP_READ, far).status, IBV_WC_SUCCESS);
    node->hold = true;
    begin(registration(0, ALL | SCHEMA_REG_FENCED));
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 8192, 8, far, 0);
    world_post(&owner, &d);
    ck_assert(!world_poll(w, &owner, &e, 100));
    ck_assert_uint_eq(do_one(&beside, SCHEMA_OP_READ, far).status, IBV_WC_SUCCESS);
    ck_assert(!is_answered());
    ck_assert_int_eq(lease(1).state, LANE_LEASE_NONE);
    world_fenced_go_on(w, node);
    ck_assert(world_poll(w, &owner, &e, PASSES));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    uint32_t vkey = (uint32_t)owner.r->reply[owner.tag % SCHEMA_REPLIES].value[0];
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    close_all();
}
END_TEST

START_TEST(a_registration_that_fails_says_why_and_leaves_nothing)
{
    struct schema_reply reply;
    open_all();
    node->refuse = -ENOMEM;
    ck_assert_int_eq(world_ask(w, &owner, registration(0, ALL | SCHEMA_REG_FENCED), &reply),
                     -ENOMEM);
    ck_assert_uint_eq(reply.reason, SCHEMA_REASON_REGISTER);
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 0);
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    for (int i = 0; i < 4; i++) /* all its places */
        (void)register_fenced(4096u * (unsigned)i);
    ck_assert_int_eq(world_ask(w, &owner, registration(0, ALL | SCHEMA_REG_FENCED), &reply),
                     -EDQUOT);
    ck_assert_uint_eq(node->wanted, 5);
    close_all();
}
END_TEST

static int no_random(void *user, void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return -EIO;
}

START_TEST(a_registration_without_a_key_for_peers_goes_again)
{
    open_all();
    lane_set_random(node->lane, no_random, NULL);
    ck_assert_int_eq(world_ask(w, &owner, registration(0, ALL | SCHEMA_REG_FENCED), NULL), -EIO);
    world_run(w, 3);
    ck_assert_uint_eq(node->wanted, 1);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 0);
    lane_set_random(node->lane, world_fill, w);
    (void)register_fenced(0);
    close_all();
}
END_TEST

START_TEST(access_that_makes_no_sense_is_refused_before_anything_is_registered)
{
    static const uint32_t bad[] = {SCHEMA_REG_FENCED, ALL | SCHEMA_REG_LEASE_ONLY << 1,
                                   ALL | SCHEMA_REG_FENCED | SCHEMA_RECORD_LIVE};
    open_all();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(world_ask(w, &owner, registration(0, bad[i]), NULL), -EINVAL);
    ck_assert_int_eq(
        world_ask(w, &owner, registration(WORLD_ARENA - 4095, ALL | SCHEMA_REG_FENCED), NULL),
        -EINVAL);
    ck_assert_uint_eq(node->wanted, 0);
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 0);
    close_all();
}
END_TEST

/* ---- ends */

START_TEST(a_worker_that_ends_waits_for_no_lease_of_fenced_regions)
{
    open_all();
    uint32_t vkey = register_fenced(0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    struct lane_command end = {
        .kind = LANE_COMMAND_SESSION_END, .session = owner.id, .reason = SCHEMA_REASON_CLOSED};
    uint64_t before = w->now_ns;
    ck_assert_int_eq(lane_command(node->lane, &end), 0);
    while (node->over == 0)
        world_run(w, 1);
    ck_assert_uint_lt(w->now_ns - before, node->config.mr_lease_ns / 10);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_REM_ACCESS_ERR);
    close_all();
}
END_TEST

/* While something of it is asked for; and what comes late is nobody's, the next worker's neither.
 */
static void end_while(struct schema_sq_desc d)
{
    node->hold = true;
    begin(d);
    ck_assert_uint_eq(node->held, 1);
    const struct lane_event asked = node->held_event[0];
    struct lane_command end = {
        .kind = LANE_COMMAND_SESSION_END, .session = owner.id, .reason = SCHEMA_REASON_CLOSED};
    struct lane_command late = {.session = owner.id};
    ck_assert_int_eq(lane_command(node->lane, &end), 0);
    /* The answer crosses the end. */
    late.kind = asked.kind == LANE_EVENT_WANT_MR ? LANE_COMMAND_MR_READY : LANE_COMMAND_MR_GONE;
    late.mr.tag = asked.kind == LANE_EVENT_WANT_MR ? asked.want_mr.tag : asked.fence.tag;
    ck_assert_int_eq(lane_command(node->lane, &late), 0);
    uint32_t over = node->over;
    while (node->over == over)
        world_run(w, 1);
    node->hold = false;
    ck_assert_uint_eq(node->quota[TENANT % WORLD_TENANTS].mrs, 0);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    world_detach(w, &owner);
    world_attach(w, &owner, 1, 0, TENANT);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, register_fenced(0)).status, IBV_WC_SUCCESS);
}

START_TEST(a_worker_that_ends_while_its_region_comes_or_goes_leaves_nothing)
{
    open_all();
    end_while(registration(0, ALL | SCHEMA_REG_FENCED));
    struct lane_lease e = lease(1);
    ck_assert_int_eq(e.state, LANE_LEASE_LIVE);
    uint32_t vkey = register_fenced(4096);
    end_while((struct schema_sq_desc){.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}});
    close_all();
}
END_TEST

/* ---- the operator */

START_TEST(revoking_it_waits_for_no_period_either)
{
    open_all();
    uint32_t vkey = register_fenced(0), plain = world_register(w, &owner, 4096, 64, ALL);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    uint64_t before = w->now_ns;
    ck_assert_int_eq(revoke(1, UINT32_MAX, false), 1);
    world_run(w, 4);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_REVOKED);
    ck_assert_uint_lt(w->now_ns - before, node->config.mr_lease_ns / 10);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
    ck_assert_uint_eq(do_one_at(&remote, SCHEMA_OP_READ, plain, 4096).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(owner.r->revoked, 1);
    ck_assert_int_eq(deregister(vkey), 0);
    ck_assert_uint_eq(node->let_go, 1);
    close_all();
}
END_TEST

START_TEST(an_arena_that_gets_another_registration_leaves_fenced_regions_as_they_are)
{
    open_all();
    uint32_t vkey = register_fenced(0), plain = world_register(w, &owner, 4096, 64, ALL);
    ck_assert_int_eq(revoke(0, 1, false), 1);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_LIVE);
    struct lane_command c = {
        .kind = LANE_COMMAND_ARENA_REREGISTER,
        .session = owner.id,
        .reregister = {.tag = ++tag, .lkey = owner.arena_mr->lkey, .rkey = owner.arena_mr->rkey}};
    ck_assert_int_eq(lane_command(node->lane, &c), 0);
    world_run(w, 2);
    ck_assert_int_eq(lease(1).state, LANE_LEASE_LIVE);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_WAITING);
    ck_assert_uint_eq(do_one(&remote, SCHEMA_OP_READ, vkey).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(deregister(vkey), 0);
    struct lane_command fenced = {
        .kind = LANE_COMMAND_FENCED, .session = owner.id, .tag = node->answer.answer.fence_tag};
    ck_assert_int_eq(lane_command(node->lane, &fenced), 0);
    world_run(w, 2);
    ck_assert_int_eq(lease(2).state, LANE_LEASE_REVOKED);
    ck_assert_int_eq(deregister(plain), 0);
    close_all();
}
END_TEST

/* As open_all(); six regions are revoked, and the test holds what lets their registrations go. */
static void open_and_revoke_six(uint32_t vkey[6])
{
    world_max_mrs = 6;
    open_all();
    world_max_mrs = 0;
    for (uint32_t i = 0; i < 6; i++)
        vkey[i] = register_fenced(4096u * i);
    node->hold = true;
    ck_assert_int_eq(revoke(0, 0, true), 6);
    world_run(w, 5);
}

START_TEST(all_of_a_worker_go_few_at_a_time_and_its_own_needs_no_turn)
{
    uint32_t vkey[6];
    open_and_revoke_six(vkey);
    ck_assert_uint_eq(node->held, 4);
    begin_deregistering(vkey[0]);
    begin_deregistering(vkey[0]); /* is not taken before the first is answered */
    ck_assert_uint_eq(node->held, lease(1).state == LANE_LEASE_WAITING ? 4 : 5);
    ck_assert_uint_eq(world_fenced_count(node), 6);
    world_fenced_go_on(w, node);
    world_run(w, 10);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    ck_assert_uint_eq(node->let_go, 6);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, -ENOENT);
    for (uint32_t i = 1; i < 6; i++) {
        ck_assert_int_eq(lease(i + 1).state, LANE_LEASE_REVOKED);
        ck_assert_int_eq(deregister(vkey[i]), 0);
    }
    close_all();
}
END_TEST

START_TEST(who_withdraws_what_waits_for_its_turn_goes_first)
{
    uint32_t vkey[6];
    open_and_revoke_six(vkey);
    for (uint32_t i = 0; i < 6; i++) {
        if (lease(i + 1).state != LANE_LEASE_WITHDRAWING)
            continue;
        begin_deregistering(vkey[i]);
        break;
    }
    ck_assert_uint_eq(node->held, 5);
    world_fenced_go_on(w, node);
    world_run(w, 10);
    ck_assert(is_answered());
    ck_assert_int_eq(owner.r->reply[owner.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_eq(node->let_go, 6);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    close_all();
}
END_TEST

START_TEST(a_worker_that_ends_in_the_middle_of_it_leaves_nothing)
{
    uint32_t vkey[6];
    open_and_revoke_six(vkey);
    world_detach(w, &owner);
    node->hold = false;
    ck_assert_uint_eq(world_fenced_count(node), 0);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_comes_late_never_arrives_in_a_fenced_region_that_was_given_back)                        \
    T(who_has_a_former_record_does_not_reach_the_region_that_has_its_place)                        \
    T(without_the_flag_it_arrives_where_the_device_keeps_no_deadlines)                             \
    T(others_on_the_connection_go_on_when_a_late_request_breaks_it)                                \
    T(it_is_a_region_as_any_other_with_a_key_of_its_own)                                           \
    T(deregistering_waits_for_the_registrations_end_and_for_no_lease)                              \
    T(what_its_worker_posts_waits_while_it_is_registered_and_others_do_not)                        \
    T(a_registration_that_fails_says_why_and_leaves_nothing)                                       \
    T(a_registration_without_a_key_for_peers_goes_again)                                           \
    T(access_that_makes_no_sense_is_refused_before_anything_is_registered)                         \
    T(a_worker_that_ends_waits_for_no_lease_of_fenced_regions)                                     \
    T(a_worker_that_ends_while_its_region_comes_or_goes_leaves_nothing)                            \
    T(revoking_it_waits_for_no_period_either)                                                      \
    T(an_arena_that_gets_another_registration_leaves_fenced_regions_as_they_are)                   \
    T(all_of_a_worker_go_few_at_a_time_and_its_own_needs_no_turn)                                  \
    T(who_withdraws_what_waits_for_its_turn_goes_first)                                            \
    T(a_worker_that_ends_in_the_middle_of_it_leaves_nothing)
KEDGE_CHECK_MAIN("agent.lane.fenced", TESTS)
