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
    TAKEN = 600, /* requests likewise */
    ENDED = 1000,
    LOOKS_SHARED = 40, /* where several tenants are active */
    TAKEN_SHARED = 40,
    PASSES = 200,
    WOKEN = 40, /* workers, in a pass */
    BATCH = 30, /* of each session */
    MOST_BREAKS = 200,
    WARM = 20,  /* rounds, until nothing is left of when a tenant was alone */
    BESIDE = 4, /* requests of others, before one */
    LITTLE = 4, /* requests, of who waits for each */
    OTHER = 2   /* a third tenant */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint8_t TIMEOUT = 19; /* 2 s, which a busy host does not disturb */
static const uint64_t REST_NS = 50000000;

static struct world world;
static struct world *w = &world;
static struct world_worker crowd[CROWD];

/* In so many passes they are taken. */
static void post_reads(uint32_t key, uint32_t last_key, unsigned passes)
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
    world_run(w, passes);
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
    for (uint32_t i = 0; i < MOST_BREAKS && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_break_beside(&s, &s.guilty[0], s.gone_key);
    ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(world_stats(w, 0).tenants_resting, 1);
    while (world_stats(w, 0).inflight > 0)
        world_run(w, 1);
    post_reads(key, s.gone_key, CROWD * EACH);
    ck_assert_uint_eq(world_stats(w, 0).inflight, CROWD * EACH);
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

/* Requests without a byte never reach a queue pair: no room there bounds what is taken. */
START_TEST(however_many_sessions_post_a_pass_takes_a_few_of_each)
{
    struct world_worker owner;
    uint64_t most = 0, done = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, i, GUILTY);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
        ck_assert_uint_eq(
            world_do(w, &crowd[i], world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG).status,
            IBV_WC_SUCCESS);
    }
    for (uint32_t i = 0; i < CROWD; i++)
        for (uint32_t n = 0; n < BATCH; n++) {
            const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, n, 0, 0, key, 0);
            world_post(&crowd[i], &d);
        }
    for (uint32_t i = 0; i < CROWD; i++)
        lane_doorbell(w->node[0].lane, i);
    const uint64_t since = world_stats(w, 0).completed;
    for (int i = 0; i < LONG && done < CROWD * BATCH; i++) {
        world_run(w, 1);
        const uint64_t now = world_stats(w, 0).completed - since;
        most = now - done > most ? now - done : most;
        done = now;
    }
    ck_assert_uint_eq(done, CROWD * BATCH);
    ck_assert_msg(most <= TAKEN, "%lu requests in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

static void set_window(uint64_t ops)
{
    struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                             .window = {.scope = LANE_WINDOW_DEVICE, .ops = ops}};
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

static uint64_t count_waiting(void)
{
    struct lane_window window;
    ck_assert(lane_window(w->node[0].lane, LANE_WINDOW_DEVICE, 0, &window));
    return window.waiting;
}

/* An operator takes the window away at which they all wait. */
START_TEST(however_many_wait_at_a_window_a_pass_lets_a_few_go_on)
{
    struct world_worker owner;
    uint64_t most = 0, waiting;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, FIRST + i, GUILTY);
        for (uint16_t vqp = 0; vqp < EACH; vqp++)
            ck_assert_int_eq(world_connect(w, &crowd[i], vqp, 1), 0);
    }
    set_window(1);
    ck_assert_uint_eq(
        world_do(w, &crowd[0], world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG).status,
        IBV_WC_SUCCESS);
    post_reads(key, key, 4);
    ck_assert_uint_gt(count_waiting(), CROWD * EACH - 16);
    set_window(0);
    while ((waiting = count_waiting()) > 0) {
        world_run(w, 1);
        const uint64_t gone = waiting - count_waiting();
        most = gone > most ? gone : most;
    }
    ck_assert_msg(most <= LOOKS, "%lu went on in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < CROWD; i++)
        for (int n = 0; n < EACH; n++)
            ck_assert_uint_eq(world_done(w, &crowd[i], LONG).status, IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* All that a worker has queued behind a request that is refused ends at once. */
START_TEST(however_many_are_refused_a_pass_ends_a_few)
{
    struct world_worker owner;
    uint64_t most = 0, before = 0, now = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, FIRST + i, GUILTY);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
    }
    world_silence_node(w, 1);
    for (uint32_t i = 0; i < CROWD; i++) {
        for (uint32_t n = 0; n < BATCH; n++) {
            const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, n, 0, 8, key, 0);
            world_post(&crowd[i], &d);
        }
        lane_doorbell(w->node[0].lane, FIRST + i);
    }
    for (int i = 0; i < LONG && now < CROWD * BATCH; i++, before = now) {
        world_run(w, 1);
        now = world_stats(w, 0).failed;
        most = now - before > most ? now - before : most;
        if (i % 1000 == 999)
            w->now_ns += 1000000;
    }
    ck_assert_uint_eq(now, CROWD * BATCH);
    ck_assert_msg(most <= ENDED, "%lu ended in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* So many requests without a byte, of which each ends when it is taken. */
static void post_empty(struct world_worker *k, uint32_t key, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, n, 0, 0, key, 0);
        world_post(k, &d);
    }
}

