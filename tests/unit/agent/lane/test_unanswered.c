/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that were executed, and whose answers are lost: nothing is executed twice for that, and
 * nothing that may have been executed is said to have never been sent. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../check_main.h"
#include "base/random.h"
#include "world.h"

enum {
    SEEDS = 6,
    ROUNDS = 120,
    WORKERS = 3,
    PEERS = 2, /* nodes 1 and 2, to each of which every worker has a VQP of that number */
    REQUESTS = 8,
    TENANTS = 2,
    CUT_FROM = ROUNDS / 3, /* node 2 is cut in between */
    CUT_TO = CUT_FROM + 8,
    LONG = 400000 /* passes */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t SECOND = 1000000000;

static struct world world;
static struct world *w = &world;

enum device { USUAL, STREAMS, NAMELESS, LATE };

/* Additions of one worker's to one peer: each VQP has a counter of its own there. */
struct sum {
    uint64_t good, may; /* that ended well; that failed, and may have been executed */
};

struct scene {
    struct world_worker worker[WORKERS], owner[PEERS][TENANTS];
    uint32_t key[PEERS][TENANTS];
    struct sum sum[WORKERS][PEERS];
    bool adds[WORKERS][PEERS][REQUESTS]; /* of this round */
    bool broken[WORKERS][PEERS];
    uint32_t posted[WORKERS];
    struct base_prng prng;
    uint32_t failed, answered;
};

static uint32_t tenant_of(uint32_t worker)
{
    return worker % TENANTS;
}

static void scene_open(struct scene *s, uint32_t seed, enum device device)
{
    *s = (struct scene){.failed = 0};
    base_prng_seed(&s->prng, seed);
    world_fault = (struct fault_plan){
        .seed = seed, .answer_loss_ppm = 20000, .errors_first = device == NAMELESS};
    char order[32];
    snprintf(order, sizeof order, "late:%u", seed);
    if (device == LATE)
        setenv("KEDGE_SOFT_ORDER", order, 1);

    world_ack_timeout = 19; /* 2 s: a busy host may not disturb */
    world_streams = device == STREAMS;
    world_open(w);
    for (uint32_t p = 0; p < PEERS; p++)
        for (uint32_t t = 0; t < TENANTS; t++) {
            world_attach(w, &s->owner[p][t], p + 1, t, t);
            s->key[p][t] = world_register(w, &s->owner[p][t], 0, 4096, ALL);
        }
    for (uint32_t i = 0; i < WORKERS; i++) {
        world_attach(w, &s->worker[i], 0, i, tenant_of(i));
        for (uint32_t p = 0; p < PEERS; p++)
            s->broken[i][p] = true;
    }
}

static void scene_close(struct scene *s)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        world_detach(w, &s->worker[i]);
    for (uint32_t p = 0; p < PEERS; p++)
        for (uint32_t t = 0; t < TENANTS; t++)
            world_detach(w, &s->owner[p][t]);
    world_close(w);
    world_fault = (struct fault_plan){0};
    world_streams = false;
    unsetenv("KEDGE_SOFT_ORDER");
}

static void post_round(struct scene *s)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t p = 0; p < PEERS; p++)
            if (s->broken[i][p]) /* an endpoint that is being looked up again answers later */
                s->broken[i][p] = world_connect(w, &s->worker[i], (uint16_t)p, p + 1) != 0;
    for (uint64_t n = 0; n < REQUESTS; n++)
        for (uint32_t i = 0; i < WORKERS; i++)
            for (uint32_t p = 0; p < PEERS; p++) {
                const uint64_t what = base_prng_below(&s->prng, 4);
                struct schema_sq_desc d =
                    world_rw(what == 0   ? SCHEMA_OP_READ
                             : what == 1 ? SCHEMA_OP_WRITE
                                         : SCHEMA_OP_FAA,
                             n, 512 * p + 64, 8, s->key[p][tenant_of(i)], 2048);
                s->adds[i][p][n] = d.op == SCHEMA_OP_FAA;
                if (s->broken[i][p])
                    continue;
                d.vqp = (uint16_t)p;
                if (s->adds[i][p][n]) {
                    d.post.remote_addr += 64ull * i - 2048;
                    d.post.compare_add = 1;
                }
                world_post(&s->worker[i], &d);
                s->posted[i]++;
            }
    for (uint32_t i = 0; i < WORKERS; i++)
        lane_doorbell(w->node[0].lane, i);
}

