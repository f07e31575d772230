/* SPDX-License-Identifier: Apache-2.0 */
/* Posts of which the lane looks once at what they have in common: each ends as it would alone, in
 * its order, wherever in a run something else stands. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, REGION = 4096, RUN = 12, MIDDLE = 5 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;

/* A worker on node 0 with two VQPs that have READ from node 1's region. */
static struct schema_sq_desc begin_as(bool by_tail)
{
    struct schema_cqe e;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    k.by_tail = by_tail;
    const uint32_t vkey = world_register(w, &owner, 0, REGION, ALL);
    ck_assert_uint_ne(vkey, 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 100, 0, 8, vkey, 0);
    for (uint16_t vqp = 0; vqp < 2; vqp++) {
        ck_assert_int_eq(world_connect(w, &k, vqp, 1), 0);
        d.vqp = vqp;
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    d.vqp = 0;
    return d;
}

static struct schema_sq_desc begin(void)
{
    return begin_as(false);
}

static void end(void)
{
    world_run(w, 10);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}

/* RUN of them, of which no two are adjacent, with `other` in the middle, all before the lane looks
 * at any. */
static void post_run(struct schema_sq_desc d, const struct schema_sq_desc *other)
{
    const uint64_t remote = d.post.remote_addr;
    for (uint32_t i = 0; i < RUN; i++) {
        d.post.wr_id = i;
        d.post.offset = (uint64_t)i * 16;
        d.post.remote_addr = remote + (uint64_t)i * 16;
        world_post(&k, i == MIDDLE && other != NULL ? other : &d);
    }
}

/* Returns enum schema_reason, which the lane alone gives. */
static uint32_t expect(uint64_t wr_id, enum ibv_wc_status status)
{
    struct schema_cqe e;
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.status, status);
    return e.vendor_err;
}

START_TEST(a_run_moves_the_bytes_of_each_and_completes_them_in_order)
{
    const struct schema_sq_desc d = begin();
    uint8_t *remote = owner.arena.addr, *local = k.arena.addr;
    const uint64_t doorbells = world_stats(w, 0).doorbells;
    for (uint32_t i = 0; i < RUN; i++)
        memset(remote + i * 16, (int)i + 1, 8);
    post_run(d, NULL);
    for (uint32_t i = 0; i < RUN; i++) {
        (void)expect(i, IBV_WC_SUCCESS);
        for (uint32_t b = 0; b < 8; b++)
            ck_assert_uint_eq(local[i * 16 + b], i + 1);
    }
    ck_assert_uint_eq(world_stats(w, 0).doorbells, doorbells + 1); /* they were one list */
    end();
}
END_TEST

static void expect_refused(int how)
{
    const struct schema_sq_desc d = begin();
    struct schema_sq_desc wrong = d;
    wrong.post.wr_id = MIDDLE;
    if (how == 0)
        wrong.post.offset = WORLD_ARENA - 7;
    else if (how == 1)
        wrong.post.arena = 5;
    else
        wrong.post.remote_addr += how == 2 ? REGION - 7 : UINT64_MAX - 3;
    post_run(d, &wrong);
    for (uint32_t i = 0; i < MIDDLE; i++)
        (void)expect(i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(expect(MIDDLE, how <= 1 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR),
                      how <= 1 ? SCHEMA_REASON_LOCAL_RANGE : SCHEMA_REASON_REMOTE_RANGE);
    for (uint32_t i = MIDDLE + 1; i < RUN; i++)
        (void)expect(i, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(k.r->ended, 0);
    end();
}

START_TEST(one_outside_of_its_memory_or_of_the_region_ends_there_and_those_behind_it_are_flushed)
{
    for (int how = 0; how < 4; how++)
        expect_refused(how);
}
END_TEST

START_TEST(another_key_in_the_middle_is_not_taken_for_the_one_before_it)
{
    const struct schema_sq_desc d = begin();
    struct schema_sq_desc wrong = d;
    wrong.post.wr_id = MIDDLE;
    wrong.post.vkey++;
    post_run(d, &wrong);
    for (uint32_t i = 0; i < MIDDLE; i++)
        (void)expect(i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(expect(MIDDLE, IBV_WC_REM_ACCESS_ERR), SCHEMA_REASON_VKEY);
    (void)expect(MIDDLE + 1, IBV_WC_WR_FLUSH_ERR);
    k.cq_head = atomic_load(&k.r->cq_tail);
    atomic_store(&k.w->cq_head, k.cq_head);
    end();
}
END_TEST

/* A WRITE where a region is only to be READ, of which the record is the same. */
START_TEST(what_the_region_does_not_allow_is_refused_behind_what_it_does)
{
    struct schema_sq_desc d = begin();
    d.post.vkey = world_register(w, &owner, REGION, REGION, SCHEMA_RECORD_READ);
    d.post.remote_addr += REGION;
    world_post(&k, &d); /* so that the region's record is there */
    (void)expect(d.post.wr_id, IBV_WC_SUCCESS);
    struct schema_sq_desc write = d;
    write.op = SCHEMA_OP_WRITE;
    write.post.wr_id = MIDDLE;
    post_run(d, &write);
    for (uint32_t i = 0; i < MIDDLE; i++)
        (void)expect(i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(expect(MIDDLE, IBV_WC_REM_ACCESS_ERR), SCHEMA_REASON_ACCESS);
    k.cq_head = atomic_load(&k.r->cq_tail);
    atomic_store(&k.w->cq_head, k.cq_head);
    end();
}
END_TEST

START_TEST(one_that_no_library_writes_ends_the_session_behind_those_that_were_posted)
{
    const struct schema_sq_desc d = begin();
    struct schema_sq_desc wrong = d;
    const uint64_t posted = world_stats(w, 0).posted;
    wrong.slots = 3;
    post_run(d, &wrong);
    lane_doorbell(w->node[0].lane, k.id);
    world_run(w, 50);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_DESCRIPTOR);
    ck_assert_uint_eq(world_stats(w, 0).posted, posted + MIDDLE);
    end();
}
END_TEST

static void expect_one_unconnected(bool of_another_life)
{
    const struct schema_sq_desc d = begin();
    struct schema_sq_desc wrong = d;
    wrong.post.wr_id = MIDDLE;
    if (of_another_life)
        wrong.vqp_gen++;
    else
        wrong.vqp = 6;
    post_run(d, &wrong);
    bool failed = of_another_life; /* of which nobody hears; else it has no order with others */
    for (uint32_t next = 0; next < RUN || !failed;) {
        struct schema_cqe e;
        if (next == MIDDLE) {
            next++;
            continue;
        }
        ck_assert(world_poll(w, &k, &e, 50));
        if (e.wr_id == MIDDLE) {
            ck_assert(!failed);
            ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_NOT_CONNECTED);
            failed = true;
            continue;
        }
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, next++);
    }
    end();
}

START_TEST(an_unknown_virtual_queue_pair_in_the_middle_is_of_no_run)
{
    expect_one_unconnected(false);
    expect_one_unconnected(true);
}
END_TEST

/* What one has announced stands behind it also where another VQP's are between. */
START_TEST(runs_of_two_queue_pairs_complete_each_in_its_order)
{
    struct schema_sq_desc d = begin();
    uint64_t next[2] = {0};
    const uint64_t remote = d.post.remote_addr;
    for (uint32_t i = 0; i < 2 * RUN; i++) {
        d.vqp = (uint16_t)(i / 3 % 2);
        d.post.wr_id = next[d.vqp]++;
        d.post.remote_addr = remote + (uint64_t)i * 16;
        world_post(&k, &d);
    }
    next[0] = next[1] = 0;
    for (uint32_t i = 0; i < 2 * RUN; i++) {
        struct schema_cqe e;
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, next[e.vqp]++);
    }
    end();
}
END_TEST

