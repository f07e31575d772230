/* SPDX-License-Identifier: Apache-2.0 */
/* A device that takes its time, as the wire does: what is out to a peer that lives ends well,
 * however long that takes; nobody is taken for dead meanwhile, and nothing for overdue. */
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "fabric/provider.h"
#include "world.h"

enum { TENANT = 7, REGION = 16384, HELD = 4096, REQUESTS = 24, BACKLOG = 30, SEEDS = 8 };
enum { PLACES = 32, RING = 64 }; /* max_inflight and slots of the world's sessions */
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world;
static struct world *w = &world;

/* ---- the device */

/* Node 0's: it executes what is posted, and says so when the wire would have carried it, one
 * request after the other at its rate, each with a delay of its own. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    uint64_t bytes_per_us; /* 0: as fast as it can */
    uint64_t delay_ns, jitter_ns, random;
    uint64_t free_ns; /* when the wire is */
    struct ibv_wc wc[HELD];
    uint64_t
        due_ns[HELD]; /* by the place in which its completion comes, which is that of posting */
    uint32_t posted, head, tail;
} wire;

static int post(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    const bool ours = qp->send_cq == w->node[0].cq;
    for (const struct fab_wr *i = wr; ours && i != NULL; i = i->next) {
        uint64_t bytes = 0, jitter = 0;
        for (int k = 0; k < i->num_sge; k++)
            bytes += i->sg_list[k].length;
        wire.random = wire.random * 6364136223846793005ull + 1442695040888963407ull;
        if (wire.jitter_ns != 0)
            jitter = (wire.random >> 33) % wire.jitter_ns;
        if (wire.free_ns < w->now_ns)
            wire.free_ns = w->now_ns;
        if (wire.bytes_per_us != 0)
            wire.free_ns += bytes * 1000 / wire.bytes_per_us;
        /* Every request that these tests post is signalled. */
        wire.due_ns[wire.posted++ % HELD] = wire.free_ns + wire.delay_ns + jitter;
    }
    return wire.real->post_send(qp, wr, bad);
}

static int poll(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (cq != w->node[0].cq)
        return wire.real->poll(cq, n, wc);
    struct ibv_wc one;
    while (wire.tail - wire.head < HELD && wire.real->poll(cq, 1, &one) == 1)
        wire.wc[wire.tail++ % HELD] = one;
    int got = 0;
    for (; got < n && wire.head != wire.tail && wire.due_ns[wire.head % HELD] <= w->now_ns; got++)
        wc[got] = wire.wc[wire.head++ % HELD];
    return got;
}

static void put_wire_between(uint64_t seed)
{
    memset(&wire, 0, sizeof wire);
    wire.real = w->node[0].fab->ops;
    wire.ops = *wire.real;
    wire.ops.post_send = post;
    wire.ops.poll = poll;
    wire.random = seed;
    w->node[0].fab->ops = &wire.ops;
}

/* ---- requests */

static uint64_t last_posted, last_done; /* wr_id */

static void post_some(struct world_worker *k, uint32_t count, uint32_t length, uint32_t vkey)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, ++last_posted, 0, length, vkey, 0);
        world_post(k, &d);
    }
    lane_doorbell(w->node[0].lane, k->id);
}

/* Each once, in the order of posting. */
static void all_end_well(struct world_worker *k, uint32_t count)
{
    struct schema_cqe e;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(world_poll(w, k, &e, 100000));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, ++last_done);
    }
    ck_assert_uint_eq(last_done, last_posted);
    ck_assert(!world_poll(w, k, &e, 1));
}

static uint32_t begin(struct world_worker *owner, struct world_worker *k, uint64_t seed)
{
    world_open(w);
    world_attach(w, owner, 1, 0, TENANT);
    world_attach(w, k, 0, 0, TENANT);
    const uint32_t vkey = world_register(w, owner, 0, REGION, ALL);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    post_some(k, 1, 8, vkey);
    all_end_well(k, 1);
    put_wire_between(seed);
    return vkey;
}

static void finish(struct world_worker *owner, struct world_worker *k)
{
    w->node[0].fab->ops = wire.real;
    world_unpair(w, owner, k);
}

