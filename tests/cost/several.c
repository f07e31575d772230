/* SPDX-License-Identifier: Apache-2.0 */
/* Several READs in a pass that are not merged, where the lane merges and where it does not: what
 * merging.sh has callgrind count.
 *
 *   SEVERAL_MERGE=yes|no
 *   SEVERAL_WHERE=random   at addresses that are not adjacent
 *                 next     each where the one before it ends, in an order that keeps them apart
 *                 relaxed  likewise, and they may be merged
 *   KEDGE_TEST_TRANSPORT=rc  instead of DC */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../unit/check_main.h"
#include "base/clock.h"
#include "world.h"
#include "world_narrow.h"
#include "world_rc.h"

enum { WARM = 16, PASSES = 500, SEVERAL = 8, TENANT = 7, BYTES = 64 };

static struct world world;
static struct world *w = &world;

/* A pass of the lane, and nothing else: callgrind counts what is done within. */
uint32_t counted_pass(struct lane *lane, uint64_t now_ns);

__attribute__((noipa)) uint32_t counted_pass(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

static uint64_t place_of(const char *where, uint32_t i)
{
    return strcmp(where, "random") == 0 ? (uint64_t)(i * 5 % SEVERAL) * 2 * BYTES
                                        : (uint64_t)i * BYTES;
}

/* From their rings to their completions. */
static void do_several(struct world_worker *k, const char *where, uint32_t vkey, bool counts)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->r + SCHEMA_CQ_OFFSET);
    for (uint32_t i = 0; i < SEVERAL; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 8192 + (uint64_t)i * BYTES, BYTES,
                                           vkey, place_of(where, i));
        if (strcmp(where, "next") != 0)
            d.flags |= SCHEMA_OP_RELAXED;
        world_post(k, &d);
    }
    w->now_ns += 1000;
    for (int pass = 0; pass < 2 && atomic_load(&k->r->cq_tail) != k->cq_head + SEVERAL; pass++)
        (void)(counts ? counted_pass : lane_step)(w->node[0].lane, w->now_ns + pass);
    ck_assert_uint_eq(atomic_load(&k->r->cq_tail), k->cq_head + SEVERAL);
    for (uint32_t i = 0; i < SEVERAL; i++)
        ck_assert_uint_eq(ring[k->cq_head++ & 63].status, IBV_WC_SUCCESS);
    atomic_store(&k->w->cq_head, k->cq_head);
}

START_TEST(several_reads)
{
    const char *merge = getenv("SEVERAL_MERGE"), *where = getenv("SEVERAL_WHERE");
    struct world_worker owner, k;
    struct schema_cqe e;
    ck_assert(merge != NULL && where != NULL);
    world_apart = strcmp(merge, "no") == 0;
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 60000 * (uint64_t)BASE_NS_PER_MS;
    world_bound_ns = BASE_NS_PER_S;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    const uint32_t vkey = world_register(w, &owner, 0, 4096, SCHEMA_RECORD_READ);
    ck_assert_uint_ne(vkey, 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    const struct schema_sq_desc first = world_rw(SCHEMA_OP_READ, 1, 4096, BYTES, vkey, 0);
    world_post(&k, &first);
    ck_assert(world_poll(w, &k, &e, 50));
    for (int i = 0; i < WARM; i++)
        do_several(&k, where, vkey, false);
    const uint64_t before = world_stats(w, 0).merged;
    for (int i = 0; i < PASSES; i++)
        do_several(&k, where, vkey, true);
    printf("READS %d MERGED %llu\n", PASSES * SEVERAL,
           (unsigned long long)(world_stats(w, 0).merged - before));
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T) T(several_reads)

KEDGE_CHECK_MAIN("cost.several", TESTS)
