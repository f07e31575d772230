/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has made of the device and gives back while workers run: the device here never ends
 * anything before the test says so, and whoever waits for that fails. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "device.h"
#include "device_objects.h"
#include "fabric/provider.h"
#include "pool.h"

enum { OUT = 8 };

static struct {
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd;
    struct fab_dct dct[2];
    struct fab_mr mr;
    struct world world;
    struct world_ops world_ops;
    struct fab_ctl *out[OUT]; /* destructions that are under way */
    uint32_t outs, made;
} w;

static int draw_random(struct world *world, void *bytes, size_t n)
{
    (void)world;
    memset(bytes, 5, n);
    return 0;
}

static uint64_t read_clock(struct world *world)
{
    (void)world;
    return 1;
}

static struct fab_ctl *created; /* is being */

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    if (ctl->kind == FAB_CREATE_DCT || ctl->kind == FAB_REG_MR) {
        ck_assert_ptr_null(created);
        created = ctl;
        return;
    }
    ck_assert(ctl->kind == FAB_DESTROY_DCT || ctl->kind == FAB_DEREG_MR);
    ck_assert_uint_lt(w.outs, OUT);
    w.out[w.outs++] = ctl;
}

static int run(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void end_creation(int status)
{
    struct fab_ctl *ctl = created;
    ck_assert_ptr_nonnull(ctl);
    created = NULL;
    ctl->status = status;
    if (ctl->kind == FAB_CREATE_DCT)
        ctl->dct.x = &w.dct[w.made++ % 2];
    else
        ctl->mr.x = &w.mr;
    ctl->done(ctl);
}

static void wait_for(struct fab *fab)
{
    (void)fab;
    ck_abort_msg("the control thread waits for the device");
}

static void end_one(void)
{
    struct fab_ctl *ctl = w.out[--w.outs];
    ctl->status = 0;
    ctl->done(ctl);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit, .run = run, .wait = wait_for};
    w.fab = (struct fab){.ops = &w.ops};
    w.pd = (struct fab_pd){.fab = &w.fab};
    w.world_ops.random = draw_random;
    w.world_ops.now_ns = read_clock;
    w.world.ops = &w.world_ops;
    w.agent.world = w.pool.world = &w.world;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.device.fab = &w.fab;
    w.pool.device.pd = &w.pd;
    w.pool.device.dct = &w.dct[w.made++];
    created = NULL;
}

/* As address_change.c does: it hears of the end of a step that is not the last. */
static int begin_step(enum world_device_step step)
{
    w.pool.readdress.target.out = w.pool.readdress.table.out = true;
    return agentd_device_do(&w.world, step, &w.pool, NULL);
}

static uint32_t steps_out(void)
{
    return w.pool.readdress.target.out + w.pool.readdress.table.out;
}

static int do_step(enum world_device_step step)
{
    return agentd_device_do(&w.world, step, &w.pool, NULL);
}

START_TEST(a_target_that_is_drained_for_seconds_holds_nobody_up_when_another_takes_its_place)
{
    begin();
    w.dct[0].dc_key = 0xab; /* metaservers know this process by it */
    ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), 0);
    ck_assert_uint_eq(created->dct.dc_key, 0xab);
    ck_assert_ptr_eq(w.pool.device.dct, &w.dct[0]);
    ck_assert_uint_eq(w.pool.fab_ops, 1);
    ck_assert_uint_eq(steps_out(), 2);
    end_creation(0);
    ck_assert_uint_eq(steps_out(), 1);
    ck_assert_ptr_eq(w.pool.device.dct, &w.dct[1]);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_ptr_eq(w.out[0]->dct.x, &w.dct[0]);
    ck_assert_uint_eq(w.pool.fab_ops, 1); /* a pool's end waits for it */
    end_one();
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

/* Peers that reach it do so until they have heard of the present one. */
START_TEST(a_target_that_may_be_in_order_stays_until_it_is_told_to_go)
{
    begin();
    w.pool.readdress.keeps = true;
    ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), 0);
    end_creation(0);
    ck_assert_ptr_eq(w.pool.device.dct, &w.dct[1]);
    ck_assert_ptr_eq(w.pool.device.dct_before, &w.dct[0]);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_int_eq(do_step(WORLD_DEVICE_FORMER), 0);
    ck_assert_ptr_null(w.pool.device.dct_before);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_ptr_eq(w.out[0]->dct.x, &w.dct[0]);
    ck_assert_int_eq(do_step(WORLD_DEVICE_FORMER), 0); /* there is none */
    ck_assert_uint_eq(w.outs, 1);
    end_one();
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