START_TEST(all_requests_to_a_peer_that_answers_late_end_well)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct world_worker owner, k;
        const uint32_t vkey = begin(&owner, &k, seed);
        const uint64_t late_ns = w->node[0].config.suspect_ns * 16 / 10;
        wire.delay_ns = late_ns - late_ns / 10;
        wire.jitter_ns = late_ns / 5;
        post_some(&k, 1, 8, vkey);
        world_run(w, (unsigned)(w->node[0].config.suspect_ns * 12 / 10 / 1000));
        post_some(&k, REQUESTS - 1, 8, vkey);
        all_end_well(&k, REQUESTS);
        ck_assert_uint_eq(world_stats(w, 0).suspects, 0);
        finish(&owner, &k);
    }
}
END_TEST

/* More than the session's places, and than its ring: a worker finds no room then, and nothing that
 * it has posted fails for that. */
START_TEST(what_a_suspect_peer_is_sent_waits_in_the_ring_until_it_answers)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct world_worker owner, k;
        uint32_t room, count = 2;
        const uint32_t vkey = begin(&owner, &k, seed);
        const uint64_t suspect_ns = w->node[0].config.suspect_ns;
        wire.delay_ns = 20 * suspect_ns;
        wire.jitter_ns = suspect_ns;
        post_some(&k, 1, 8, vkey);
        world_run(w, (unsigned)(2 * suspect_ns / 1000));
        const uint64_t posted = world_stats(w, 0).posted;
        post_some(&k, 1, 8, vkey); /* at which its silence is seen */
        world_run(w, 2);
        ck_assert_uint_eq(world_stats(w, 0).suspects, 1);
        while ((room = RING - (k.sq_tail - atomic_load(&k.r->sq_head))) > 0) {
            post_some(&k, room, 8, vkey);
            count += room;
            world_run(w, 10);
        }
        world_run(w, (unsigned)(2 * suspect_ns / 1000));
        ck_assert_uint_eq(world_stats(w, 0).posted, posted);
        ck_assert_uint_eq(world_stats(w, 0).suspects, 1);
        ck_assert_uint_eq(k.sq_tail - atomic_load(&k.r->sq_head), RING);
        ck_assert_uint_eq(atomic_load(&k.r->cq_tail), k.cq_head);
        ck_assert_uint_eq(count, PLACES + RING);
        wire.delay_ns = wire.jitter_ns = 0;
        all_end_well(&k, count);
        ck_assert_uint_eq(world_stats(w, 0).suspects, 0);
        finish(&owner, &k);
    }
}
END_TEST

START_TEST(a_peer_is_not_suspect_while_its_bytes_are_on_the_wire)
{
    struct world_worker owner, k;
    world_port_rate = 160 * 1000;
    const uint32_t vkey = begin(&owner, &k, 1);
    world_port_rate = 0;
    const uint64_t suspect_ns = w->node[0].config.suspect_ns;
    wire.bytes_per_us = 160; /* of one request in twice the time after which a peer is suspect */
    post_some(&k, 1, REGION, vkey);
    world_run(w, (unsigned)(suspect_ns * 15 / 10 / 1000));
    post_some(&k, 1, REGION, vkey);
    world_run(w, 2);
    ck_assert_uint_eq(world_stats(w, 0).suspects, 0);
    ck_assert_uint_eq(world_stats(w, 0).posted, 3);
    all_end_well(&k, 2);
    finish(&owner, &k);
}
END_TEST

/* As much as a worker may have out, on a wire that takes four times bound for it. */
START_TEST(a_healthy_backlog_is_not_ended_as_overdue)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct world_worker owner, k;
        world_end_overdue = true;
        world_mr_lease_ns[1] = 60 * BASE_NS_PER_S;
        world_port_rate = (uint64_t)BACKLOG * REGION * 1000 / 800;
        world_most_bytes = world_port_rate / 5 / 2; /* what it carries in half of bound */
        const uint32_t vkey = begin(&owner, &k, seed);
        world_end_overdue = false;
        world_mr_lease_ns[1] = world_most_bytes = world_port_rate = 0;
        ck_assert_uint_eq(w->node[0].config.bound_ns, 200000);
        wire.bytes_per_us = (uint64_t)BACKLOG * REGION / 800;
        wire.jitter_ns = 10000;
        post_some(&k, BACKLOG, REGION, vkey);
        all_end_well(&k, BACKLOG);
        ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 0);
        finish(&owner, &k);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(all_requests_to_a_peer_that_answers_late_end_well)                                           \
    T(what_a_suspect_peer_is_sent_waits_in_the_ring_until_it_answers)                              \
    T(a_peer_is_not_suspect_while_its_bytes_are_on_the_wire)                                       \
    T(a_healthy_backlog_is_not_ended_as_overdue)
KEDGE_CHECK_MAIN("agent.lane.backlog", TESTS)
