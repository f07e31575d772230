/* SPDX-License-Identifier: Apache-2.0 */
/* DC and connections in one lane: VQPs go from one to the other and back under continuous traffic
 * whose data is numbered, on a device that takes its time with READs and atomics as it may, while
 * queue pairs break and nodes restart, fall silent and refuse. Nothing is lost, repeated or
 * reordered. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/peers.h"
#include "world.h"
#include "world_hybrid.h"

enum {
    TENANT = 1,
    VQPS = 4, /* of one worker: two to each of two nodes */
    PASSES = 6000,
    SLOTS = 16,   /* a VQP's requests that are out or wait, so that one worker's ring has room */
    CELL = 64,    /* bytes between two VQPs' words, and between two of one's */
    WORDS = 3,    /* data, flag, counter */
    LONG = 400000 /* passes: a time-out of the device is in real time */
};
/* Seeds of each kind; and when there are minutes (ops/test --long). A sanitizer takes ten times as
 * long for each. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 4, LONG_SEEDS = 8, SHORT = 8 };
#else
enum { SEEDS = 6, LONG_SEEDS = 32, SHORT = 4 };
#endif
/* Time-outs of the device, which has the machine's clock: SHORT ones, 0.5 ms with repetitions (7 ms
 * under a sanitizer), where what is not answered is to end; and of 14 s where all is answered, so
 * that no slow machine ends what is held back. */
enum { PATIENT = 19 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

/* What a VQP does, over and over: writes n as data, then as flag, adds one to the counter, and
 * reads the data. */
enum step { DATA, FLAG, ADD, READ, STEPS };

struct stream {
    uint16_t gen;
    uint32_t node;
    uint64_t posted, done, good_adds, bad_adds, base;
    bool failed, bound;
};

static struct world world;
static struct world *w = &world;
static struct world_worker owner[WORLD_NODES], k;
static uint32_t vkey[WORLD_NODES];
static struct stream stream[VQPS];
static uint64_t state, ended_well;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % n;
}

static _Atomic uint64_t *word_of(const struct world_worker *of, uint64_t offset)
{
    return (_Atomic uint64_t *)(void *)((uint8_t *)of->arena.addr + offset);
}

static uint64_t place_of(uint32_t vqp, uint32_t word)
{
    return (vqp * WORDS + word) * CELL;
}

static _Atomic uint64_t *far_word(uint32_t vqp, uint32_t word)
{
    return word_of(&owner[stream[vqp].node], place_of(vqp, word));
}

/* A place of its own for what each request reads from or into. */
static uint64_t near_place(uint32_t vqp, uint64_t number)
{
    return (vqp * 64 + number % 64) * CELL;
}

/* soft has time-outs by the clock, of half a millisecond here: a READ of a table that it has held
 * back ends as one that nobody answered where the machine lets this process wait for longer. */
static void make_known(uint32_t node)
{
    int status = -EHOSTUNREACH;
    for (int i = 0; i < 100 && status == -EHOSTUNREACH; i++) {
        status = world_connect(w, &k, 7, node);
        if (status != 0)
            world_sleep(w, 1000000);
    }
    ck_assert_int_eq(status, 0);
}

static void open_world_by(const char *transport, const char *order)
{
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", transport, 1), 0);
    if (order != NULL)
        setenv("KEDGE_SOFT_ORDER", order, 1);
    else
        unsetenv("KEDGE_SOFT_ORDER");
    memset(stream, 0, sizeof stream);
    ended_well = 0;
    world_open(w);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world_attach(w, &owner[i], i, 0, TENANT);
        vkey[i] = world_register(w, &owner[i], 0, 4096, ALL);
    }
    world_attach(w, &k, 0, 1, TENANT);
    for (uint32_t i = 1; i < WORLD_NODES; i++)
        make_known(i);
    for (uint32_t v = 0; v < VQPS; v++)
        stream[v].node = 1 + v % 2;
}

