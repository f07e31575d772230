/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant whose workers are slow to wake has a part of the lane's time for that, and nobody else
 * waits. */
#include "../../check_main.h"
#include "schema/wake.h"
#include "world_accomplices.h"
#include "world_held.h"

enum { SLOW_NS = 10000000, POSTS = 2000, BETWEEN_NS = 500000, AWHILE = 1000 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker slow, quick;
static uint32_t slow_wakes, quick_wakes;

static uint64_t wake(void *user, _Atomic uint32_t *word)
{
    (void)user;
    const bool is_slow = word == (const void *)&slow.r->wake;
    *(is_slow ? &slow_wakes : &quick_wakes) += 1;
    return is_slow ? SLOW_NS : 0;
}

static void post_one(struct world_worker *k, uint32_t key)
{
    struct schema_cqe e;
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 0, 0, 8, key, 0);
    while (world_poll(w, k, &e, 0))
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
}

static void begin(uint32_t key[2])
{
    struct world_worker *const workers[] = {&slow, &quick};
    static struct world_worker owner[2];
    slow_wakes = quick_wakes = 0;
    world_open(w);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t tenant = i == 0 ? GUILTY : HONEST;
        world_attach(w, &owner[i], 1, i, tenant);
        key[i] = world_register(w, &owner[i], 0, 4096, ALL);
        world_attach(w, workers[i], 0, i, tenant);
        ck_assert_int_eq(world_connect(w, workers[i], 0, 1), 0);
        ck_assert_uint_eq(
            world_do(w, workers[i], world_rw(SCHEMA_OP_WRITE, 0, 0, 8, key[i], 0), AWHILE).status,
            IBV_WC_SUCCESS);
        atomic_store(&workers[i]->w->want_wake, 1);
    }
    lane_set_wake(w->node[0].lane, wake, NULL);
}

START_TEST(who_is_slow_to_wake_is_woken_seldom_and_others_at_once)
{
    uint32_t key[2];
    begin(key);
    const uint64_t begin_ns = w->now_ns;
    for (uint32_t i = 0; i < POSTS; i++) {
        post_one(&slow, key[0]);
        post_one(&quick, key[1]);
        world_sleep(w, BETWEEN_NS);
        world_run(w, 10);
        ck_assert_uint_ge(quick_wakes, i + 1);
    }
    const uint64_t slow_ns = slow_wakes * (uint64_t)SLOW_NS;
    ck_assert_uint_ge(slow_wakes, 2);
    ck_assert_uint_le(slow_ns, (w->now_ns - begin_ns) / 32 + 2 * SLOW_NS);
    world_close(w);
}
END_TEST

/* It sleeps until then, and not longer. */
START_TEST(who_is_slow_to_wake_is_woken_when_the_time_has_come)
{
    uint32_t key[2];
    begin(key);
    post_one(&slow, key[0]);
    world_run(w, AWHILE);
    ck_assert_uint_eq(slow_wakes, 1);
    post_one(&slow, key[0]);
    world_run(w, AWHILE);
    ck_assert_uint_eq(slow_wakes, 1);
    struct lane *lane = w->node[0].lane;
    uint64_t due = 0;
    for (int i = 0; i < AWHILE && due <= w->now_ns; i++) {
        world_run(w, 1);
        due = lane_prepare_sleep(lane, w->now_ns);
    }
    ck_assert_uint_gt(due, w->now_ns);
    ck_assert_uint_le(due, w->now_ns + 33ull * SLOW_NS);
    world_sleep(w, 33ull * SLOW_NS);
    ck_assert_uint_eq(slow_wakes, 2);
    world_close(w);
}
END_TEST

static uint32_t tells[2];

static void tell(void *user, uint32_t session)
{
    (void)user;
    ck_assert(session == slow.id || session == quick.id);
    tells[session == quick.id]++;
}

static void arm(struct world_worker *k, uint32_t armed)
{
    atomic_store(&k->w->want_wake, 0);
    atomic_store(&k->w->armed, armed);
}

