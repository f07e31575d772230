/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that post, connect, destroy and end at random, while queue pairs break and nodes restart,
 * fall silent and come back, and answers are lost: each request completes once and in order, or its
 * VQP or session was gone, and in the end nothing waits any more. */
#include <stdatomic.h>

#include "../../check_main.h"
#include "schema/peers.h"
#include "world.h"
#include "world_hybrid.h"

enum {
    SEEDS = 24,
    ACTIONS = 4000,
    WORKERS = 6,
    VQPS = 8,
    LIVES = 256, /* generations of a VQP that a test gets to */
    SLOT_MASK = 63,
    REGIONS = 64, /* of each owner, one for each life of its node */
    WRONG_KEY = 12345,
    TENANTS = 2, /* so that one that breaks queue pairs is put apart from the other */
    LOSS_PPM = 5000,
    LONG = 400000 /* passes: a time-out of the device is in real time */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

/* One generation of a VQP. Its requests are numbered from 0. */
struct life {
    uint64_t posted, done;
    uint64_t bound; /* bit n % 64: the VQP was connected anew before request n */
    bool failed;    /* and all later ones fail, until it is connected anew */
};

struct churner {
    struct world_worker k;
    bool attached;
    uint16_t gen[VQPS];
    uint8_t node[VQPS]; /* to which it was connected last */
    bool binds[VQPS];   /* before what is posted next */
    bool bound[VQPS];   /* since it was destroyed */
    struct life life[VQPS][LIVES];
};

static struct world world;
static struct world *w = &world;
static struct churner churner[WORKERS];
static struct world_worker owner[WORLD_NODES][TENANTS], gone[WORLD_NODES][TENANTS];
static uint32_t good_key[WORLD_NODES][TENANTS], gone_key[WORLD_NODES][TENANTS];
static uint32_t restarts[WORLD_NODES];
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % n;
}

/* ---- what workers do */

static void attach(uint32_t id)
{
    churner[id] = (struct churner){.attached = true};
    world_attach(w, &churner[id].k, 0, 1 + id, (1 + id) % TENANTS);
}

static bool has_room(const struct churner *c)
{
    return c->k.sq_tail - atomic_load(&c->k.r->sq_head) < SLOT_MASK;
}

static void ring(struct churner *c, const struct schema_sq_desc *d)
{
    world_post(&c->k, d);
    lane_doorbell(w->node[0].lane, c->k.id);
}

static void bind(struct churner *c, uint16_t vqp)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_BIND, .slots = 1, .vqp = vqp, .vqp_gen = c->gen[vqp]};
    const uint32_t node = below(WORLD_NODES);
    const uint8_t *gid = w->node[node].fab->caps.gid;
    if (schema_peers_find(w->node[0].peers, gid, 1, &d.bind.peer_slot, &d.bind.peer_gen) != 0)
        return; /* it is unknown just now */
    ring(c, &d);
    c->binds[vqp] = c->bound[vqp] = true;
    c->node[vqp] = (uint8_t)node;
}

static void destroy(struct churner *c, uint16_t vqp)
{
    if (c->gen[vqp] == LIVES - 1)
        return;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = vqp, .vqp_gen = c->gen[vqp]++};
    ring(c, &d);
    c->binds[vqp] = c->bound[vqp] = false;
}

static uint32_t some_key(uint32_t node, uint32_t tenant)
{
    const uint32_t which = below(400);
    return which < 1 ? WRONG_KEY : which < 20 ? gone_key[node][tenant] : good_key[node][tenant];
}

static void post(struct churner *c, uint16_t vqp)
{
    struct life *life = &c->life[vqp][c->gen[vqp]];
    const uint64_t n = life->posted++, bit = 1ull << n % 64;
    struct schema_sq_desc d =
        world_rw(below(2) ? SCHEMA_OP_READ : SCHEMA_OP_WRITE, n, 64 * below(64), 8,
                 some_key(c->node[vqp], c->k.id % TENANTS), 64 * below(8));
    if (below(50) == 0)
        d.post.offset = WORLD_ARENA; /* the lane refuses it, when all before it are over */
    d.vqp = vqp;
    d.vqp_gen = c->gen[vqp];
    life->bound = c->binds[vqp] ? life->bound | bit : life->bound & ~bit;
    c->binds[vqp] = false;
    ring(c, &d);
}