static void open_world(const char *order)
{
    open_world_by("hybrid", order);
}

static void close_world(void)
{
    world_connections_per_peer = 0;
    world_detach(w, &k);
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        world_detach(w, &owner[i]);
    world_close(w);
    memset(world_no_rc, 0, sizeof world_no_rc);
    memset(world_no_dc, 0, sizeof world_no_dc);
    unsetenv("KEDGE_SOFT_ORDER");
}

/* ---- the traffic */

static bool has_room(uint32_t slots)
{
    return k.sq_tail + slots - atomic_load(&k.r->sq_head) <= 63;
}

static void bind_stream(uint32_t vqp)
{
    struct stream *s = &stream[vqp];
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_BIND, .slots = 1, .vqp = (uint16_t)vqp, .vqp_gen = s->gen};
    const uint8_t *gid = w->node[s->node].fab->caps.gid;
    if (schema_peers_find(w->node[0].peers, gid, 1, &d.bind.peer_slot, &d.bind.peer_gen) != 0)
        return;
    world_post(&k, &d);
    s->bound = true;
}

static void post_next(uint32_t vqp)
{
    struct stream *s = &stream[vqp];
    const uint64_t number = s->posted, n = number / STEPS + 1, near = near_place(vqp, number);
    const enum step step = number % STEPS;
    static const uint8_t ops[STEPS] = {SCHEMA_OP_WRITE, SCHEMA_OP_WRITE, SCHEMA_OP_FAA,
                                       SCHEMA_OP_READ};
    static const uint32_t words[STEPS] = {0, 1, 2, 0};
    if (!s->bound)
        bind_stream(vqp);
    if (!s->bound)
        return;
    struct schema_sq_desc d =
        world_rw(ops[step], number, near, 8, vkey[s->node], place_of(vqp, words[step]));
    if (step == ADD) { /* behind READs and additions before it, which may be late */
        d.flags |= SCHEMA_OP_FENCE;
        d.post.compare_add = 1;
    } else if (step != READ) {
        *word_of(&k, near) = n;
    }
    d.vqp = (uint16_t)vqp;
    d.vqp_gen = s->gen;
    world_post(&k, &d);
    s->posted++;
}

static void post_some(void)
{
    for (int i = 0; i < 8; i++) {
        const uint32_t vqp = below(VQPS);
        const struct stream *s = &stream[vqp];
        if (has_room(2) && !s->failed && s->posted - s->done < SLOTS / 2)
            post_next(vqp);
    }
}

/* ---- what must hold */

/* Whoever reads the flag, and then what it announces, finds that. */
static void look_at_flags(void)
{
    for (uint32_t v = 0; v < VQPS; v++) {
        const uint64_t flag = *far_word(v, 1), data = *far_word(v, 0);
        ck_assert_msg(data >= flag, "VQP %u: flag %lu came before data %lu", v, (unsigned long)flag,
                      (unsigned long)data);
    }
}

static void check_one(const struct schema_cqe *e)
{
    struct stream *s = &stream[e->vqp];
    const uint64_t near = *word_of(&k, near_place(e->vqp, e->wr_id)), n = e->wr_id / STEPS + 1;
    ck_assert_uint_lt(e->vqp, VQPS);
    ck_assert_uint_eq(e->vqp_gen, s->gen);
    ck_assert_uint_eq(e->wr_id, s->done++); /* each once, in order */
    const bool good = e->status == IBV_WC_SUCCESS;
    ck_assert(!good || !s->failed);
    s->failed |= !good;
    ended_well += good;
    switch (e->wr_id % STEPS) {
    case ADD:
        if (good)
            ck_assert_uint_eq(near, s->base + s->good_adds);
        s->good_adds += good;
        s->bad_adds += !good;
        break;
    case READ:
        ck_assert(!good || near >= n);
        break;
    default:
        break;
    }
}

