/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a lane from its sleep: VQPs that it can do something for, and not that some once
 * waited. */
#include "../../check_main.h"
#include "fabric/provider.h"
#include "schema/peers.h"
#include "world.h"

enum {
    ONE = 1, /* tenants, of which each may be anybody */
    OTHER = 2,
    VQPS = 8,
    CROWD = 40, /* with that many VQPs each, more than twice as many as a pass looks at */
    LOOKED_AT = 128,
    ROOM = 64, /* requests of a queue pair */
    OUT = 32,  /* of one worker */
    PASSES = 4 /* at the most, for one VQP that cannot go on */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t RETRY_NS = 100000; /* the blocked are looked at as often as that */

static struct world world;
static struct world *w = &world;
static struct world_worker owner[2], k, crowd[CROWD];

static void post(struct world_worker *from, uint16_t vqp, uint32_t vkey)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    d.vqp = vqp;
    world_post(from, &d);
    lane_doorbell(w->node[0].lane, from->id);
}

static void attach_crowd(uint32_t count, uint32_t tenant)
{
    for (uint32_t i = 0; i < count; i++) {
        world_attach(w, &crowd[i], 0, 2 + i, tenant);
        for (uint16_t vqp = 0; vqp < VQPS; vqp++)
            ck_assert_int_eq(world_connect(w, &crowd[i], vqp, 1), 0);
    }
}

static void post_crowd(uint32_t count, uint32_t vkey)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint16_t vqp = 0; vqp < VQPS; vqp++)
            post(&crowd[i], vqp, vkey);
}

static bool may_sleep(void)
{
    return lane_prepare_sleep(w->node[0].lane, w->now_ns) > w->now_ns;
}

/* ---- those who wait for what the lane has few of */

static void end_crowd(void)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        const struct lane_command c = {.kind = LANE_COMMAND_SESSION_END,
                                       .session = crowd[i].id,
                                       .reason = SCHEMA_REASON_CLOSED};
        ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    }
}

START_TEST(who_was_to_be_looked_at_and_is_gone_keeps_no_lane_awake)
{
    world_mr_lease_ns[1] = 1000000000;
    const uint32_t vkey = world_pair(w, &owner[0], &k, ONE, ALL);
    attach_crowd(CROWD, ONE);
    world_lose_dcis(w, 0);
    post_crowd(CROWD, vkey);
    world_run(w, 8); /* all of them wait */
    ck_assert_uint_eq(world_stats(w, 0).inflight, CROWD * VQPS);
    world_sleep(w, RETRY_NS - 2000); /* to the end of what is looked at now, */
    world_run(w, 4);
    const uint64_t before = world_stats(w, 0).retried;
    while (world_stats(w, 0).retried == before) /* and to the next beginning */
        world_run(w, 1);
    ck_assert_uint_le(world_stats(w, 0).retried - before, LOOKED_AT);
    end_crowd();
    while (world_stats(w, 0).vqps > 1) /* a pass ends a little of them */
        world_run(w, 1);
    world_run(w, CROWD);
    const uint64_t gone = world_stats(w, 0).retried;
    post(&k, 0, vkey);
    world_run(w, 2);
    ck_assert_uint_le(world_stats(w, 0).retried - gone, PASSES);
    ck_assert(may_sleep());
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_unpair(w, &owner[0], &k);
}
END_TEST

/* ---- those who wait for room */

/* Node 0's device gives back so many completions, and the others later. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    int left;
} held;

static int poll_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (cq != w->node[0].cq)
        return held.real->poll(cq, n, wc);
    const int most = n < held.left ? n : held.left;
    const int got = most > 0 ? held.real->poll(cq, most, wc) : 0;
    held.left -= got > 0 ? got : 0;
    return got;
}

static void hold_completions(void)
{
    held.real = w->node[0].fab->ops;
    held.ops = *held.real;
    held.ops.poll = poll_held;
    held.left = 0;
    w->node[0].fab->ops = &held.ops;
}

static uint32_t step(void)
{
    w->now_ns += 1000;
    return lane_step(w->node[0].lane, w->now_ns);
}

/* One tenant's VQPs wait for room, and when there is some each goes to its window, which is full:
 * nothing is posted, and those behind may have something else to do. */