/* Another address, or its pool's end. */
START_TEST(a_target_that_stays_goes_with_the_next_one_that_goes)
{
    for (int i = 0; i < 2; i++) {
        struct fab_dct before = {.dctn = 7};
        begin();
        w.pool.device.dct_before = &before;
        if (i == 0) {
            ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), 0);
            end_creation(0);
            ck_assert_ptr_eq(w.pool.device.dct, &w.dct[1]);
        } else {
            ck_assert_int_eq(do_step(WORLD_DEVICE_LEAVE), 0);
        }
        ck_assert_ptr_null(w.pool.device.dct_before);
        ck_assert_uint_eq(w.outs, 2);
        ck_assert_ptr_eq(w.out[0]->dct.x, &before);
        ck_assert_ptr_eq(w.out[1]->dct.x, &w.dct[0]);
        end_one();
        end_one();
        ck_assert_uint_eq(w.pool.fab_ops, 0);
    }
}
END_TEST

START_TEST(nor_when_its_pool_goes_and_none_takes_its_place_then)
{
    begin();
    ck_assert_int_eq(do_step(WORLD_DEVICE_LEAVE), 0);
    ck_assert_ptr_null(w.pool.device.dct);
    ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), -ECANCELED); /* another address meanwhile */
    ck_assert_ptr_null(w.pool.device.dct);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_uint_eq(w.pool.fab_ops, 1);
    end_one();
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(a_target_that_is_made_when_its_pool_has_gone_goes_again)
{
    begin();
    ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), 0);
    w.pool.stopping = true;
    ck_assert_int_eq(do_step(WORLD_DEVICE_LEAVE), 0);
    end_creation(0);
    ck_assert_ptr_null(w.pool.device.dct);
    ck_assert_uint_eq(w.outs, 2); /* both */
    end_one();
    end_one();
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(one_that_the_device_refuses_leaves_the_former)
{
    begin();
    ck_assert_int_eq(begin_step(WORLD_DEVICE_TARGET), 0);
    end_creation(-ENOMEM);
    ck_assert_ptr_eq(w.pool.device.dct, &w.dct[0]);
    ck_assert_int_eq(w.pool.readdress.target.status, -ENOMEM);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(a_table_that_is_being_registered_holds_nobody_up)
{
    for (int i = 0; i < 3; i++) { /* taken, refused, made when its pool has gone */
        begin();
        struct agent_table *former = calloc(1, sizeof *former);
        ck_assert_ptr_nonnull(former);
        w.pool.device.table = former;
        w.pool.device.mr_log2 = 10;
        fab_iova_init(&w.agent.iova, 1);
        ck_assert_int_eq(begin_step(WORLD_DEVICE_TABLE), 0);
        ck_assert_ptr_eq(w.pool.device.table, former);
        ck_assert_uint_eq(steps_out(), 2);
        w.pool.stopping = i == 2;
        end_creation(i == 1 ? -ENOMEM : 0);
        ck_assert_uint_eq(steps_out(), 1);
        ck_assert_ptr_eq(w.pool.device.table_before, i == 0 ? former : NULL);
        ck_assert_int_eq(w.pool.device.table == former, i != 0);
        ck_assert_uint_eq(w.outs, i == 2);
        if (i == 2)
            end_one();
        ck_assert_uint_eq(w.pool.fab_ops, 0);
        if (i == 0) {
            fab_mem_free(&w.pool.device.table->memory);
            free(w.pool.device.table);
        }
        free(former);
    }
}
END_TEST

/* `soft` waits for as long as a peer that is inside is stopped. */
START_TEST(a_table_that_a_peer_is_still_in_holds_nobody_up_and_keeps_its_memory)
{
    begin();
    struct agent_table *table = calloc(1, sizeof *table);
    ck_assert_ptr_nonnull(table);
    ck_assert_int_eq(fab_mem_alloc(4096, "test-table", &table->memory), 0);
    table->mr = &w.mr;
    w.pool.device.table_before = table;
    ck_assert_int_eq(do_step(WORLD_DEVICE_DROP), 0);
    ck_assert_ptr_null(w.pool.device.table_before);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_uint_eq(w.pool.fab_ops, 1);
    memset(table->memory.addr, 7, table->memory.size); /* it is there */
    end_one();
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_target_that_is_drained_for_seconds_holds_nobody_up_when_another_takes_its_place)           \
    T(a_target_that_may_be_in_order_stays_until_it_is_told_to_go)                                  \
    T(a_target_that_stays_goes_with_the_next_one_that_goes)                                        \
    T(nor_when_its_pool_goes_and_none_takes_its_place_then)                                        \
    T(a_target_that_is_made_when_its_pool_has_gone_goes_again)                                     \
    T(one_that_the_device_refuses_leaves_the_former)                                               \
    T(a_table_that_is_being_registered_holds_nobody_up)                                            \
    T(a_table_that_a_peer_is_still_in_holds_nobody_up_and_keeps_its_memory)
KEDGE_CHECK_MAIN("agent.daemon.queues", TESTS)
