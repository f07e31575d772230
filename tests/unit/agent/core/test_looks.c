/* SPDX-License-Identifier: Apache-2.0 */
/* However many virtual queue pairs wait, a pass of the lane looks at a few of them, and each has
 * its turn. */
#include "../../check_main.h"
#include "world_accomplices.h"

enum {
    CROWD = 110, /* sessions */
    EACH = 8,    /* VQPs of each */
    FIRST = 10,  /* the number of the first */
    LOOKS = 300, /* in a pass */
    MOST_BREAKS = 200
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint8_t TIMEOUT = 19; /* 2 s, which a busy host does not disturb */
static const uint64_t REST_NS = 50000000;

static struct world world;
static struct world *w = &world;
static struct world_worker crowd[CROWD];

static void post_reads(uint32_t key, uint32_t last_key)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        for (uint16_t vqp = 0; vqp < EACH; vqp++) {
            const bool last = i + 1 == CROWD && vqp + 1 == EACH;
            struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, vqp, 0, 8, last ? last_key : key, 0);
            d.vqp = vqp;
            world_post(&crowd[i], &d);
        }
        lane_doorbell(w->node[0].lane, FIRST + i);
    }
    world_run(w, 4);
    ck_assert_uint_eq(world_stats(w, 0).inflight, CROWD * EACH);
}

/* Until all are over, and the most looks that a pass took. */
static uint64_t run_all(void)
{
    uint64_t most = 0;
    for (int i = 0; i < LONG && world_stats(w, 0).inflight > 0; i++) {
        const uint64_t before = world_stats(w, 0).retried;
        world_run(w, 1);
        const uint64_t looks = world_stats(w, 0).retried - before;
        most = looks > most ? looks : most;
        if (i % 1000 == 999) /* who rests once more */
            w->now_ns += REST_NS;
    }
    return most;
}

/* A tenant breaks a queue pair and waits for it, with all that its many sessions have posted; and
 * then breaks another one under these. */
START_TEST(however_many_wait_with_a_tenant_that_rests_a_pass_looks_at_a_few)
{
    struct accomplices s;
    struct world_worker good;
    uint32_t failed = 0;
    accomplices_open(&s, w, TIMEOUT);
    world_attach(w, &good, 1, 2, GUILTY);
    const uint32_t key = world_register(w, &good, 0, 4096, ALL);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, FIRST + i, GUILTY);
        for (uint16_t vqp = 0; vqp < EACH; vqp++)
            ck_assert_int_eq(world_connect(w, &crowd[i], vqp, 1), 0);
        world_run(w, EACH);
    }
    for (uint32_t i = 0; i < MOST_BREAKS && world_stats(w, 0).tenants_apart == 0; i++)
        accomplices_break_beside(&s, &s.guilty[0], s.gone_key);
    ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(world_stats(w, 0).tenants_resting, 1);
    while (world_stats(w, 0).inflight > 0)
        world_run(w, 1);
    post_reads(key, s.gone_key);
    w->now_ns += REST_NS;
    const uint64_t most = run_all();
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < EACH; n++)
            failed += world_done(w, &crowd[i], 1).status != IBV_WC_SUCCESS;
    ck_assert_uint_eq(failed, 1);
    ck_assert_msg(most <= LOOKS, "%lu looks in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &good);
    accomplices_close(&s);
}
END_TEST

#define TESTS(T) T(however_many_wait_with_a_tenant_that_rests_a_pass_looks_at_a_few)
KEDGE_CHECK_MAIN("looks", TESTS)