static void harvest(void)
{
    const struct schema_cqe *cqes = (const void *)((const uint8_t *)k.r + SCHEMA_CQ_OFFSET);
    for (; k.cq_head != atomic_load(&k.r->cq_tail); k.cq_head++)
        check_one(&cqes[k.cq_head & 63]);
    atomic_store(&k.w->cq_head, k.cq_head);
}

/* Nothing of it is out: each addition that ended well was carried out once, each other once at
 * most. It begins anew. */
static void count_additions(uint32_t vqp, uint64_t unanswered, uint16_t gen)
{
    struct stream *s = &stream[vqp];
    const uint64_t counted = *far_word(vqp, 2), least = s->base + s->good_adds;
    ck_assert_msg(counted >= least && counted <= least + s->bad_adds + unanswered,
                  "VQP %u: %lu additions, of which %lu ended well and %lu did not, on %lu", vqp,
                  (unsigned long)counted, (unsigned long)s->good_adds, (unsigned long)s->bad_adds,
                  (unsigned long)s->base);
    *s = (struct stream){.gen = gen, .node = s->node, .base = counted};
    *far_word(vqp, 1) = *far_word(vqp, 0) = 0;
}

static void begin_again(uint32_t vqp)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = (uint16_t)vqp, .vqp_gen = stream[vqp].gen};
    world_post(&k, &d);
    count_additions(vqp, 0, (uint16_t)(stream[vqp].gen + 1));
}

/* It has used keys of former lives too often. */
static void attach_again(void)
{
    world_detach(w, &k);
    world_attach(w, &k, 0, 1, TENANT);
    for (uint32_t v = 0; v < VQPS; v++)
        count_additions(v, stream[v].posted - stream[v].done, 0);
}

static void pass(void)
{
    lane_doorbell(w->node[0].lane, k.id);
    world_run(w, 1);
    harvest();
    look_at_flags();
    if (k.r->ended != 0)
        attach_again();
    for (uint32_t v = 0; v < VQPS; v++)
        if (stream[v].failed && stream[v].done == stream[v].posted && has_room(1))
            begin_again(v);
}

static void settle(void)
{
    for (uint32_t v = 0; v < VQPS; v++)
        for (int i = 0; i < LONG && stream[v].done != stream[v].posted; i++)
            pass();
    for (uint32_t v = 0; v < VQPS; v++) {
        ck_assert_uint_eq(stream[v].done, stream[v].posted);
        ck_assert_uint_eq(*far_word(v, 2), stream[v].base + stream[v].good_adds);
    }
}

/* ---- what happens meanwhile */

static void restart(uint32_t node)
{
    world_restart_node(w, node);
    vkey[node] = world_register(w, &owner[node], 0, 4096, ALL);
}

static void break_one(void)
{
    struct fab_qp *qp =
        below(2) || w->rc ? world_link(w, 0, below(64)) : w->node[0].res.dci[below(3)];
    if (qp == NULL || fab_qp_state(qp) != IBV_QPS_RTS)
        return;
    world_break(w, 0, qp);
    if (below(2))
        world_fatal(w, 0, qp);
}

static void happen(void)
{
    const uint32_t node = 1 + below(2);
    switch (below(6)) {
    case 0:
        restart(node);
        break;
    case 1:
        world_silence_node(w, node); /* dies in the middle of whatever there was */
        for (uint32_t i = 0; i < below(2000); i++)
            pass();
        restart(node);
        break;
    case 2:
    case 3:
        break_one();
        break;
    case 4: /* it takes no connections from now on; its record says so when it is READ again */
        world_no_rc[node] = !world_no_rc[node];
        restart(node);
        break;
    default:
        world_sleep(w, 1000000);
        harvest();
        break;
    }
}

/* ---- */

