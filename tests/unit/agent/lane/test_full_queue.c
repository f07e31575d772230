/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a queue pair that is full: it goes several at a time, behind one doorbell, and
 * merged where that may be. */
#include "../../check_main.h"
#include "fabric/provider.h"
#include "lane_state.h"
#include "request/returns.h"
#include "world.h"
#include "world_held.h"
#include "world_merge.h"

enum { PASSES = 400000, BLOCK = 256, EACH = 32, WORKERS = 4, TURN = 8 };
_Static_assert(WORKERS *EACH == 2 * WORLD_SQ_DEPTH, "as many wait as are out");

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;

static struct schema_sq_desc read_block(uint64_t id, uint32_t block)
{
    struct schema_sq_desc d =
        world_rw(SCHEMA_OP_READ, id, id * BLOCK, BLOCK, m.vkey, (uint64_t)block * BLOCK);
    d.flags |= SCHEMA_OP_RELAXED;
    return d;
}

static uint32_t apart; /* from one READ of a worker to the next, in blocks */

static uint32_t block_of(uint32_t id, uint32_t worker)
{
    return (id * apart + 64 * worker) % 256;
}

/* All that is posted goes to one queue pair of the device, which is full then and has nothing
 * given back. */
static void fill(uint32_t blocks)
{
    apart = blocks;
    world_one_dci = true;
    world_mergers_open(w, &m, WORKERS);
    world_one_dci = false;
    for (uint32_t b = 0; b < WORLD_ARENA; b++)
        ((uint8_t *)m.owner.arena.addr)[b] = (uint8_t)(b / BLOCK);
    posts = world_watch_posts(&w->node[0]);
    world_hold(&w->node[0], NULL);
    for (uint32_t i = 0; i < EACH; i++)
        for (uint32_t k = 0; k < WORKERS; k++) {
            const struct schema_sq_desc d = read_block(i, block_of(i, k));
            world_post(&m.worker[k], &d);
        }
    world_mergers_ring(w, &m);
    world_run(w, 40);
}

static void finish_with(struct world_worker *other)
{
    world_give();
    for (uint32_t k = 0; k < WORKERS; k++)
        for (uint64_t id = 0; id < EACH; id++) {
            const struct schema_cqe e = world_done(w, &m.worker[k], PASSES);
            ck_assert_uint_eq(e.wr_id, id);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        }
    for (uint32_t k = 0; k < WORKERS; k++)
        for (uint32_t b = 0; b < EACH * BLOCK; b++)
            ck_assert_uint_eq(((uint8_t *)m.worker[k].arena.addr)[b], block_of(b / BLOCK, k));
    world_held_end();
    world_watch_end();
    if (other != NULL)
        world_detach(w, other);
    world_mergers_close(w, &m);
}

static void finish(void)
{
    finish_with(NULL);
}

static uint64_t out(void)
{
    const struct lane_stats s = world_stats(w, 0);
    return s.posted;
}

START_TEST(eight_go_when_there_is_room_for_eight)
{
    fill(3);
    const struct lane_stats full = world_stats(w, 0);
    const uint32_t before = posts->requests;
    world_give_some(TURN - 1);
    world_run(w, 40);
    ck_assert_uint_eq(world_stats(w, 0).doorbells, full.doorbells);
    world_give_some(1);
    world_run(w, 40);
    ck_assert_uint_eq(world_stats(w, 0).doorbells, full.doorbells + 1);
    ck_assert_uint_eq(out(), full.posted + TURN);
    ck_assert_uint_eq(posts->requests, before + TURN); /* none of which are adjacent */
    finish();
}
END_TEST

START_TEST(what_has_waited_is_merged_when_it_goes)
{
    fill(1);
    const struct lane_stats full = world_stats(w, 0);
    const uint32_t before = posts->requests;
    world_give_some(TURN);
    world_run(w, 40);
    ck_assert_uint_gt(out(), full.posted);
    ck_assert_uint_lt(posts->requests - before, (out() - full.posted) / 4);
    finish();
}
END_TEST

/* How often the lane has looked at its completions, and what it found the first time. */
static const struct fab_ops *real;
static uint32_t polls;
static int first;

static int count_poll(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    const int got = real->poll(cq, n, wc);
    if (polls++ == 0)
        first = got;
    return got;
}

/* 64 have ended when a pass begins. */
static uint32_t polls_of_a_pass(bool shared)
{
    static struct world_worker other;
    enum { OTHER = 30, OTHERS = 3 };
    fill(3);
    if (shared) /* its session has just begun, and is looked at */
        world_attach(w, &other, 0, OTHER, OTHERS);
    real = w->node[0].fab->ops;
    struct fab_ops counted = *real;
    counted.poll = count_poll;
    w->node[0].fab->ops = &counted;
    polls = 0;
    world_give();
    lane_step(w->node[0].lane, ++w->now_ns);
    w->node[0].fab->ops = real;
    const uint32_t counted_polls = polls;
    ck_assert_int_eq(first, LANE_POLLED);
    finish_with(shared ? &other : NULL);
    return counted_polls;
}

START_TEST(a_tenant_that_is_alone_has_more_than_64_completed_in_a_pass)
{
    ck_assert_uint_eq(polls_of_a_pass(false), 2);
}
END_TEST

START_TEST(of_several_tenants_no_more_than_64_are_completed_in_a_pass)
{
    ck_assert_uint_eq(polls_of_a_pass(true), 1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(eight_go_when_there_is_room_for_eight)                                                       \
    T(what_has_waited_is_merged_when_it_goes)                                                      \
    T(a_tenant_that_is_alone_has_more_than_64_completed_in_a_pass)                                 \
    T(of_several_tenants_no_more_than_64_are_completed_in_a_pass)
KEDGE_CHECK_MAIN("agent.lane.full_queue", TESTS)
