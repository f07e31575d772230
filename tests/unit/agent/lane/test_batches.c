/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is carried out as its worker listed it, completes once, and ends as a whole however it
 * ends. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "world_batch.h"
#include "world_merge.h"

enum { PASSES = 400000, BLOCK = 512, BLOCKS = WORLD_ARENA / BLOCK, MANY = 4000, APART = 16 };

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;
static struct schema_batch_entry entry[MANY];

static void open_scene(uint32_t workers)
{
    world_mergers_open(w, &m, workers);
    for (uint32_t i = 0; i < workers; i++)
        for (uint32_t b = 0; b < WORLD_ARENA; b++)
            ((uint8_t *)m.worker[i].arena.addr)[b] = (uint8_t)(b / BLOCK * 3 + i + 1);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_watch_end();
    world_mergers_close(w, &m);
}

/* Of 8 bytes, so that none goes on where another one ends. */
static struct world_batch make_scattered(uint32_t worker, uint8_t op, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        entry[i] = world_entry(i * 8 % WORLD_ARENA, 8, m.vkey, i * APART % WORLD_ARENA);
    return world_batch_make(w, &m.worker[worker], op, entry, count);
}

static struct schema_cqe take(uint32_t worker, uint64_t id)
{
    const struct schema_cqe e = world_done(w, &m.worker[worker], PASSES);
    ck_assert_uint_eq(e.wr_id, id);
    return e;
}

static void expect_good(const struct world_batch *b, uint64_t id, uint32_t count, uint32_t times)
{
    const struct schema_cqe e = world_done(w, b->worker, PASSES);
    ck_assert_uint_eq(e.wr_id, id);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, SCHEMA_WC_BATCH);
    ck_assert_uint_eq(world_batch_shown(b)->done, count);
    ck_assert_uint_eq(world_batch_shown(b)->failed, SCHEMA_BATCH_NONE);
    ck_assert_uint_eq(world_batch_shown(b)->why, 0);
    ck_assert_uint_eq(world_batch_shown(b)->begun, times);
    ck_assert_uint_eq(world_batch_shown(b)->ended, times);
}

static void post_one(uint32_t worker, struct schema_sq_desc d)
{
    world_post(&m.worker[worker], &d);
}

/* What it has out goes, until something is over and much is not. */
static void run_into_the_middle(const struct world_batch *b)
{
    for (int i = 0; i < PASSES && world_batch_shown(b)->done == 0; i++)
        world_run(w, 1);
    ck_assert_uint_gt(world_batch_shown(b)->done, 0);
    ck_assert_uint_lt(world_batch_shown(b)->done, MANY / 2);
    ck_assert_uint_eq(world_batch_shown(b)->ended, 0);
}

START_TEST(it_is_carried_out_as_often_as_it_is_posted)
{
    struct schema_cqe none;
    open_scene(1);
    for (uint32_t i = 0; i < BLOCKS; i++) /* backwards: nothing is adjacent */
        entry[i] =
            world_entry((uint64_t)i * BLOCK, BLOCK, m.vkey, (uint64_t)(BLOCKS - 1 - i) * BLOCK);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, BLOCKS);
    for (uint32_t times = 1; times <= 3; times++) {
        memset(m.owner.arena.addr, 0, WORLD_ARENA);
        world_batch_post(w, &b, 70 + times, 0, 0);
        expect_good(&b, 70 + times, BLOCKS, times);
        for (uint32_t i = 0; i < WORLD_ARENA; i++)
            ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i],
                              (uint8_t)((BLOCKS - 1 - i / BLOCK) * 3 + 1));
    }
    ck_assert(!world_poll(w, &m.worker[0], &none, 10));
    ck_assert_uint_eq(world_stats(w, 0).batches, 3);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    close_scene();
}
END_TEST

START_TEST(what_is_adjacent_is_one_request_of_the_device)
{
    open_scene(1);
    for (uint32_t i = 0; i < BLOCKS; i++)
        entry[i] = world_entry((uint64_t)i * BLOCK, BLOCK, m.vkey, (uint64_t)i * BLOCK);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, BLOCKS);
    const uint32_t before = posts->requests;
    world_batch_post(w, &b, 1, 0, 0);
    expect_good(&b, 1, BLOCKS, 1);
    ck_assert_uint_le(posts->requests - before, 4);
    for (uint32_t i = 0; i < WORLD_ARENA; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i], (uint8_t)(i / BLOCK * 3 + 1));
    close_scene();
}
END_TEST

