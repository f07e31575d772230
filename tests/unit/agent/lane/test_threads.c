/* SPDX-License-Identifier: Apache-2.0 */
/* Rings and lane as threads: one steps the lanes, each worker posts and polls in one of its own,
 * and one looks at what they wait for. For the thread sanitizer, which sees only what happens in
 * one process. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, WORKERS = 3, ROUNDS = 3000, BYTES = 256, DEPTH = 8 };

static struct world world;
static _Atomic bool stop;
static _Atomic uint32_t finished; /* workers */

static void *step(void *arg)
{
    struct world *w = arg;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < WORLD_WORKERS; i++) /* as an eventfd would say */
            if (w->worker[i] != NULL && atomic_load(&w->worker[i]->r->doorbell) != 0)
                lane_doorbell(w->node[w->worker[i]->node].lane, w->worker[i]->id);
        world_run(w, 1);
        sched_yield(); /* two cores may be fewer than there are threads */
    }
    return NULL;
}

struct user {
    struct world_worker k;
    uint32_t vkey, number;
    uint64_t completed, wrong;
};

static void take(struct user *u, struct schema_cqe *out)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)u->k.r + SCHEMA_CQ_OFFSET);
    while (atomic_load(&u->k.r->cq_tail) == u->k.cq_head)
        sched_yield();
    *out = ring[u->k.cq_head++ & 63];
    atomic_store(&u->k.w->cq_head, u->k.cq_head);
}

/* Each works on a part of its own of the one region: WRITEs, then READs of what it wrote. */
static void *work(void *arg)
{
    struct user *u = arg;
    uint8_t *memory = u->k.arena.addr;
    const uint64_t there = (uint64_t)u->number * DEPTH * BYTES, back = DEPTH * BYTES;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct schema_cqe e;
        memset(memory, (int)(round * 7 + u->number), DEPTH * BYTES);
        for (uint64_t i = 0; i < 2 * DEPTH; i++) {
            bool read = i >= DEPTH;
            struct schema_sq_desc d = world_rw(
                read ? SCHEMA_OP_READ : SCHEMA_OP_WRITE, round * 100 + i,
                (read ? back : 0) + i % DEPTH * BYTES, BYTES, u->vkey, there + i % DEPTH * BYTES);
            world_post(&u->k, &d);
        }
        for (uint64_t i = 0; i < 2 * DEPTH; i++) {
            take(u, &e);
            u->completed += e.status == IBV_WC_SUCCESS && e.wr_id == round * 100 + i;
        }
        u->wrong += memcmp(memory, memory + back, DEPTH * BYTES) != 0;
    }
    atomic_fetch_add(&finished, 1);
    return NULL;
}

/* Of one VQP each, and no more requests than each posts at a time. */
static void look_at_waits(const struct user *users)
{
    uint32_t count[SCHEMA_WAITS];
    while (atomic_load(&finished) < WORKERS)
        for (int i = 0; i < WORKERS; i++) {
            lane_waits(users[i].k.memory, true, count);
            for (int why = SCHEMA_WAIT_OWN; why <= SCHEMA_WAIT_DEVICE_WINDOW; why++)
                ck_assert_uint_le(count[why], 1);
            ck_assert_uint_le(count[SCHEMA_WAIT_ANSWER], 2 * DEPTH);
            sched_yield();
        }
}

/* So that they wait for each other. */
static void limit_device(struct world *w)
{
    const struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                                   .window = {.scope = LANE_WINDOW_DEVICE, .ops = DEPTH}};
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

START_TEST(workers_in_threads_of_their_own_read_what_they_wrote)
{
    static struct user user[WORKERS];
    struct world *w = &world;
    struct world_worker owner;
    pthread_t lanes, thread[WORKERS];
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, WORKERS * DEPTH * BYTES,
                                   SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    for (uint32_t i = 0; i < WORKERS; i++) {
        world_attach(w, &user[i].k, 0, i, TENANT);
        ck_assert_int_eq(world_connect(w, &user[i].k, 0, 1), 0);
        user[i].vkey = vkey;
        user[i].number = i;
    }
    limit_device(w);
    ck_assert_int_eq(pthread_create(&lanes, NULL, step, w), 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &user[i]), 0);
    look_at_waits(user);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    atomic_store(&stop, true);
    ck_assert_int_eq(pthread_join(lanes, NULL), 0);
    ck_assert_uint_gt(world_stats(w, 0).window_waits[LANE_WINDOW_DEVICE], 0);
    for (int i = 0; i < WORKERS; i++) {
        ck_assert_uint_eq(user[i].completed, 2ull * DEPTH * ROUNDS);
        ck_assert_uint_eq(user[i].wrong, 0);
        world_detach(w, &user[i].k);
    }
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T) T(workers_in_threads_of_their_own_read_what_they_wrote)
KEDGE_CHECK_MAIN("agent.lane.threads", TESTS)
