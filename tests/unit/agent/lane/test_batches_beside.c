/* SPDX-License-Identifier: Apache-2.0 */
/* Batches beside others: what these wait for, what breaks under a batch, and workers that write
 * into their rings what no library would. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "session_state.h"
#include "world_batch.h"
#include "world_merge.h"

enum { PASSES = 400000, MANY = 4000, APART = 16, OTHER = 2, OTHERS_ID = 30, BLOCK = 512 };

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;
static struct schema_batch_entry entry[MANY];

static void open_scene(void)
{
    world_mergers_open(w, &m, 1);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_watch_end();
    world_mergers_close(w, &m);
}

static struct world_batch make(uint8_t op, uint32_t count, uint32_t length, uint32_t apart)
{
    for (uint32_t i = 0; i < count; i++)
        entry[i] = world_entry(i * length % (WORLD_ARENA / 2), length, m.vkey,
                               i * apart % (WORLD_ARENA / 2));
    return world_batch_make(w, &m.worker[0], op, entry, count);
}

/* A worker of another tenant, that READs one after the other. */
static uint32_t open_other(struct world_worker *owner, struct world_worker *other)
{
    world_attach(w, owner, 1, OTHERS_ID, OTHER);
    world_attach(w, other, 0, OTHERS_ID, OTHER);
    const uint32_t key = world_register(w, owner, 0, 4096, SCHEMA_RECORD_READ);
    ck_assert_int_eq(world_connect(w, other, 0, 1), 0);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_uint_eq(world_do(w, other, d, PASSES).status, IBV_WC_SUCCESS);
    return key;
}

/* What the device was asked for between a READ's post and its completion, and in how many passes.
 */
struct beside {
    uint64_t passes, requests;
};

static struct beside read_beside(struct world_worker *other, uint32_t key)
{
    const struct lane_stats before = world_stats(w, 0);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_uint_eq(world_do(w, other, d, PASSES).status, IBV_WC_SUCCESS);
    const struct lane_stats after = world_stats(w, 0);
    return (struct beside){.passes = after.passes - before.passes,
                           .requests = after.work_requests - before.work_requests};
}

START_TEST(a_sparse_tenant_waits_for_a_request_or_two_of_a_batch)
{
    enum { READS = 200 };
    struct world_worker owner, other;
    uint64_t most_passes = 0, most_requests = 0, alone = 0;
    open_scene();
    const uint32_t key = open_other(&owner, &other);
    const struct world_batch b = make(SCHEMA_OP_WRITE, MANY, 8, APART);
    for (int i = 0; i < READS; i++) {
        const uint64_t passes = read_beside(&other, key).passes;
        alone = passes > alone ? passes : alone;
    }
    world_batch_post(w, &b, 9, 0, 0);
    for (int i = 0; i < 10; i++)
        world_run(w, 1);
    for (int i = 0; i < READS; i++) {
        const struct beside now = read_beside(&other, key);
        most_passes = now.passes > most_passes ? now.passes : most_passes;
        most_requests = now.requests > most_requests ? now.requests : most_requests;
        world_run(w, 1); /* what it does with it */
    }
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 0); /* it was beside it all the time */
    ck_assert_uint_gt(world_batch_shown(&b)->done, 0);
    ck_assert_msg(most_passes <= alone + 2, "%lu passes", (unsigned long)most_passes);
    ck_assert_msg(most_requests <= 4, "%lu requests", (unsigned long)most_requests);
    ck_assert_uint_eq(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    world_detach(w, &other);
    world_detach(w, &owner);
    close_scene();
}
END_TEST