/* Adjacent at the peer alone: a few pieces in one request. */
START_TEST(reads_to_places_apart_are_gathered)
{
    enum { COUNT = 64 };
    open_scene(1);
    for (uint32_t i = 0; i < WORLD_ARENA; i++)
        ((uint8_t *)m.owner.arena.addr)[i] = (uint8_t)(i / BLOCK + 100);
    for (uint32_t i = 0; i < COUNT; i++)
        entry[i] = world_entry((uint64_t)(i * 2 + 1) * BLOCK, BLOCK, m.vkey, (uint64_t)i * BLOCK);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_READ, entry, COUNT);
    const uint32_t before = posts->requests;
    world_batch_post(w, &b, 1, 0, 0);
    expect_good(&b, 1, COUNT, 1);
    ck_assert_uint_le((posts->requests - before) * 4, COUNT);
    const uint8_t *arena = m.worker[0].arena.addr;
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(arena[(i * 2 + 1) * BLOCK], (uint8_t)(i + 100));
        ck_assert_uint_eq(arena[(i * 2 + 2) * BLOCK - 1], (uint8_t)(i + 100));
        ck_assert_uint_eq(arena[i * 2 * BLOCK], (uint8_t)(i * 2 * 3 + 1));
    }
    close_scene();
}
END_TEST

START_TEST(it_completes_between_what_is_before_and_behind_it)
{
    open_scene(1);
    const struct world_batch b = make_scattered(0, SCHEMA_OP_WRITE, 1000);
    post_one(0, world_rw(SCHEMA_OP_WRITE, 1, 0, 8, m.vkey, 0));
    world_batch_post(w, &b, 2, 0, 0);
    post_one(0, world_rw(SCHEMA_OP_READ, 3, 1024, 8, m.vkey, 0));
    world_batch_post(w, &b, 4, 0, 0); /* it waits for its turn, and then it is still posted */
    ck_assert_uint_eq(take(0, 1).status, IBV_WC_SUCCESS);
    expect_good(&b, 2, 1000, 1);
    ck_assert_uint_eq(take(0, 3).status, IBV_WC_SUCCESS);
    const struct schema_cqe e = take(0, 4);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_BATCH);
    close_scene();
}
END_TEST

/* Returns the first that is wrong. */
static uint32_t refuse(uint8_t op, uint32_t count, uint32_t filled, uint32_t reason)
{
    struct world_batch b;
    struct schema_reply reply;
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], count, &b), 0);
    world_batch_fill(w, &b, op, entry, filled);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, &reply), -EINVAL);
    ck_assert_uint_eq(reply.reason, reason);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_FREE, NULL), -ENOENT);
    return (uint32_t)reply.value[0];
}

START_TEST(what_is_no_request_is_found_when_it_is_prepared)
{
    enum { COUNT = 40, BAD = 29 };
    struct world_batch b;
    open_scene(1);
    for (uint32_t i = 0; i < COUNT; i++)
        entry[i] = world_entry(0, 8, m.vkey, 0);
    const struct schema_batch_entry good = entry[0];
    ck_assert_uint_eq(refuse(SCHEMA_OP_CAS, COUNT, COUNT, SCHEMA_REASON_DESCRIPTOR), 0);
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT, COUNT - 1, SCHEMA_REASON_BATCH), COUNT - 1);
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT - 1, COUNT, SCHEMA_REASON_BATCH), COUNT - 1);
    entry[BAD].length = 0;
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT, COUNT, SCHEMA_REASON_DESCRIPTOR), BAD);
    entry[BAD].length = WORLD_ARENA + 1;
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT, COUNT, SCHEMA_REASON_LOCAL_RANGE), BAD);
    entry[BAD] = good;
    entry[BAD].offset = WORLD_ARENA - 7;
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT, COUNT, SCHEMA_REASON_LOCAL_RANGE), BAD);
    entry[BAD].offset = UINT64_MAX - 3;
    ck_assert_uint_eq(refuse(SCHEMA_OP_READ, COUNT, COUNT, SCHEMA_REASON_LOCAL_RANGE), BAD);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 0, &b), -EINVAL);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], SCHEMA_BATCH_MOST + 1, &b), -EINVAL);
    ck_assert_uint_eq(posts->requests, 0);
    close_scene();
}
END_TEST

