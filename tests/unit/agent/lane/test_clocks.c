/* SPDX-License-Identifier: Apache-2.0 */
/* A host whose clock cannot be trusted: it is the initiator's clock that a lease relies on, so its
 * own agent posts only where hardware refuses what comes late. Node 0 is that host. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/table.h"
#include "world.h"
#include "world_fenced.h"

enum { TENANT = 7, PASSES = 20000 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, remote;

/* An owner on node 1, and a worker on node 0 that is connected to it. */
static void open_all(void)
{
    world_own_regions = true;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &remote, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
}

static uint32_t register_at(uint64_t offset, uint32_t kind)
{
    uint32_t vkey = world_register(w, &owner, offset, 4096, ALL | kind);
    ck_assert_uint_ne(vkey, 0);
    return vkey;
}

static struct schema_cqe read_one(uint32_t vkey, uint64_t at)
{
    return world_do(w, &remote, world_rw(SCHEMA_OP_READ, 1, 8192, 8, vkey, at), PASSES);
}

/* Its lane looks once in a millisecond, and is past that afterwards. */
static void doubt(bool doubted)
{
    world_clock_doubted = doubted;
    world_sleep(w, 1000000);
}

static uint64_t mr_reads(void)
{
    return world_stats(w, 0).mr_reads;
}

START_TEST(requests_go_only_to_regions_that_hardware_guards)
{
    open_all();
    const uint32_t own = register_at(0, 0), fenced = register_at(4096, SCHEMA_REG_FENCED),
                   lent = register_at(8192, SCHEMA_REG_LEASE_ONLY);
    ck_assert_uint_eq(read_one(lent, 8192).status, IBV_WC_SUCCESS);
    doubt(true);
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(read_one(fenced, 4096).status, IBV_WC_SUCCESS);
    struct schema_cqe e = read_one(lent, 8192);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_CLOCK);
    ck_assert_int_eq(world_connect(w, &remote, 0, 1), 0);
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).wrong_keys, 0); /* it is no guess of the worker's */
    world_close_empty(w, TENANT);
}
END_TEST

START_TEST(what_was_never_read_before_is_refused_too)
{
    open_all();
    const uint32_t lent = register_at(8192, SCHEMA_REG_LEASE_ONLY);
    doubt(true);
    ck_assert_uint_eq(read_one(lent, 8192).vendor_err, SCHEMA_REASON_CLOCK);
    world_close_empty(w, TENANT);
}
END_TEST

START_TEST(records_are_not_read_more_often_meanwhile)
{
    open_all();
    const uint32_t own = register_at(0, 0);
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    const uint64_t before = mr_reads(), until_ns = w->now_ns + w->node[1].config.mr_lease_ns;
    doubt(true);
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    if (w->now_ns < until_ns)
        ck_assert_uint_le(mr_reads() - before, 2);
    world_sleep(w, 2 * w->node[1].config.mr_lease_ns); /* and its lease ends as ever */
    const uint64_t then = mr_reads();
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    ck_assert_uint_gt(mr_reads(), then);
    world_close_empty(w, TENANT);
}
END_TEST

START_TEST(what_was_read_before_is_not_believed_when_the_clock_is_back)
{
    world_mr_lease_ns[1] = 4000000000;
    open_all();
    const uint32_t own = register_at(0, 0), lent = register_at(8192, SCHEMA_REG_LEASE_ONLY);
    ck_assert_uint_eq(read_one(lent, 8192).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    doubt(true);
    world_run(w, 2);
    doubt(false);
    world_run(w, 2);
    const uint64_t before = mr_reads();
    ck_assert_uint_eq(read_one(own, 0).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(mr_reads(), before); /* hardware says the same as ever */
    ck_assert_uint_eq(read_one(lent, 8192).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(mr_reads(), before + 1);
    world_mr_lease_ns[1] = 0;
    world_close_empty(w, TENANT);
}
END_TEST

/* Node 0 as the owner of what node 1 uses. */
START_TEST(an_owner_with_such_a_clock_waits_longer)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR};
    uint64_t took_ns[2];
    open_all();
    for (uint32_t doubted = 0; doubted < 2; doubted++) {
        const uint32_t vkey = world_register(w, &remote, 0, 4096, ALL | SCHEMA_REG_LEASE_ONLY);
        ck_assert_uint_ne(vkey, 0);
        doubt(doubted);
        world_run(w, 2);
        const uint64_t begin_ns = w->now_ns;
        d.dereg_mr.vkey = vkey;
        ck_assert_int_eq(world_ask(w, &remote, d, NULL), 0);
        took_ns[doubted] = w->now_ns - begin_ns;
    }
    ck_assert_uint_ge(took_ns[0], w->node[0].config.mr_lease_ns);
    ck_assert_uint_ge(took_ns[1], w->node[0].config.mr_lease_ns * 10 / 9);
    world_close_empty(w, TENANT);
}
END_TEST

/* Of the owner's table: what its record says of the region. */
static uint16_t flags_of(uint32_t vkey)
{
    const struct schema_table *t = &w->node[1].mr_table;
    struct schema_mr_record r = {.flags = 0};
    const uint8_t *at = t->slots + (size_t)schema_mr_home(&t->desc, vkey) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_mr_find(&t->desc, at, vkey, &r), 0);
    return r.flags;
}

START_TEST(a_record_says_whether_hardware_guards_its_region)
{
    open_all();
    ck_assert(flags_of(register_at(0, 0)) & SCHEMA_RECORD_BACKED);
    ck_assert(flags_of(register_at(4096, SCHEMA_REG_FENCED)) & SCHEMA_RECORD_BACKED);
    ck_assert(!(flags_of(register_at(8192, SCHEMA_REG_LEASE_ONLY)) & SCHEMA_RECORD_BACKED));
    world_close_empty(w, TENANT);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(requests_go_only_to_regions_that_hardware_guards)                                            \
    T(what_was_never_read_before_is_refused_too)                                                   \
    T(records_are_not_read_more_often_meanwhile)                                                   \
    T(what_was_read_before_is_not_believed_when_the_clock_is_back)                                 \
    T(an_owner_with_such_a_clock_waits_longer)                                                     \
    T(a_record_says_whether_hardware_guards_its_region)
KEDGE_CHECK_MAIN("agent.lane.clocks", TESTS)
