/* SPDX-License-Identifier: Apache-2.0 */
/* READs and WRITEs of a remote region, and lookups of its name, one at a time, in a world that does
 * the same each time: what instructions.sh has callgrind count. Built twice, with and without the
 * leases' rule.
 *
 *   OPERATIONS_KIND=overdue|deadlines|none  how the device of a lane is, that keeps the rule
 *   OPERATIONS_LEASE_MS                     of each node
 *   OPERATIONS_BOUND_US                     how long a request may take; an operation takes 1
 *   OPERATIONS_WINDOW_OPS                   of the device, so that requests are counted; or not set
 *   OPERATIONS_PARTS                        how many of these: READs, WRITEs, both with many in the
 *                                           ring, lookups; what callgrind counts is dumped after
 *                                           each
 *   KEDGE_TEST_TRANSPORT=rc                 instead of DC */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../unit/check_main.h"
#include "base/clock.h"
#include "schema/name_record.h"
#include "schema/table.h"
#include "world.h"
#include "world_names.h"

enum { WARM = 64, COUNTED = 2000, TENANT = 7, BYTES = 8, DEPTH = 64, ROUNDS = 100 };

static struct world world;
static struct world *w = &world;

typedef uint32_t pass_fn(struct lane *lane, uint64_t now_ns);

/* Where callgrind writes down what it has counted so far, and begins at 0 again. */
void part_ends(void);

__attribute__((noipa)) void part_ends(void)
{
}

/* A pass of the lane each, and nothing else: callgrind counts what is done within. */
pass_fn counted_read, counted_write, counted_lookup, counted_deep_read, counted_deep_write;