START_TEST(while_those_who_have_waited_for_room_go_elsewhere_the_lane_stays_awake)
{
    enum { HAVE_WAITED = CROWD * VQPS };
    const struct lane_command one_at_a_time = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_TENANT, .tenant = OTHER, .ops = 1}};
    struct world_worker more;
    world_one_dci = true;
    world_mr_lease_ns[1] = 1000000000;
    const uint32_t vkey = world_pair(w, &owner[0], &k, ONE, ALL);
    world_attach(w, &owner[1], 1, 1, OTHER);
    const uint32_t other_key = world_register(w, &owner[1], 0, 4096, ALL);
    attach_crowd(CROWD, OTHER);
    world_attach(w, &more, 0, 1, ONE);
    ck_assert_int_eq(world_connect(w, &more, 0, 1), 0);
    ck_assert_int_eq(lane_command(w->node[0].lane, &one_at_a_time), 0);
    post(&k, 0, vkey);
    ck_assert_uint_eq(world_done(w, &k, 100).status, IBV_WC_SUCCESS);
    post(&crowd[0], 0, other_key);
    ck_assert_uint_eq(world_done(w, &crowd[0], 100).status, IBV_WC_SUCCESS);
    hold_completions();
    for (int i = 0; i < OUT; i++)
        post(&k, 0, vkey);
    for (int i = 0; i < ROOM - OUT - 1; i++)
        post(&more, 0, vkey);
    world_run(w, 1);
    post(&crowd[0], 0, other_key); /* fills the queue pair, and its tenant's window */
    world_run(w, 1);
    post_crowd(CROWD, other_key);
    world_run(w, 4);
    held.left = ROOM - 1;
    ck_assert_uint_gt(step(), 0);                           /* they come back */
    for (int left = HAVE_WAITED; left > ROOM; left -= ROOM) /* more wait than go in a pass */
        ck_assert_uint_gt(step(), 0);
    while (step() > 0)
        ;
    ck_assert(may_sleep());
    held.left = INT32_MAX;
    world_run(w, 2000);
    w->node[0].fab->ops = held.real;
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &more);
    world_detach(w, &owner[1]);
    world_unpair(w, &owner[0], &k);
}
END_TEST

/* What stands behind a BIND in its ring is not looked at until the VQP's requests are over, which
 * takes as long as a device tries a peer that is silent. */
START_TEST(who_connects_anew_behind_requests_that_are_out_keeps_no_lane_awake)
{
    struct schema_sq_desc again = {.op = SCHEMA_OP_BIND, .slots = 1};
    const uint32_t vkey = world_pair(w, &owner[0], &k, ONE, ALL);
    ck_assert_int_eq(schema_peers_find(w->node[0].peers, w->node[1].fab->caps.gid, 1,
                                       &again.bind.peer_slot, &again.bind.peer_gen),
                     0);
    post(&k, 0, vkey);
    ck_assert_uint_eq(world_done(w, &k, 100).status, IBV_WC_SUCCESS);
    hold_completions();
    post(&k, 0, vkey);
    world_post(&k, &again);
    post(&k, 0, vkey);
    while (step() > 0)
        ;
    ck_assert_uint_eq(world_stats(w, 0).inflight, 1);
    ck_assert(may_sleep());
    held.left = INT32_MAX;
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(world_done(w, &k, 2000).status, IBV_WC_SUCCESS);
    w->node[0].fab->ops = held.real;
    world_unpair(w, &owner[0], &k);
}
END_TEST

START_TEST(a_doorbell_with_nothing_new_behind_it_wakes_no_session)
{
    const uint32_t vkey = world_pair(w, &owner[0], &k, ONE, ALL);
    post(&k, 0, vkey);
    ck_assert_uint_eq(world_done(w, &k, 100).status, IBV_WC_SUCCESS);
    while (step() > 0)
        ;
    ck_assert(may_sleep());
    for (int i = 0; i < 3; i++) {
        ck_assert(!lane_doorbell(w->node[0].lane, k.id));
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
    }
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(lane_doorbell(w->node[0].lane, k.id));
    ck_assert_uint_eq(atomic_load(&k.r->doorbell), 0);
    ck_assert_uint_eq(world_done(w, &k, 100).status, IBV_WC_SUCCESS);
    world_unpair(w, &owner[0], &k);
}
END_TEST

/* As a worker's that posts on end to a session that slept: no two rings for nothing without one for
 * something between them. */
START_TEST(the_ring_for_what_was_seen_already_follows_one_for_something_new)
{
    const uint32_t vkey = world_pair(w, &owner[0], &k, ONE, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    for (int i = 0; i < 4; i++) {
        world_post(&k, &d);
        world_post(&k, &d);
        ck_assert(lane_doorbell(w->node[0].lane, k.id)); /* the first one's, which shows both, */
        if (i % 2 == 0)
            world_run(w, 1);
        ck_assert(!lane_doorbell(w->node[0].lane, k.id)); /* and the second one's */
        for (int n = 0; n < 2; n++)
            ck_assert_uint_eq(world_done(w, &k, 100).status, IBV_WC_SUCCESS);
        while (step() > 0)
            ;
        ck_assert(may_sleep());
    }
    world_unpair(w, &owner[0], &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_was_to_be_looked_at_and_is_gone_keeps_no_lane_awake)                                     \
    T(while_those_who_have_waited_for_room_go_elsewhere_the_lane_stays_awake)                      \
    T(who_connects_anew_behind_requests_that_are_out_keeps_no_lane_awake)                          \
    T(a_doorbell_with_nothing_new_behind_it_wakes_no_session)                                      \
    T(the_ring_for_what_was_seen_already_follows_one_for_something_new)
KEDGE_CHECK_MAIN("agent.lane.sleeps", TESTS)