/* ---- what they hear */

static void check_one(struct churner *c, const struct schema_cqe *e)
{
    ck_assert_uint_lt(e->vqp, VQPS);
    ck_assert_uint_le(e->vqp_gen, c->gen[e->vqp]);
    struct life *life = &c->life[e->vqp][e->vqp_gen];
    ck_assert_uint_eq(e->wr_id, life->done);
    ck_assert_uint_lt(e->wr_id, life->posted);
    if (life->bound >> e->wr_id % 64 & 1)
        life->failed = false;
    if (life->failed)
        ck_assert_uint_ne(e->status, IBV_WC_SUCCESS);
    life->failed = e->status != IBV_WC_SUCCESS;
    life->done++;
}

static void harvest(struct churner *c)
{
    const struct schema_cqe *cqes = (const void *)((const uint8_t *)c->k.r + SCHEMA_CQ_OFFSET);
    for (; c->k.cq_head != atomic_load(&c->k.r->cq_tail); c->k.cq_head++)
        check_one(c, &cqes[c->k.cq_head & SLOT_MASK]);
    atomic_store(&c->k.w->cq_head, c->k.cq_head);
}

static void detach(struct churner *c)
{
    if (c->attached)
        world_detach(w, &c->k);
    c->attached = false;
}

static void harvest_all(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (churner[i].attached)
            harvest(&churner[i]);
}

static void run(unsigned passes)
{
    for (; passes > 0; passes--) {
        world_run(w, 1);
        harvest_all();
    }
}

static bool is_done(const struct churner *c)
{
    for (int q = 0; q < VQPS; q++)
        if (c->life[q][c->gen[q]].done != c->life[q][c->gen[q]].posted)
            return false;
    return true;
}

/* ---- what happens to them */

static void register_all(uint32_t node)
{
    for (uint32_t t = 0; t < TENANTS; t++) {
        good_key[node][t] = world_register(w, &owner[node][t], 0, 4096, ALL);
        gone_key[node][t] = world_register(w, &gone[node][t], 0, 4096, ALL);
    }
}

/* The memory of the second owner is gone, while its table still has it. */
static void open_node(uint32_t node)
{
    for (uint32_t t = 0; t < TENANTS; t++) {
        world_attach(w, &owner[node][t], node, WORKERS + 1 + 2 * t, t);
        world_attach(w, &gone[node][t], node, WORKERS + 2 + 2 * t, t);
    }
    register_all(node);
    for (uint32_t t = 0; t < TENANTS; t++)
        world_take_away(w, &gone[node][t]);
}

static void restart(uint32_t node)
{
    if (restarts[node] == REGIONS - 1)
        return;
    restarts[node]++;
    world_restart_node(w, node);
    register_all(node);
}

/* The device gives up a queue pair of node 0's, and says so or not. */
static void break_one(void)
{
    struct world_node *n = &w->node[0];
    struct fab_qp *qp = w->rc ? n->last_link : n->res.dci[below(WORLD_DCIS)];
    if (w->hybrid && below(2))
        qp = world_link(w, 0, below(64));
    if (qp == NULL || fab_qp_state(qp) != IBV_QPS_RTS)
        return;
    world_break(w, 0, qp);
    if (below(2))
        world_fatal(w, 0, qp);
}

static void set_window(void)
{
    struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                             .window = {.scope = LANE_WINDOW_DEVICE, .ops = below(3) * 4}};
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

static void happen(void)
{
    const uint32_t id = below(WORKERS);
    const uint32_t node = 1 + below(WORLD_NODES - 1);
    switch (below(12)) {
    case 0:
    case 1:
        restart(node);
        break;
    case 2:
        world_silence_node(w, node);
        break;
    case 3:
    case 4:
        break_one();
        break;
    case 5:
        set_window();
        break;
    case 6:
        detach(&churner[id]);
        attach(id);
        break;
    case 7:
        run(1 + below(1000));
        break;
    default:
        world_sleep(w, below(3) * 1000000);
        harvest_all();
        break;
    }
}

static bool is_usable(const struct churner *c, uint16_t vqp)
{
    return c->binds[vqp] || (c->bound[vqp] && !c->life[vqp][c->gen[vqp]].failed);
}