static uint64_t take_done(struct world_worker *k)
{
    struct schema_cqe e;
    uint64_t done = 0;
    while (world_poll(w, k, &e, 0))
        done += e.status == IBV_WC_SUCCESS;
    return done;
}

/* A stranger comes to a tenant with a crowd of sessions whose rings are always full. */
START_TEST(where_two_tenants_are_active_a_pass_takes_a_few_and_of_each_as_many)
{
    struct world_worker owner, friend, honest;
    uint64_t of_crowd = 0, of_honest = 0, most = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    world_attach(w, &friend, 1, 1, HONEST);
    world_attach(w, &honest, 0, CROWD, HONEST);
    ck_assert_int_eq(world_connect(w, &honest, 0, 1), 0);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    const uint32_t his = world_register(w, &friend, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, i, GUILTY);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
        world_run(w, 2);
    }
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, BATCH);
    for (int round = 0; round < PASSES; round++) {
        const uint64_t before = world_stats(w, 0).completed;
        post_empty(&honest, his, BATCH - (uint32_t)(honest.sq_tail - honest.r->sq_head));
        lane_doorbell(w->node[0].lane, CROWD);
        if (round == 0)
            for (uint32_t i = 0; i < CROWD; i++)
                lane_doorbell(w->node[0].lane, i);
        world_run(w, 1);
        const uint64_t taken = world_stats(w, 0).completed - before;
        most = taken > most ? taken : most;
        of_honest += take_done(&honest);
        for (uint32_t i = 0; i < CROWD; i++) {
            const uint64_t done = take_done(&crowd[i]);
            of_crowd += done;
            post_empty(&crowd[i], key, (uint32_t)done);
        }
    }
    ck_assert_msg(most <= TAKEN_SHARED, "%lu requests in a pass", (unsigned long)most);
    ck_assert_uint_gt(of_crowd, PASSES);
    ck_assert_uint_gt(of_honest * 10, of_crowd * 9);
    world_close(w);
}
END_TEST

static void open_crowd(struct world_worker *owner, uint32_t *key)
{
    world_open(w);
    world_attach(w, owner, 1, 0, GUILTY);
    *key = world_register(w, owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, i, GUILTY);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
        world_run(w, 2);
    }
}

static void post_bytes(struct world_worker *k, uint32_t key, uint64_t count)
{
    for (uint64_t n = 0; n < count; n++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, n, 0, 8, key, 0);
        world_post(k, &d);
    }
}

/* Their rings stay full. Returns how many of them are over. */
static uint64_t keep_full(uint32_t key)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        const uint64_t done = take_done(&crowd[i]);
        post_bytes(&crowd[i], key, done);
        all += done;
    }
    return all;
}