/* 64 places, and 62 completions that the worker does not take away. */
START_TEST(a_run_ends_where_the_completion_ring_has_no_more_room)
{
    const struct schema_sq_desc d = begin();
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k.r + SCHEMA_CQ_OFFSET);
    const uint32_t before = k.cq_head;
    for (int i = 0; i < 6; i++) {
        post_run(d, NULL);
        lane_doorbell(w->node[0].lane, k.id);
        world_run(w, 20);
    }
    ck_assert_uint_eq(atomic_load(&k.r->cq_tail) - before, 64);
    atomic_store(&k.w->cq_head, before + 64);
    k.cq_head = before + 64;
    lane_doorbell(w->node[0].lane, k.id);
    world_run(w, 20);
    ck_assert_uint_eq(atomic_load(&k.r->cq_tail) - before, 6 * RUN);
    for (uint32_t i = before + 64; i != before + 6 * RUN; i++)
        ck_assert_uint_eq(ring[i & 63].wr_id, (i - before) % RUN);
    k.cq_head = atomic_load(&k.r->cq_tail);
    atomic_store(&k.w->cq_head, k.cq_head);
    end();
}
END_TEST

/* A library of before phases publishes by the tail alone. The bytes of its inline data look like a
 * phase in each second round of the ring, wherever they stand. */
START_TEST(who_publishes_by_the_tail_alone_is_served_whatever_stands_behind_it)
{
    struct schema_sq_desc read = begin_as(true);
    struct schema_cqe e;
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t bytes[SCHEMA_LINE];
        struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, i, 0, sizeof bytes, read.post.vkey, 64);
        memset(bytes, 0x11 << i % 2, sizeof bytes);
        d.flags |= SCHEMA_OP_INLINE;
        d.slots = 2;
        world_post(&k, &d);
        world_post(&k, (const void *)bytes);
        if (i % 3 == 0) /* so that slots are heads and bytes in turn */
            world_post(&k, &read);
        for (uint32_t n = i % 3 == 0 ? 2 : 1; n > 0; n--) {
            ck_assert(world_poll(w, &k, &e, 50));
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        }
        ck_assert_mem_eq((const uint8_t *)owner.arena.addr + 64, bytes, sizeof bytes);
        world_run(w, i % 4); /* and the lane looks at a head where nothing is */
    }
    ck_assert_uint_eq(atomic_load(&k.r->ended), 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_run_moves_the_bytes_of_each_and_completes_them_in_order)                                   \
    T(one_outside_of_its_memory_or_of_the_region_ends_there_and_those_behind_it_are_flushed)       \
    T(another_key_in_the_middle_is_not_taken_for_the_one_before_it)                                \
    T(what_the_region_does_not_allow_is_refused_behind_what_it_does)                               \
    T(one_that_no_library_writes_ends_the_session_behind_those_that_were_posted)                   \
    T(an_unknown_virtual_queue_pair_in_the_middle_is_of_no_run)                                    \
    T(runs_of_two_queue_pairs_complete_each_in_its_order)                                          \
    T(a_run_ends_where_the_completion_ring_has_no_more_room)                                       \
    T(who_publishes_by_the_tail_alone_is_served_whatever_stands_behind_it)

KEDGE_CHECK_MAIN("agent.lane.runs", TESTS)