/* Two tenants with as much to do share the lane, of whom one has it in a batch. */
START_TEST(a_batch_has_its_tenants_part_and_no_more)
{
    enum { EACH = 24, ROUNDS = 60 };
    struct world_worker owner, other;
    uint64_t others = 0;
    open_scene();
    const uint32_t key = open_other(&owner, &other);
    const struct world_batch b = make(SCHEMA_OP_WRITE, MANY, 8, APART);
    world_batch_post(w, &b, 9, 0, 0);
    for (uint32_t out = 0; world_batch_shown(&b)->ended == 0 && others < 100000;) {
        struct schema_cqe e;
        for (; out < EACH; out++) {
            const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
            world_post(&other, &d);
        }
        if (world_poll(w, &other, &e, 20)) {
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            others++;
            out--;
        }
    }
    ck_assert_uint_eq(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    ck_assert_msg(others >= MANY / 3, "%lu of others beside %d of the batch", (unsigned long)others,
                  MANY);
    for (struct schema_cqe e; world_stats(w, 0).inflight > 0;)
        (void)world_poll(w, &other, &e, 1);
    world_detach(w, &other);
    world_detach(w, &owner);
    close_scene();
}
END_TEST

/* Of how many descriptors it has made pieces. */
static uint32_t count_made(const struct world_batch *b)
{
    const struct session *s = &w->node[0].lane->sessions[b->worker->id];
    return s->memory->batches[b->number].at.index;
}

/* So short that thousands are a few pieces: what takes a lane's time is that it looks at each. */
START_TEST(of_the_shortest_descriptors_a_pass_looks_at_a_few)
{
    enum { LOOKS = 64 + 64 /* the last piece is whole */ };
    struct world_worker owner, other;
    uint32_t most = 0;
    bool out = false;
    open_scene();
    const uint32_t key = open_other(&owner, &other);
    const struct world_batch b = make(SCHEMA_OP_WRITE, MANY, 1, 1);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_uint_eq(world_do(w, &other, d, PASSES).status, IBV_WC_SUCCESS);
    world_batch_post(w, &b, 9, 0, 0);
    while (world_batch_shown(&b)->ended == 0) {
        const uint32_t before = world_batch_shown(&b)->begun > 0 ? count_made(&b) : 0;
        struct schema_cqe e;
        if (!out)
            world_post(&other, &d);
        out = !world_poll(w, &other, &e, 1);
        const uint32_t made = count_made(&b) - before;
        most = world_batch_shown(&b)->begun > 0 && made > most ? made : most;
    }
    ck_assert_msg(most > 0 && most <= LOOKS, "%u descriptors in a pass", most);
    while (out)
        out = world_done(w, &other, PASSES).status != IBV_WC_SUCCESS;
    ck_assert_uint_eq(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(&b)->done, MANY);
    world_detach(w, &other);
    world_detach(w, &owner);
    close_scene();
}
END_TEST

/* READs go again, and the batch is whole. */
START_TEST(a_queue_pair_that_breaks_is_none_of_a_batch_of_reads)
{
    open_scene();
    memset(m.owner.arena.addr, 0x5a, WORLD_ARENA);
    const struct world_batch b = make(SCHEMA_OP_READ, MANY, 8, APART);
    world_batch_post(w, &b, 9, 0, 0);
    for (int breaks = 0; breaks < 4 && !w->rc; breaks++) {
        const uint32_t done = world_batch_shown(&b)->done;
        for (int i = 0; i < PASSES && world_batch_shown(&b)->done == done; i++)
            world_run(w, 1);
        for (uint32_t i = 0; i + 1 < w->node[0].res.dcis; i++) {
            world_break(w, 0, w->node[0].res.dci[i]);
            world_fatal(w, 0, w->node[0].res.dci[i]);
        }
        world_run(w, 50);
    }
    ck_assert_uint_eq(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(&b)->done, MANY);
    for (uint32_t i = 0; i < WORLD_ARENA / 4; i++)
        ck_assert_uint_eq(((uint8_t *)m.worker[0].arena.addr)[i], i < MANY * 8 ? 0x5a : 0);
    close_scene();
}
END_TEST

/* An operator's. */
static void limit_device(uint64_t ops)
{
    const struct lane_command set = {.kind = LANE_COMMAND_WINDOW,
                                     .window = {.scope = LANE_WINDOW_DEVICE, .ops = ops}};
    ck_assert_int_eq(lane_command(w->node[0].lane, &set), 0);
}

/* What a device has no room for is out for no pass more: what is set meanwhile counts what is. */
START_TEST(what_the_device_does_not_take_of_a_batch_counts_at_no_window_that_comes_or_goes)
{
    enum { WIDE = 100000 };
    struct lane_window device;
    open_scene();
    const struct world_batch b = make(SCHEMA_OP_WRITE, MANY, 8, APART);
    posts->refuse_every = 2;
    world_batch_post(w, &b, 9, 0, 0);
    for (int i = 0; i < PASSES && world_batch_shown(&b)->ended == 0; i++) {
        limit_device(i % 2 == 0 ? WIDE : 0);
        world_run(w, 1);
    }
    ck_assert_uint_gt(posts->doorbells, 20);
    ck_assert_uint_eq(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(&b)->done, MANY);
    limit_device(WIDE);
    world_run(w, 10);
    ck_assert(lane_window(w->node[0].lane, LANE_WINDOW_DEVICE, 0, &device));
    ck_assert_uint_eq(device.ops, 0);
    ck_assert_uint_eq(device.bytes, 0);
    close_scene();
}
END_TEST

/* ---- hostile */

static uint32_t next_random(void)
{
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* The last that were made as they should be. */
static struct world_batch known[4];

static void make_known(void)
{
    struct world_batch *b = &known[next_random() % 4];
    struct schema_batch_entry some[SCHEMA_BATCH_FILLED];
    const uint32_t count = 1 + next_random() % SCHEMA_BATCH_FILLED;
    if (world_batch_ask(w, b, SCHEMA_OP_BATCH_FREE, NULL) == -EBUSY)
        return;
    b->worker = &m.worker[0];
    for (uint32_t i = 0; i < count; i++)
        some[i] = world_entry(i * 8, 8, m.vkey, next_random() % 4000 * 8);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], count, b), 0);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], count << 17, b), -EINVAL);
    world_batch_fill(w, b, SCHEMA_OP_READ, some, count);
    if (next_random() % 4 != 0)
        (void)world_batch_ask(w, b, SCHEMA_OP_BATCH_READY, NULL);
}