static void act(void)
{
    struct churner *c = &churner[below(WORKERS)];
    const uint16_t vqp = (uint16_t)below(VQPS);
    const uint32_t what = below(100);
    if (w->hybrid && below(8) == 0)
        world_transfer(w, 0, below(1024));
    if (what < 3) {
        happen();
    } else if (c->k.r->ended != 0) { /* it has guessed too many keys */
        detach(c);
        attach((uint32_t)(c - churner));
    } else if (!has_room(c)) {
        run(10);
    } else if (what < 6 || (what < 60 && !is_usable(c, vqp))) {
        bind(c, vqp);
    } else if (what < 9) {
        destroy(c, vqp);
    } else if (what < 70) {
        post(c, vqp);
    } else {
        run(below(4));
    }
}

/* Breaks that are close together count as one against a tenant: so now and then time passes after
 * one, for tenants to be put apart. */
static void pass_time(void)
{
    static uint64_t seen;
    const uint64_t broken = world_stats(w, 0).qp_broken;
    if (broken != seen && below(4) != 0)
        world_sleep(w, 150000000);
    seen = broken;
}

/* Sooner or later everything comes back. A tenant who is apart waits after each request of his that
 * breaks a queue pair, which takes him no passes. */
static void settle(void)
{
    for (int i = 0; i < WORKERS; i++)
        for (int n = 0; n < LONG && churner[i].k.r->ended == 0 && !is_done(&churner[i]); n++) {
            lane_doorbell(w->node[0].lane, churner[i].k.id);
            run(1);
            if (world_stats(w, 0).tenants_resting > 0)
                world_sleep(w, 1000000);
        }
    for (int i = 0; i < WORKERS; i++)
        ck_assert_msg(churner[i].k.r->ended != 0 || is_done(&churner[i]), "worker %d waits", i);
    for (int n = 0; n < LONG && world_stats(w, 0).inflight > 0; n++)
        run(1);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
}

static void churn(uint64_t seed)
{
    state = seed;
    memset(restarts, 0, sizeof restarts);
    for (int i = 0; i < ACTIONS; i++) {
        act();
        pass_time();
    }
    settle();
}

START_TEST(each_request_completes_once_and_in_order_and_in_the_end_nothing_waits)
{
    uint64_t quarantined = 0, transfers = 0;
    world_max_mrs = REGIONS;
    world_max_flows = WORKERS * VQPS + WORLD_NODES; /* each life of a node that a VQP is bound to */
    /* And as many more as it takes until somebody was apart. */
    for (uint64_t seed = 1; seed <= SEEDS || (quarantined == 0 && seed <= 4 * SEEDS); seed++) {
        struct fault_plan plan = {.seed = seed, .answer_loss_ppm = 1};
        world_fault = plan;
        world_open(w);
        for (uint32_t node = 0; node < WORLD_NODES; node++)
            open_node(node);
        for (uint32_t i = 0; i < WORKERS; i++)
            attach(i);
        for (uint32_t node = 0; node < WORLD_NODES; node++) /* so that they are known */
            ck_assert_int_eq(world_connect(w, &churner[0].k, 0, node), 0);
        churner[0].binds[0] = true;
        plan.answer_loss_ppm = seed % 2 == 0 ? LOSS_PPM : 0;
        fault_set_plan(w->node[0].fab, &plan);
        churn(seed);
        quarantined += world_stats(w, 0).quarantined;
        transfers += world_stats(w, 0).transfers;
        for (int i = 0; i < WORKERS; i++)
            detach(&churner[i]);
        ck_assert_uint_eq(world_stats(w, 0).vqps, 0);
        for (uint32_t node = 0; node < WORLD_NODES; node++) {
            for (uint32_t t = 0; t < TENANTS; t++) {
                world_detach(w, &owner[node][t]);
                world_detach(w, &gone[node][t]);
            }
        }
        world_close(w);
    }
    ck_assert_uint_gt(quarantined, 0);
    ck_assert(!w->hybrid || transfers > 1000);
}
END_TEST

#define TESTS(T) T(each_request_completes_once_and_in_order_and_in_the_end_nothing_waits)
KEDGE_CHECK_MAIN("agent.lane.churn", TESTS)