/* How many transfers there were. */
static uint64_t run_stream(const char *transport, uint64_t seed, uint32_t fault_every)
{
    char order[32];
    snprintf(order, sizeof order, "late:%lu", (unsigned long)seed);
    state = seed;
    world_ack_timeout = fault_every > 0 ? SHORT : PATIENT;
    open_world_by(transport, seed % 4 != 0 ? order : NULL);
    for (uint32_t i = 0; i < PASSES; i++) {
        post_some();
        if (below(12) == 0 && w->hybrid)
            world_transfer(w, 0, below(64));
        if (below(24) == 0)
            w->now_ns += 1000000; /* so that the lane keeps house often */
        pass();
        if (fault_every > 0 && below(fault_every) == 0)
            happen();
    }
    settle();
    const struct lane_stats stats = world_stats(w, 0);
    for (uint32_t v = 0; v < VQPS && fault_every == 0; v++)
        ck_assert(!stream[v].failed && stream[v].gen == 0);
    ck_assert_uint_gt(ended_well, PASSES / 8);
    ck_assert_uint_ge(stats.links_taken, stats.links_left);
    close_world();
    world_ack_timeout = SHORT;
    return stats.transfers;
}

static uint64_t seeds(void)
{
    return getenv("KEDGE_TEST_LONG") != NULL ? LONG_SEEDS : SEEDS;
}

START_TEST(transfers_lose_repeat_and_reorder_nothing)
{
    uint64_t transfers = 0;
    for (uint64_t seed = 1; seed <= seeds(); seed++)
        transfers += run_stream("hybrid", seed, 0);
    ck_assert_uint_gt(transfers, 300 * seeds());
}
END_TEST

START_TEST(nor_do_they_while_queue_pairs_break_and_nodes_die_restart_and_refuse)
{
    uint64_t transfers = 0;
    for (uint64_t seed = 1; seed <= seeds(); seed++)
        transfers += run_stream("hybrid", 1000 + seed, 300);
    ck_assert_uint_gt(transfers, 15 * seeds()); /* over 60 of each where nothing else runs */
}
END_TEST

static void use(uint32_t vqp, unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        if (has_room(2) && stream[vqp].posted - stream[vqp].done < SLOTS / 2)
            post_next(vqp);
        pass();
    }
}