/* Any operation of batches, with numbers that are now and then right. */
static struct schema_sq_desc any_descriptor(void)
{
    static const uint8_t ops[] = {SCHEMA_OP_BATCH,        SCHEMA_OP_BATCH,
                                  SCHEMA_OP_BATCH,        SCHEMA_OP_BATCH_READY,
                                  SCHEMA_OP_BATCH_CANCEL, SCHEMA_OP_BATCH_FREE};
    const uint8_t op = ops[next_random() % sizeof ops];
    const struct world_batch *b = &known[next_random() % 4];
    const uint32_t number = next_random() % 8 == 0 ? next_random() : b->number;
    const uint32_t gen = next_random() % 8 == 0 ? next_random() : b->gen;
    struct schema_sq_desc d = {.op = op, .slots = 1, .vqp_gen = next_random() % 8 == 0};
    if (op == SCHEMA_OP_BATCH)
        d.batch.post.number = number, d.batch.post.gen = gen, d.batch.post.wr_id = next_random();
    else
        d.batch.ask.number = number, d.batch.ask.gen = gen,
        d.batch.ask.tag = 1u << 31 | next_random();
    return d;
}

static void post_fill(void)
{
    struct schema_batch_entry some[SCHEMA_BATCH_FILLED];
    for (int i = 0; i < SCHEMA_BATCH_FILLED; i++)
        some[i] = world_entry(next_random() % WORLD_ARENA, 1 + next_random() % 64,
                              next_random() % 16 == 0 ? next_random() : m.vkey,
                              next_random() % WORLD_ARENA);
    const struct world_batch b = {.worker = &m.worker[0],
                                  .number = next_random() % 4,
                                  .gen = known[next_random() % 4].gen + next_random() % 2};
    world_batch_fill(w, &b, SCHEMA_OP_READ + next_random() % 2, some,
                     1 + next_random() % SCHEMA_BATCH_FILLED);
}

START_TEST(whatever_a_worker_asks_of_batches_harms_nobody)
{
    enum { ROUNDS = 20000 };
    struct world_worker owner, other;
    struct schema_cqe e;
    open_scene();
    const uint32_t key = open_other(&owner, &other);
    for (int i = 0; i < 4; i++)
        known[i] = (struct world_batch){.worker = &m.worker[0]};
    for (int i = 0; i < ROUNDS; i++) {
        const struct schema_sq_desc d = any_descriptor();
        world_post(&m.worker[0], &d);
        if (next_random() % 4 == 0)
            post_fill();
        if (next_random() % 8 == 0)
            make_known();
        lane_doorbell(w->node[0].lane, 0);
        while (world_poll(w, &m.worker[0], &e, 4))
            ;
        if (i % 64 == 0) {
            const struct schema_sq_desc bind = {.op = SCHEMA_OP_DESTROY, .slots = 1};
            world_post(&m.worker[0], &bind);
            (void)world_connect(w, &m.worker[0], 0, 1);
            (void)read_beside(&other, key);
        }
        ck_assert_uint_eq(m.worker[0].r->ended, 0);
    }
    ck_assert_uint_gt(world_stats(w, 0).batches, ROUNDS / 100);
    for (int i = 0; i < PASSES && world_stats(w, 0).inflight > 0; i++)
        world_run(w, 1);
    while (world_poll(w, &m.worker[0], &e, 4))
        ;
    world_detach(w, &other);
    world_detach(w, &owner);
    close_scene();
}
END_TEST

START_TEST(more_entries_than_one_message_has_end_the_session)
{
    open_scene();
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_BATCH_FILL, .slots = 7, .batch.fill = {.count = SCHEMA_BATCH_FILLED + 1}};
    for (int i = 0; i < 7; i++)
        world_post(&m.worker[0], &d);
    lane_doorbell(w->node[0].lane, 0);
    world_run(w, 10);
    ck_assert_uint_eq(m.worker[0].r->ended, SCHEMA_REASON_DESCRIPTOR);
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_sparse_tenant_waits_for_a_request_or_two_of_a_batch)                                       \
    T(a_batch_has_its_tenants_part_and_no_more)                                                    \
    T(of_the_shortest_descriptors_a_pass_looks_at_a_few)                                           \
    T(a_queue_pair_that_breaks_is_none_of_a_batch_of_reads)                                        \
    T(what_the_device_does_not_take_of_a_batch_counts_at_no_window_that_comes_or_goes)             \
    T(whatever_a_worker_asks_of_batches_harms_nobody)                                              \
    T(more_entries_than_one_message_has_end_the_session)
KEDGE_CHECK_MAIN("agent.lane.batches_beside", TESTS)