/* As those who sleep by futex: without a word of theirs nobody is told, nor for the same word
 * twice.
 */
START_TEST(who_has_armed_is_told_once_for_each_time)
{
    uint32_t key[2];
    begin(key);
    lane_set_tell(w->node[0].lane, tell, NULL);
    tells[0] = tells[1] = 0;
    arm(&slow, 0);
    for (uint32_t i = 1; i <= 20; i++) {
        arm(&quick, 2 * i + 1);
        for (int n = 0; n < 3; n++) {
            post_one(&slow, key[0]);
            post_one(&quick, key[1]);
            world_sleep(w, BETWEEN_NS);
            world_run(w, 10);
            ck_assert_uint_eq(tells[1], i);
        }
    }
    arm(&quick, 100); /* not any more */
    post_one(&quick, key[1]);
    world_run(w, AWHILE);
    ck_assert_uint_eq(tells[1], 20);
    ck_assert_uint_eq(tells[0], 0);
    ck_assert_uint_eq(slow_wakes + quick_wakes, 0);
    world_detach(w, &quick); /* whoever waits hears of that */
    ck_assert_uint_eq(tells[1], 21);
    world_close(w);
}
END_TEST

/* It may have seen no later head than the last before which it was looked whether it sleeps. */
START_TEST(who_waits_for_room_is_woken_however_little_was_in_its_ring_each_time)
{
    enum { SLOTS = 64, POSTED = 48 };
    uint32_t key[2];
    begin(key);
    atomic_store(&quick.w->want_wake, SCHEMA_WAKE_ROOM + schema_room_awaited(SLOTS));
    quick_wakes = 0;
    world_hold(&w->node[0], NULL);
    for (uint32_t i = 0; i < POSTED; i++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, i, 0, 8, key[1], 0);
        world_post(&quick, &d);
        lane_doorbell(w->node[0].lane, quick.id);
        world_run(w, 2);
    }
    ck_assert_uint_ge(quick_wakes, 1);
    world_held_end();
    world_run(w, AWHILE);
    world_close(w);
}
END_TEST

static void post_some(uint32_t key)
{
    for (uint32_t i = 0; i < 10; i++) {
        post_one(&quick, key);
        world_run(w, 10);
    }
}

/* Where many wait for a processor one that is woken gets it late, and says that it sleeps until
 * then. What it sleeps on says that it was woken, and one that sleeps anew is woken anew. Of one
 * that does not say so, as a library of before, nobody knows it. */
START_TEST(who_was_woken_and_has_not_run_yet_is_not_woken_again)
{
    uint32_t key[2];
    begin(key);
    for (uint32_t i = 1; i <= 3; i++) {
        quick_wakes = 0;
        atomic_store(&quick.w->sleeps_on, schema_wake_word(atomic_load(&quick.r->wake)));
        post_some(key[1]);
        ck_assert_uint_eq(quick_wakes, 1);
        ck_assert_uint_eq(atomic_load(&quick.r->wake) << 1, atomic_load(&quick.w->sleeps_on) + 1);
    }
    atomic_fetch_add(&quick.r->wake, 1); /* by the control thread, which wakes it */
    quick_wakes = 0;
    atomic_store(&quick.w->sleeps_on, schema_wake_word(atomic_load(&quick.r->wake) - 1));
    post_some(key[1]);
    ck_assert_uint_eq(quick_wakes, 0);
    atomic_store(&quick.w->sleeps_on, 0);
    post_some(key[1]);
    ck_assert_uint_ge(quick_wakes, 10);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_was_woken_and_has_not_run_yet_is_not_woken_again)                                        \
    T(who_waits_for_room_is_woken_however_little_was_in_its_ring_each_time)                        \
    T(who_is_slow_to_wake_is_woken_seldom_and_others_at_once)                                      \
    T(who_is_slow_to_wake_is_woken_when_the_time_has_come)                                         \
    T(who_has_armed_is_told_once_for_each_time)

KEDGE_CHECK_MAIN("agent.lane.wakes", TESTS)