static void take_round(struct scene *s)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        for (; s->posted[i] > 0; s->posted[i]--) {
            const struct schema_cqe e = world_done(w, &s->worker[i], LONG);
            struct sum *sum = &s->sum[i][e.vqp];
            const bool adds = s->adds[i][e.vqp][e.wr_id];
            if (s->broken[i][e.vqp]) /* by one before it */
                ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
            s->broken[i][e.vqp] |= e.status != IBV_WC_SUCCESS;
            s->failed += e.status == IBV_WC_RETRY_EXC_ERR && e.vendor_err == 0;
            s->answered += e.status == IBV_WC_SUCCESS;
            if (adds && e.status == IBV_WC_SUCCESS)
                sum->good++;
            else if (adds && (e.vendor_err == 0 || e.vendor_err == SCHEMA_REASON_UNDER_WAY))
                sum->may++;
        }
}

static void look(struct scene *s, uint32_t seed, int round)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t p = 0; p < PEERS; p++) {
            const _Atomic uint64_t *counters = s->owner[p][tenant_of(i)].arena.addr;
            const struct sum *sum = &s->sum[i][p];
            const uint64_t done = counters[8 * i];
            ck_assert_msg(done >= sum->good && done <= sum->good + sum->may,
                          "seed %u, round %d: %lu additions for %lu that ended well and %lu of "
                          "which it is not known",
                          seed, round, (unsigned long)done, (unsigned long)sum->good,
                          (unsigned long)sum->may);
        }
}

static void set_cut(uint32_t seed, bool cuts)
{
    struct fault_plan plan = world_fault;
    plan.cuts = cuts;
    plan.seed = seed;
    memcpy(plan.cut, w->node[2].fab->caps.gid, sizeof plan.cut);
    fault_set_plan(w->node[0].fab, &plan);
}

/* Streams there are with DC alone, and errors without a name with RC. */
static void run(uint32_t seed, enum device device)
{
    struct scene s;
    scene_open(&s, seed, device);
    const bool is_real = w->rc ? device != STREAMS : device != NAMELESS;
    for (int round = 0; round < ROUNDS && is_real; round++) {
        if (round == CUT_FROM || round == CUT_TO)
            set_cut(seed, round == CUT_FROM);
        post_round(&s);
        take_round(&s);
        look(&s, seed, round);
        world_sleep(w, SECOND); /* whoever was taken for dead is tried again */
    }
    if (is_real) {
        ck_assert_uint_gt(s.failed, ROUNDS / 4);
        ck_assert_uint_gt(s.answered, WORKERS * ROUNDS);
    }
    scene_close(&s);
}

START_TEST(what_may_have_been_executed_is_not_executed_again_nor_called_never_sent)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        run(seed, USUAL);
}
END_TEST

START_TEST(nor_with_streams)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        run(seed, STREAMS);
}
END_TEST

START_TEST(nor_where_errors_have_no_names)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        run(seed, NAMELESS);
}
END_TEST

START_TEST(nor_where_requests_overtake_each_other)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        run(seed, LATE);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_may_have_been_executed_is_not_executed_again_nor_called_never_sent)                     \
    T(nor_with_streams)                                                                            \
    T(nor_where_errors_have_no_names)                                                              \
    T(nor_where_requests_overtake_each_other)
KEDGE_CHECK_MAIN("agent.lane.unanswered", TESTS)