/* What is behind the first that fails is not carried out, and the VQP is in error. */
START_TEST(one_that_the_peer_does_not_permit_ends_it)
{
    enum { COUNT = 600, BAD = 333 };
    open_scene(1);
    memset(m.owner.arena.addr, 0, WORLD_ARENA);
    for (uint32_t i = 0; i < COUNT; i++)
        entry[i] = world_entry(BLOCK, 8, m.vkey, i * APART);
    entry[BAD].remote_addr += WORLD_ARENA;
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, COUNT);
    world_batch_post(w, &b, 1, 0, 0);
    post_one(0, world_rw(SCHEMA_OP_READ, 2, 0, 8, m.vkey, 0));
    const struct schema_cqe e = take(0, 1);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_REMOTE_RANGE);
    ck_assert_uint_eq(world_batch_shown(&b)->done, BAD);
    ck_assert_uint_eq(world_batch_shown(&b)->failed, BAD);
    ck_assert_uint_eq(world_batch_shown(&b)->why,
                      IBV_WC_REM_ACCESS_ERR | SCHEMA_REASON_REMOTE_RANGE << 8);
    ck_assert_uint_eq(take(0, 2).status, IBV_WC_WR_FLUSH_ERR);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i * APART], i < BAD ? 4 : 0);
    ck_assert_int_eq(world_connect(w, &m.worker[0], 0, 1), 0); /* and it may be posted again */
    world_batch_post(w, &b, 3, 0, 0);
    ck_assert_uint_eq(take(0, 3).status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 2);
    close_scene();
}
END_TEST

START_TEST(a_region_that_is_withdrawn_meanwhile_ends_it)
{
    open_scene(1);
    const struct world_batch b = make_scattered(0, SCHEMA_OP_READ, MANY);
    world_batch_post(w, &b, 1, 0, 0);
    run_into_the_middle(&b);
    const struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = m.vkey}};
    struct schema_sq_desc dereg = d;
    dereg.slots = 1;
    dereg.dereg_mr.tag = ++m.owner.tag;
    world_post(&m.owner, &dereg);
    lane_doorbell(w->node[1].lane, m.owner.id);
    world_run(w, 2);
    world_sleep(w, w->node[1].config.mr_lease_ns * 2);
    const struct schema_cqe e = take(0, 1);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_lt(world_batch_shown(&b)->done, MANY);
    ck_assert_uint_eq(world_batch_shown(&b)->failed, world_batch_shown(&b)->done);
    close_scene();
}
END_TEST

START_TEST(a_batch_that_is_cancelled_ends_and_its_queue_pair_goes_on)
{
    open_scene(1);
    const struct world_batch b = make_scattered(0, SCHEMA_OP_READ, MANY);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_CANCEL, NULL), 0); /* of nothing */
    world_batch_post(w, &b, 1, 0, 0);
    post_one(0, world_rw(SCHEMA_OP_READ, 2, 0, 8, m.vkey, 0));
    run_into_the_middle(&b);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_FREE, NULL), -EBUSY);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_CANCEL, NULL), 0);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_CANCEL, NULL), 0);
    const struct schema_cqe e = take(0, 1);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_CANCELLED);
    ck_assert_uint_lt(world_batch_shown(&b)->done, MANY / 2);
    ck_assert_uint_eq(world_batch_shown(&b)->failed, world_batch_shown(&b)->done);
    ck_assert_uint_eq(take(0, 2).status, IBV_WC_SUCCESS);
    world_batch_post(w, &b, 3, 0, 0);
    expect_good(&b, 3, MANY, 2);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_FREE, NULL), 0);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_FREE, NULL), -ENOENT);
    close_scene();
}
END_TEST

/* One goes, to hear whether the peer lives; the others wait for that. */
START_TEST(a_batch_to_a_silent_peer_ends_when_that_is_over)
{
    enum { COUNT = 300 };
    struct world_worker owner, k;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        const uint32_t key = world_pair(w, &owner, &k, 1, SCHEMA_RECORD_READ);
        for (uint32_t i = 0; i < COUNT; i++)
            entry[i] = world_entry(0, 8, key, i * APART % 4096);
        const struct world_batch b = world_batch_make(w, &k, SCHEMA_OP_READ, entry, COUNT);
        world_batch_post(w, &b, 1, 0, 0);
        ck_assert_uint_eq(world_done(w, &k, PASSES).status, IBV_WC_SUCCESS);
        world_silence_node(w, 1);
        world_batch_post(w, &b, 2, 0, 0);
        world_run(w, 20);
        if (cancelled)
            ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_CANCEL, NULL), 0);
        const struct schema_cqe e = world_done(w, &k, 10 * PASSES);
        ck_assert_uint_eq(e.wr_id, 2);
        ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
        ck_assert_uint_eq(world_batch_shown(&b)->done, 0);
        ck_assert_uint_eq(world_batch_shown(&b)->failed, 0);
        ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
        world_unpair(w, &owner, &k);
    }
}
END_TEST