/* What counts for who posts one request at a time is how many of others' are before it. */
START_TEST(a_single_request_waits_for_a_few_of_a_crowd_whose_rings_are_full)
{
    struct world_worker owner, friend, honest;
    uint32_t key;
    uint64_t before = 0, most = 0;
    open_crowd(&owner, &key);
    world_attach(w, &friend, 1, 1, HONEST);
    const uint32_t his = world_register(w, &friend, 0, 4096, ALL);
    world_attach(w, &honest, 0, CROWD, HONEST);
    ck_assert_int_eq(world_connect(w, &honest, 0, 1), 0);
    for (uint32_t i = 0; i < CROWD; i++)
        post_bytes(&crowd[i], key, BATCH);
    for (uint32_t i = 0; i < CROWD; i++)
        lane_doorbell(w->node[0].lane, i);
    world_run(w, 4);
    for (int round = 0; round < PASSES; round++) {
        before = 0;
        post_bytes(&honest, his, 1);
        lane_doorbell(w->node[0].lane, CROWD);
        for (int i = 0; i < LONG && take_done(&honest) == 0; i++) {
            world_run(w, 1);
            before += keep_full(key);
        }
        most = round >= WARM && before > most ? before : most;
        world_run(w, (unsigned)round % 3); /* it comes at any time of the lane's turns */
        (void)keep_full(key);
    }
    ck_assert_msg(most <= BESIDE, "%lu requests of the crowd before one", (unsigned long)most);
    world_close(w);
}
END_TEST

/* Two tenants who keep no more out than who waits for each request, and one with full rings. */
START_TEST(who_keeps_little_out_on_purpose_has_no_more_than_its_part)
{
    struct world_worker owner, friend[2], posing[2];
    uint32_t key, his[2];
    uint64_t of_crowd = 0, of_each[2] = {0, 0};
    open_crowd(&owner, &key);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t tenant = i == 0 ? HONEST : OTHER;
        world_attach(w, &friend[i], 1, 1 + i, tenant);
        his[i] = world_register(w, &friend[i], 0, 4096, ALL);
        world_attach(w, &posing[i], 0, CROWD + i, tenant);
        ck_assert_int_eq(world_connect(w, &posing[i], 0, 1), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        post_empty(&posing[i], his[i], LITTLE);
    for (uint32_t i = 0; i < CROWD; i++)
        post_empty(&crowd[i], key, BATCH);
    for (uint32_t i = 0; i < CROWD + 2; i++)
        lane_doorbell(w->node[0].lane, i);
    for (int round = 0; round < PASSES; round++) {
        world_run(w, 1);
        for (uint32_t i = 0; i < CROWD; i++) {
            const uint64_t done = take_done(&crowd[i]);
            of_crowd += done;
            post_empty(&crowd[i], key, (uint32_t)done);
        }
        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t done = take_done(&posing[i]);
            of_each[i] += done;
            post_empty(&posing[i], his[i], (uint32_t)done);
        }
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_gt(of_each[i], PASSES / 4);
        ck_assert_uint_gt(of_crowd * 10, of_each[i] * 9);
    }
    world_close(w);
}
END_TEST

/* Requests that wait for room in two queue pairs, and are refused when they have it: none takes any
 * of it. */
static void post_in_vain(uint32_t key)
{
    enum { GOOD = 40 /* sessions, which fill both */ };
    for (uint32_t i = 0; i < CROWD; i++) {
        for (uint16_t vqp = 0; vqp < EACH; vqp++) {
            struct schema_sq_desc d =
                world_rw(SCHEMA_OP_READ, vqp, 0, 8, key, i < GOOD ? 0 : 1 << 20);
            d.vqp = vqp;
            world_post(&crowd[i], &d);
        }
        lane_doorbell(w->node[0].lane, FIRST + i);
    }
}

