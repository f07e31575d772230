/* SPDX-License-Identifier: Apache-2.0 */
/* The device says that a queue pair is in ERR before the completions of what was out on it have
 * come: those tell what became of each, and until then the device has its memory. */
#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, LONG = 20000 /* passes */, LATE = 60 /* polls */, TOO_LATE = 5000 };
static const uint32_t ALL = KEDGE_RECORD_READ | KEDGE_RECORD_WRITE | KEDGE_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

struct scene {
    struct world_worker owner, writer, adder, reader;
    uint32_t key;
};

static void warm(struct world_worker *k, uint32_t key)
{
    struct kedge_sq_desc d = world_rw(KEDGE_OP_READ, 1, 0, 8, key, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    for (int i = 0; i < 2; i++) { /* the second time the peer is known to answer */
        world_post(k, &d);
        ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
    }
}

/* Completions come so many polls late from now on. */
static void delay(uint32_t polls)
{
    const struct kedge_fault_plan plan = {
        .seed = 1, .delay_ppm = polls == 0 ? 0 : 1000000, .delay_polls = polls};
    kedge_fault_set_plan(w->node[0].fab, &plan);
}

static void scene_open(struct scene *s)
{
    world_fault = (struct kedge_fault_plan){.seed = 1};
    world_ack_timeout = 19;          /* 2 s: a busy host may not disturb */
    world_mr_lease_ns[0] = 50000000; /* so that no record is READ in between */
    world_mr_lease_ns[1] = 50000000;
    world_open(w);
    world_attach(w, &s->owner, 1, 0, TENANT);
    world_attach(w, &s->writer, 0, 0, TENANT);
    world_attach(w, &s->adder, 0, 1, TENANT);
    world_attach(w, &s->reader, 0, 2, TENANT);
    s->key = world_register(w, &s->owner, 0, 4096, ALL);
    warm(&s->writer, s->key);
    warm(&s->adder, s->key);
    warm(&s->reader, s->key);
    delay(0);
}

static void scene_close(struct scene *s)
{
    delay(0);
    world_detach(w, &s->reader);
    world_detach(w, &s->adder);
    world_detach(w, &s->writer);
    world_detach(w, &s->owner);
    world_close(w);
    world_fault = (struct kedge_fault_plan){0};
    memset(world_mr_lease_ns, 0, sizeof world_mr_lease_ns);
}

/* A request of each worker, handed to the device. */
static void post_all(struct scene *s)
{
    struct kedge_sq_desc d = world_rw(KEDGE_OP_WRITE, 2, 0, 8, s->key, 128);
    world_post(&s->writer, &d);
    d = world_rw(KEDGE_OP_FAA, 3, 64, 8, s->key, 0);
    d.post.compare_add = 1;
    world_post(&s->adder, &d);
    d = world_rw(KEDGE_OP_READ, 4, 0, 8, s->key, 0);
    world_post(&s->reader, &d);
    for (uint32_t id = 0; id < 3; id++)
        kedge_lane_doorbell(w->node[0].lane, id);
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
}

static void each(void (*act)(struct world *w, uint32_t node, struct kedge_fab_qp *qp))
{
    struct world_node *n = &w->node[0];
    if (w->rc)
        act(w, 0, n->last_link);
    for (uint32_t i = 0; i < n->res.dcis; i++)
        act(w, 0, n->res.dci[i]);
}

/* Carried out, all of it, before the queue pair broke. */
START_TEST(what_ended_well_before_the_event_is_reported_so_and_nothing_goes_again)
{
    struct scene s;
    scene_open(&s);
    const _Atomic uint64_t *counter = s.owner.arena.addr;
    delay(LATE);
    post_all(&s);
    each(world_break);
    each(world_fatal);
    ck_assert_uint_eq(world_done(w, &s.writer, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &s.adder, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &s.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*counter, 1);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    world_run(w, LATE);
    ck_assert_uint_eq(w->node[0].broken, w->rc ? 1 : WORLD_DCIS); /* and it is repaired */
    delay(0);
    warm(&s.writer, s.key);
    scene_close(&s);
}
END_TEST

START_TEST(what_is_flushed_is_the_devices_until_it_says_so)
{
    struct scene s;
    scene_open(&s);
    delay(LATE);
    each(world_break);
    post_all(&s);
    each(world_fatal);
    world_run(w, LATE / 2);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    ck_assert_uint_eq(world_done(w, &s.writer, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.adder, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 1);
    scene_close(&s);
}
END_TEST

/* What comes after all, of a life that is over, is nobody's. */
START_TEST(a_queue_pair_that_gives_nothing_back_is_given_up_after_so_long_as_a_request_may_take)
{
    struct scene s;
    scene_open(&s);
    delay(TOO_LATE);
    each(world_break);
    post_all(&s);
    each(world_fatal);
    const uint64_t begun_ns = w->now_ns;
    ck_assert_uint_eq(world_done(w, &s.writer, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.adder, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_ge(w->now_ns - begun_ns, w->node[0].config.bound_ns);
    ck_assert_uint_eq(world_done(w, &s.reader, 3 * TOO_LATE).status, IBV_WC_SUCCESS);
    warm(&s.reader, s.key);
    scene_close(&s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_ended_well_before_the_event_is_reported_so_and_nothing_goes_again)                      \
    T(what_is_flushed_is_the_devices_until_it_says_so)                                             \
    T(a_queue_pair_that_gives_nothing_back_is_given_up_after_so_long_as_a_request_may_take)
KEDGE_CHECK_MAIN("fatal", TESTS)