START_TEST(a_queue_pair_that_is_destroyed_leaves_it_to_be_posted_again)
{
    struct schema_cqe none;
    open_scene(1);
    const struct world_batch b = make_scattered(0, SCHEMA_OP_WRITE, MANY);
    world_batch_post(w, &b, 1, 0, 0);
    run_into_the_middle(&b);
    const struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1};
    post_one(0, destroy);
    lane_doorbell(w->node[0].lane, 0);
    for (int i = 0; i < PASSES && world_batch_shown(&b)->ended == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 1);
    ck_assert(!world_poll(w, &m.worker[0], &none, 10));
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_int_eq(world_connect(w, &m.worker[0], 1, 1), 0);
    world_batch_post(w, &b, 2, 1, 0);
    expect_good(&b, 2, MANY, 2);
    close_scene();
}
END_TEST

START_TEST(a_session_that_ends_takes_its_batches_with_it)
{
    struct world_batch b;
    open_scene(2);
    const struct world_batch running = make_scattered(0, SCHEMA_OP_WRITE, MANY);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 9000, &b), 0);
    ck_assert_int_eq(world_batch_new(w, &m.worker[1], 9000, &b), -EDQUOT);
    ck_assert_uint_eq(world_stats(w, 0).batches_refused, 1);
    world_batch_post(w, &running, 1, 0, 0);
    run_into_the_middle(&running);
    world_detach(w, &m.worker[0]);
    m.worker[0].memory = NULL;
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_int_eq(world_batch_new(w, &m.worker[1], 9000, &b), 0);
    close_scene();
}
END_TEST

/* One has half of what there is for batches, and leaves others something, whatever it asks for. */
START_TEST(a_tenant_does_not_take_all_of_the_memory)
{
    enum { OTHER = 2, EACH = 512 };
    struct world_worker other;
    struct world_batch b;
    uint32_t had = 0, others = 0;
    open_scene(2);
    world_attach(w, &other, 0, 30, OTHER);
    for (uint32_t i = 0; i < 2 * SCHEMA_BATCHES; i++)
        had += world_batch_new(w, &m.worker[i % 2], EACH, &b) == 0;
    for (uint32_t i = 0; i < SCHEMA_BATCHES; i++)
        others += world_batch_new(w, &other, EACH, &b) == 0;
    const uint32_t slabs = (uint32_t)(world_batch_bytes / 16384);
    ck_assert_uint_ge(had, slabs / 3 / 2 - 1); /* of three each, or less */
    ck_assert_uint_le(had * 2, slabs / 2);
    ck_assert_uint_ge(others * 3, had);
    world_detach(w, &other);
    close_scene();
}
END_TEST

START_TEST(a_session_has_so_many_batches)
{
    struct world_batch b = {.number = 0};
    world_batch_bytes = 8 * 1024 * 1024;
    open_scene(1);
    for (uint32_t i = 0; i < SCHEMA_BATCHES; i++)
        ck_assert_int_eq(world_batch_new(w, &m.worker[0], 1, &b), 0);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 1, &b), -EDQUOT);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_FREE, NULL), 0);
    const uint32_t gen = b.gen;
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 1, &b), 0);
    ck_assert_uint_ne(b.gen, gen);
    close_scene();
    world_batch_bytes = 1024 * 1024;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_carried_out_as_often_as_it_is_posted)                                                  \
    T(what_is_adjacent_is_one_request_of_the_device)                                               \
    T(reads_to_places_apart_are_gathered)                                                          \
    T(it_completes_between_what_is_before_and_behind_it)                                           \
    T(what_is_no_request_is_found_when_it_is_prepared)                                             \
    T(one_that_the_peer_does_not_permit_ends_it)                                                   \
    T(a_region_that_is_withdrawn_meanwhile_ends_it)                                                \
    T(a_batch_that_is_cancelled_ends_and_its_queue_pair_goes_on)                                   \
    T(a_batch_to_a_silent_peer_ends_when_that_is_over)                                             \
    T(a_queue_pair_that_is_destroyed_leaves_it_to_be_posted_again)                                 \
    T(a_session_that_ends_takes_its_batches_with_it)                                               \
    T(a_tenant_does_not_take_all_of_the_memory)                                                    \
    T(a_session_has_so_many_batches)
KEDGE_CHECK_MAIN("agent.lane.batches", TESTS)