/* Asks for what is answered at once, if there is room in its ring. */
static void keep_awake(struct world_worker *k)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_MR_STATUS, .slots = 1, .connect = {.tag = k->tag + 1}};
    if (k->sq_tail - atomic_load(&k->r->sq_head) < 32) {
        k->tag++;
        world_post(k, &d);
    }
    (void)lane_doorbell(w->node[k->node].lane, k->id);
}

START_TEST(however_many_wait_for_room_beside_a_stranger_a_pass_looks_at_a_few)
{
    struct world_worker owner, stranger;
    uint64_t most = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    world_attach(w, &stranger, 0, 0, HONEST);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, FIRST + i, GUILTY);
        for (uint16_t vqp = 0; vqp < EACH; vqp++)
            ck_assert_int_eq(world_connect(w, &crowd[i], vqp, 1), 0);
        world_run(w, EACH);
    }
    ck_assert_uint_eq(
        world_do(w, &crowd[0], world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG).status,
        IBV_WC_SUCCESS);
    world_sleep(w, 1000000); /* the stranger's session too */
    post_in_vain(key);
    world_run(w, 1); /* the tenant is alone yet */
    for (int i = 0; i < LONG && world_stats(w, 0).inflight > 0; i++) {
        const uint64_t before = world_stats(w, 0).retried;
        keep_awake(&stranger);
        world_run(w, 1);
        const uint64_t looks = world_stats(w, 0).retried - before;
        most = looks > most ? looks : most;
    }
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_msg(most <= LOOKS_SHARED, "%lu looks in a pass", (unsigned long)most);
    world_close(w);
}
END_TEST

static uint32_t wakes;

static uint64_t count_wake(void *user, _Atomic uint32_t *word)
{
    (void)user;
    (void)word;
    wakes++;
    return 0;
}

/* Each wake is a system call. */
START_TEST(however_many_workers_sleep_a_pass_wakes_a_few_and_none_is_forgotten)
{
    struct world_worker owner;
    uint32_t most = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, GUILTY);
    const uint32_t key = world_register(w, &owner, 0, 4096, ALL);
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, i, GUILTY);
        ck_assert_int_eq(world_connect(w, &crowd[i], 0, 1), 0);
        ck_assert_uint_eq(
            world_do(w, &crowd[i], world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG).status,
            IBV_WC_SUCCESS);
        atomic_store(&crowd[i].w->want_wake, 1);
    }
    lane_set_wake(w->node[0].lane, count_wake, NULL);
    for (uint32_t i = 0; i < CROWD; i++) {
        post_empty(&crowd[i], key, 1);
        lane_doorbell(w->node[0].lane, i);
    }
    for (uint32_t i = 0, before = 0; i < CROWD; i++, before = wakes) {
        world_run(w, 1);
        most = wakes - before > most ? wakes - before : most;
    }
    for (uint32_t i = 0; i < CROWD; i++)
        ck_assert_uint_eq(take_done(&crowd[i]), 1);
    ck_assert_uint_eq(wakes, CROWD);
    ck_assert_msg(most <= WOKEN, "%u woken in a pass", most);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(however_many_wait_with_a_tenant_that_rests_a_pass_looks_at_a_few)                            \
    T(however_many_sessions_post_a_pass_takes_a_few_of_each)                                       \
    T(however_many_wait_at_a_window_a_pass_lets_a_few_go_on)                                       \
    T(however_many_are_refused_a_pass_ends_a_few)                                                  \
    T(where_two_tenants_are_active_a_pass_takes_a_few_and_of_each_as_many)                         \
    T(a_single_request_waits_for_a_few_of_a_crowd_whose_rings_are_full)                            \
    T(who_keeps_little_out_on_purpose_has_no_more_than_its_part)                                   \
    T(however_many_wait_for_room_beside_a_stranger_a_pass_looks_at_a_few)                          \
    T(however_many_workers_sleep_a_pass_wakes_a_few_and_none_is_forgotten)
KEDGE_CHECK_MAIN("agent.lane.looks", TESTS)