START_TEST(what_is_used_much_gets_a_connection_by_itself_and_loses_it_when_it_is_idle)
{
    open_world(NULL);
    use(0, 100000); /* 100 ms */
    ck_assert_uint_eq(world_stats(w, 0).links, 1);
    ck_assert_uint_eq(world_stats(w, 0).links_taken, 1);
    settle();
    for (int i = 0; i < 40; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    ck_assert_uint_eq(world_stats(w, 0).links_left, 1);
    use(0, 100); /* and by DC it goes on */
    settle();
    close_world();
}
END_TEST

START_TEST(nodes_with_and_without_dc_are_reached_in_one_cluster)
{
    world_no_rc[1] = true; /* an agent of DC alone */
    world_no_dc[2] = true; /* a device without DC */
    open_world(NULL);
    use(0, 60000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    use(1, 200);
    ck_assert_uint_eq(world_stats(w, 0).links, 1);
    ck_assert_uint_eq(world_stats(w, 0).links_taken, 0); /* it has no other way */
    settle();
    ck_assert_uint_gt(stream[0].good_adds, 0);
    ck_assert_uint_gt(stream[1].good_adds, 0);
    close_world();
}
END_TEST

/* A handshake that is not answered, or refused: DC goes on, and the endpoint is not held dead. */
START_TEST(a_connection_that_cannot_be_made_costs_nothing_but_the_try)
{
    open_world(NULL);
    use(0, 100);
    connector_free(w->node[1].connector);
    w->node[1].connector = NULL;
    use(0, 300000);
    const struct lane_stats stats = world_stats(w, 0);
    ck_assert_uint_ge(stats.paths_failed, 1);
    ck_assert_uint_eq(stats.links_taken, 0);
    ck_assert_uint_eq(stats.lookups_again, 0);
    ck_assert(!stream[0].failed);
    settle();
    close_world();
}
END_TEST

/* ---- several connections for each peer, without DC */

START_TEST(of_several_connections_each_keeps_its_order_while_they_break_and_nodes_die)
{
    for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
        world_connections_per_peer = 1u << seed % 4;
        (void)run_stream("rc", 2000 + seed, 300);
    }
}
END_TEST

static void use_both(unsigned passes)
{
    for (unsigned i = 0; i < passes; i++)
        for (uint32_t v = 0; v < VQPS; v += 2) { /* of one node */
            if (has_room(2) && !stream[v].failed && stream[v].posted - stream[v].done < SLOTS / 2)
                post_next(v);
            pass();
        }
}

/* VQP 0 is pinned to another one than the first; then, with half of WORLD_LINKS in use, VQP 2 has
 * the first. */
START_TEST(the_break_of_one_of_several_connections_is_no_matter_to_the_others)
{
    world_connections_per_peer = 4;
    open_world_by("rc", NULL);
    use_both(200);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    const uint64_t broken = world_stats(w, 0).qp_broken;
    for (int round = 0; round < 20; round++) {
        const struct fab_qp *const kept = world_link_of(w, 0, k.id, 2);
        struct fab_qp *const qp = world_link_of(w, 0, k.id, 0);
        ck_assert(qp != NULL && kept != NULL && qp != kept);
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        use_both(200);
        ck_assert(!stream[2].failed);
        ck_assert_ptr_eq(world_link_of(w, 0, k.id, 2), kept);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, broken + 20);
    settle();
    ck_assert_uint_eq(stream[2].bad_adds, 0);
    close_world();
}
END_TEST

/* With half of all connections in use who would have another one goes by the first. */
START_TEST(where_connections_are_short_the_first_is_used)
{
    world_connections_per_peer = 8;
    world_max_links = 2; /* one for VQP 0, and the first for VQP 2 */
    open_world_by("rc", NULL);
    use_both(200);
    stream[3].node = stream[0].node; /* and VQP 3, which would have another one */
    use(3, 400);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    ck_assert_ptr_eq(world_link_of(w, 0, k.id, 2), world_link_of(w, 0, k.id, 3));
    ck_assert_ptr_ne(world_link_of(w, 0, k.id, 0), world_link_of(w, 0, k.id, 3));
    ck_assert_uint_eq(world_stats(w, 0).links_evicted, 0);
    settle();
    ck_assert(!stream[0].failed && !stream[2].failed);
    close_world();
    world_max_links = 0;
}
END_TEST

START_TEST(a_connection_beside_the_first_goes_when_it_is_idle)
{
    world_connections_per_peer = 4;
    open_world_by("rc", NULL);
    use_both(200);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    settle();
    for (int i = 0; i < 30; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_lt(world_stats(w, 0).links, 2);
    use_both(200);
    settle();
    ck_assert(!stream[0].failed && !stream[2].failed);
    close_world();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(transfers_lose_repeat_and_reorder_nothing)                                                   \
    T(nor_do_they_while_queue_pairs_break_and_nodes_die_restart_and_refuse)                        \
    T(what_is_used_much_gets_a_connection_by_itself_and_loses_it_when_it_is_idle)                  \
    T(nodes_with_and_without_dc_are_reached_in_one_cluster)                                        \
    T(a_connection_that_cannot_be_made_costs_nothing_but_the_try)                                  \
    T(of_several_connections_each_keeps_its_order_while_they_break_and_nodes_die)                  \
    T(the_break_of_one_of_several_connections_is_no_matter_to_the_others)                          \
    T(where_connections_are_short_the_first_is_used)                                               \
    T(a_connection_beside_the_first_goes_when_it_is_idle)
KEDGE_CHECK_MAIN("agent.lane.hybrid", TESTS)
