/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a lane from its sleep: VQPs that it can do something for, and not that some once
 * waited. */
#include "../../check_main.h"
#include "world.h"

enum {
    ONE = 1, /* tenants, of which each may be anybody */
    VQPS = 8,
    CROWD = 40, /* with that many VQPs each, more than twice as many as a pass looks at */
    LOOKED_AT = 128,
    PASSES = 4 /* at the most, for one VQP that cannot go on */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t RETRY_NS = 100000; /* the blocked are looked at as often as that */

static struct world world;
static struct world *w = &world;
static struct world_worker owner[1], k, crowd[CROWD];

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

/* ---- those who wait for what the lane has few of
 * ---------------------------------------------------------------------------- */

static void lose_all_dcis(void)
{
    struct world_node *n = &w->node[0];
    n->no_repairs = true;
    for (uint32_t i = 0; i < n->res.spares; i++) {
        world_break(w, 0, n->res.spare[i]);
        world_fatal(w, 0, n->res.spare[i]);
    }
    for (uint32_t i = 0; i < n->res.dcis; i++) {
        world_break(w, 0, n->res.dci[i]);
        world_fatal(w, 0, n->res.dci[i]);
    }
    world_run(w, 1);
}

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
    lose_all_dcis();
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
    world_run(w, 4);
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

#define TESTS(T) T(who_was_to_be_looked_at_and_is_gone_keeps_no_lane_awake)
KEDGE_CHECK_MAIN("sleeps", TESTS)