__attribute__((noipa)) uint32_t counted_read(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_write(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_lookup(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_read(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_write(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

/* So that a pass is an operation from the ring to its completion. */
static void operation(struct world_worker *k, const struct schema_sq_desc *d, pass_fn *pass)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->r + SCHEMA_CQ_OFFSET);
    world_post(k, d);
    w->now_ns += 1000;
    (void)pass(w->node[k->node].lane, w->now_ns);
    ck_assert_uint_eq(atomic_load(&k->r->cq_tail), k->cq_head + 1);
    ck_assert_uint_eq(ring[k->cq_head++ & 63].status, IBV_WC_SUCCESS);
    atomic_store(&k->w->cq_head, k->cq_head);
}

static void run(struct world_worker *k, uint8_t op, uint32_t vkey, pass_fn *pass)
{
    const struct schema_sq_desc d = world_rw(op, 1, 4096, BYTES, vkey, 0);
    struct schema_cqe e;
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    for (int i = 0; i < WARM; i++)
        operation(k, &d, lane_step);
    const uint64_t reads = world_stats(w, k->node).mr_reads;
    for (int i = 0; i < COUNTED; i++)
        operation(k, &d, pass);
    printf("%s %d %llu\n", op == SCHEMA_OP_READ ? "READ" : "WRITE", COUNTED,
           (unsigned long long)(world_stats(w, k->node).mr_reads - reads));
}

/* DEPTH of them are in the ring, and passes take them as they do. Returns how many that took. */
static uint32_t burst(struct world_worker *k, struct schema_sq_desc d, pass_fn *pass)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->r + SCHEMA_CQ_OFFSET);
    const uint64_t first = d.post.remote_addr;
    uint32_t passes = 0;
    for (uint32_t i = 0; i < DEPTH; i++) {
        d.post.wr_id = i;
        d.post.offset = (uint64_t)i * 2 * BYTES; /* none goes on where another ends */
        d.post.remote_addr = first + (uint64_t)i * 2 * BYTES;
        world_post(k, &d);
    }
    for (; atomic_load(&k->r->cq_tail) != k->cq_head + DEPTH; passes++) {
        ck_assert_uint_lt(passes, DEPTH);
        w->now_ns += 1000;
        (void)pass(w->node[k->node].lane, w->now_ns);
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        ck_assert_uint_eq(ring[k->cq_head & 63].status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(ring[k->cq_head++ & 63].wr_id, i);
    }
    atomic_store(&k->w->cq_head, k->cq_head);
    return passes;
}

static void run_deep(struct world_worker *k, uint8_t op, uint32_t vkey, pass_fn *pass)
{
    const struct schema_sq_desc d = world_rw(op, 1, 4096, BYTES, vkey, 0);
    uint32_t passes = 0;
    for (int i = 0; i < ROUNDS; i++)
        (void)burst(k, d, lane_step);
    for (int i = 0; i < ROUNDS; i++)
        passes += burst(k, d, pass);
    printf("DEEP_%s %d %u\n", op == SCHEMA_OP_READ ? "READ" : "WRITE", ROUNDS * DEPTH, passes);
}

/* ---- lookups */

static const char NAME[] = "perf/1";

static void publish(uint32_t vkey)
{
    struct schema_token grant = {.pool = w->node[0].config.pool,
                                 .access = SCHEMA_RECORD_READ,
                                 .vkey = vkey,
                                 .addr = 4096,
                                 .length = 4096};
    uint8_t key[16];
    memcpy(grant.gid, w->node[1].fab->caps.gid, sizeof grant.gid);
    world_name_key(w->names, TENANT, NAME, key);
    const struct schema_name_record r =
        schema_name_record_make(key, w->node[1].incarnation, TENANT, &grant);
    ck_assert_int_ge(schema_table_put(&w->names->table, &r), 0);
}

/* Likewise, to its answer. */
static void look_up(struct world_worker *k, pass_fn *pass)
{
    const struct schema_sq_desc d = {.op = SCHEMA_OP_LOOKUP,
                                     .slots = 2,
                                     .lookup = {.tag = ++k->tag, .length = (uint32_t)strlen(NAME)}};
    struct schema_sq_desc name = {.op = 0};
    memcpy(&name, NAME, strlen(NAME));
    world_post(k, &d);
    world_post(k, &name);
    w->now_ns += 1000;
    (void)pass(w->node[k->node].lane, w->now_ns);
    const struct schema_reply *r = &k->r->reply[k->tag % SCHEMA_REPLIES];
    ck_assert_uint_eq(atomic_load(&r->tag), k->tag);
    ck_assert_int_eq(r->status, 0);
}

static void run_lookups(struct world_worker *k, uint32_t vkey)
{
    publish(vkey);
    for (int i = 0; i < WARM; i++)
        look_up(k, lane_step);
    const uint64_t reads = world_stats(w, k->node).name_reads;
    for (int i = 0; i < COUNTED; i++)
        look_up(k, counted_lookup);
    printf("LOOKUP %d %llu\n", COUNTED,
           (unsigned long long)(world_stats(w, k->node).name_reads - reads));
}

static void run_parts(struct world_worker *k, uint32_t vkey, int parts)
{
    static const uint8_t op[] = {SCHEMA_OP_READ, SCHEMA_OP_WRITE};
    static pass_fn *const one[] = {counted_read, counted_write};
    static pass_fn *const deep[] = {counted_deep_read, counted_deep_write};
    for (int part = 0; part < parts; part++) {
        if (part < 2)
            run(k, op[part], vkey, one[part]);
        else if (part < 4)
            run_deep(k, op[part - 2], vkey, deep[part - 2]);
        else
            run_lookups(k, vkey);
        part_ends();
    }
}

START_TEST(reads_and_writes)
{
    const char *parts = getenv("OPERATIONS_PARTS");
    const char *kind = getenv("OPERATIONS_KIND"), *lease_ms = getenv("OPERATIONS_LEASE_MS");
    const char *bound_us = getenv("OPERATIONS_BOUND_US"), *window = getenv("OPERATIONS_WINDOW_OPS");
    struct world_worker owner, k;
    ck_assert(kind != NULL && lease_ms != NULL && bound_us != NULL && parts != NULL);
    world_deadlines = strcmp(kind, "deadlines") == 0;
    world_end_overdue = strcmp(kind, "overdue") == 0;
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = strtoull(lease_ms, NULL, 10) * BASE_NS_PER_MS;
    world_bound_ns = strtoull(bound_us, NULL, 10) * 1000;
    world_open(w);
    if (world_deadlines)
        w->now_ns = base_clock_ns();
    const struct lane_command finds = {.kind = LANE_COMMAND_WINDOW_POLICY,
                                       .window_policy = LANE_WINDOW_LADDER}; /* the default */
    for (int i = 0; i < WORLD_NODES; i++)
        ck_assert_int_eq(lane_command(w->node[i].lane, &finds), 0);
    if (window != NULL) {
        const struct lane_command counts = {
            .kind = LANE_COMMAND_WINDOW,
            .window = {.scope = LANE_WINDOW_DEVICE, .ops = strtoull(window, NULL, 10)}};
        ck_assert_int_eq(lane_command(w->node[0].lane, &counts), 0);
    }
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, 4096, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    ck_assert_uint_ne(vkey, 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    run_parts(&k, vkey, (int)strtol(parts, NULL, 10));
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T) T(reads_and_writes)

KEDGE_CHECK_MAIN("cost.operations", TESTS)
