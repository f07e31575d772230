/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "schema/peers.h"
#include "world_hybrid.h"
#include "world_numbered.h"

enum {
    TENANT = 1,
    PASSES = 6000,
    SEEN_POLLS = 80, /* by then soft has all seen that is acknowledged */
    SLOTS = 16,      /* a VQP's requests that are out or wait, so that one worker's ring has room */
    CELL = 64,       /* bytes between two VQPs' words, and between two of one's */
    WORDS = 3,       /* data, flag, counter */
    LONG = 400000    /* passes: a time-out of the device is in real time */
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

static struct world world;
static struct world *const w = &world;
struct world *const numbered_world = &world;
struct world_worker numbered_worker;
static struct world_worker owner[WORLD_NODES];
static uint32_t vkey[WORLD_NODES];
struct numbered_vqp numbered_of[NUMBERED];
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
    return word_of(&owner[numbered_of[vqp].node], place_of(vqp, word));
}

/* A place of its own for what each request reads from or into. */
static uint64_t near_place(uint32_t vqp, uint64_t number)
{
    return (vqp * 64 + number % 64) * CELL;
}

/* soft has time-outs by the clock, of half a millisecond here: a READ of a table that it has held
 * back ends as one that nobody answered where the machine lets this process wait for longer. */
void numbered_make_known(uint32_t node)
{
    int status = -EHOSTUNREACH;
    for (int i = 0; i < 100 && status == -EHOSTUNREACH; i++) {
        status = world_connect(w, &numbered_worker, 7, node);
        if (status != 0)
            world_sleep(w, 1000000);
    }
    ck_assert_int_eq(status, 0);
}

void numbered_open(const char *transport, const char *order)
{
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", transport, 1), 0);
    if (order != NULL)
        setenv("KEDGE_SOFT_ORDER", order, 1);
    else
        unsetenv("KEDGE_SOFT_ORDER");
    memset(numbered_of, 0, sizeof numbered_of);
    ended_well = 0;
    world_open(w);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world_attach(w, &owner[i], i, 0, TENANT);
        vkey[i] = world_register(w, &owner[i], 0, 4096, ALL);
    }
    world_attach(w, &numbered_worker, 0, 1, TENANT);
    for (uint32_t i = 1; i < WORLD_NODES; i++)
        numbered_make_known(i);
    for (uint32_t v = 0; v < NUMBERED; v++)
        numbered_of[v].node = 1 + v % 2;
}

void numbered_close(void)
{
    world_connections_per_peer = world_max_links = 0;
    world_detach(w, &numbered_worker);
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
    return numbered_worker.sq_tail + slots - atomic_load(&numbered_worker.r->sq_head) <= 63;
}

static void bind_stream(uint32_t vqp)
{
    struct numbered_vqp *s = &numbered_of[vqp];
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_BIND, .slots = 1, .vqp = (uint16_t)vqp, .vqp_gen = s->gen};
    const uint8_t *gid = w->node[s->node].fab->caps.gid;
    if (schema_peers_find(w->node[0].peers, gid, 1, &d.bind.peer_slot, &d.bind.peer_gen) != 0)
        return;
    world_post(&numbered_worker, &d);
    s->bound = true;
}

static void post_next(uint32_t vqp)
{
    struct numbered_vqp *s = &numbered_of[vqp];
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
        *word_of(&numbered_worker, near) = n;
    }
    d.vqp = (uint16_t)vqp;
    d.vqp_gen = s->gen;
    world_post(&numbered_worker, &d);
    s->posted++;
}

static void post_some(void)
{
    for (int i = 0; i < 8; i++) {
        const uint32_t vqp = below(NUMBERED);
        const struct numbered_vqp *s = &numbered_of[vqp];
        if (has_room(2) && !s->failed && s->posted - s->done < SLOTS / 2)
            post_next(vqp);
    }
}

/* ---- what must hold */

/* Whoever reads the flag, and then what it announces, finds that. */
static void look_at_flags(void)
{
    for (uint32_t v = 0; v < NUMBERED; v++) {
        const uint64_t flag = *far_word(v, 1), data = *far_word(v, 0);
        ck_assert_msg(data >= flag, "VQP %u: flag %lu came before data %lu", v, (unsigned long)flag,
                      (unsigned long)data);
    }
}

static void check_one(const struct schema_cqe *e)
{
    struct numbered_vqp *s = &numbered_of[e->vqp];
    const uint64_t near = *word_of(&numbered_worker, near_place(e->vqp, e->wr_id)),
                   n = e->wr_id / STEPS + 1;
    ck_assert_uint_lt(e->vqp, NUMBERED);
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
    const struct schema_cqe *cqes =
        (const void *)((const uint8_t *)numbered_worker.r + SCHEMA_CQ_OFFSET);
    for (; numbered_worker.cq_head != atomic_load(&numbered_worker.r->cq_tail);
         numbered_worker.cq_head++)
        check_one(&cqes[numbered_worker.cq_head & 63]);
    atomic_store(&numbered_worker.w->cq_head, numbered_worker.cq_head);
}

/* Nothing of it is out: each addition that ended well was carried out once, each other once at
 * most. It begins anew. */
static void count_additions(uint32_t vqp, uint64_t unanswered, uint16_t gen)
{
    struct numbered_vqp *s = &numbered_of[vqp];
    const uint64_t counted = *far_word(vqp, 2), least = s->base + s->good_adds;
    ck_assert_msg(counted >= least && counted <= least + s->bad_adds + unanswered,
                  "VQP %u: %lu additions, of which %lu ended well and %lu did not, on %lu", vqp,
                  (unsigned long)counted, (unsigned long)s->good_adds, (unsigned long)s->bad_adds,
                  (unsigned long)s->base);
    *s = (struct numbered_vqp){.gen = gen, .node = s->node, .base = counted};
    *far_word(vqp, 1) = *far_word(vqp, 0) = 0;
}

static void begin_again(uint32_t vqp)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = (uint16_t)vqp, .vqp_gen = numbered_of[vqp].gen};
    world_post(&numbered_worker, &d);
    count_additions(vqp, 0, (uint16_t)(numbered_of[vqp].gen + 1));
}

/* It has used keys of former lives too often. */
static void attach_again(void)
{
    world_detach(w, &numbered_worker);
    world_attach(w, &numbered_worker, 0, 1, TENANT);
    for (uint32_t v = 0; v < NUMBERED; v++)
        count_additions(v, numbered_of[v].posted - numbered_of[v].done, 0);
}

void numbered_pass(void)
{
    lane_doorbell(w->node[0].lane, numbered_worker.id);
    world_run(w, 1);
    harvest();
    look_at_flags();
    if (numbered_worker.r->ended != 0)
        attach_again();
    for (uint32_t v = 0; v < NUMBERED; v++)
        if (numbered_of[v].failed && numbered_of[v].done == numbered_of[v].posted && has_room(1))
            begin_again(v);
}

void numbered_settle(void)
{
    for (uint32_t v = 0; v < NUMBERED; v++)
        for (int i = 0; i < LONG && numbered_of[v].done != numbered_of[v].posted; i++)
            numbered_pass();
    for (uint32_t v = 0; v < NUMBERED; v++) {
        ck_assert_uint_eq(numbered_of[v].done, numbered_of[v].posted);
        ck_assert_uint_eq(*far_word(v, 2), numbered_of[v].base + numbered_of[v].good_adds);
    }
}

/* ---- what happens meanwhile */

void numbered_restart(uint32_t node)
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
        numbered_restart(node);
        break;
    case 1:
        world_silence_node(w, node); /* dies in the middle of whatever there was */
        for (uint32_t i = 0; i < below(2000); i++)
            numbered_pass();
        numbered_restart(node);
        break;
    case 2:
    case 3:
        break_one();
        break;
    case 4: /* it takes no connections from now on; its record says so when it is READ again */
        world_no_rc[node] = !world_no_rc[node];
        numbered_restart(node);
        break;
    default:
        world_sleep(w, 1000000);
        harvest();
        break;
    }
}

/* ---- */

const char *numbered_kind = "late";

uint64_t numbered_run(const char *transport, uint64_t seed, uint32_t fault_every)
{
    char order[32];
    const bool is_unseen = strcmp(numbered_kind, "unseen-writes") == 0;
    snprintf(order, sizeof order, "%s:%lu", numbered_kind, (unsigned long)seed);
    state = seed;
    world_ack_timeout = fault_every > 0 ? SHORT : PATIENT;
    numbered_open(transport, seed % 4 != 0 ? order : NULL);
    for (uint32_t i = 0; i < PASSES; i++) {
        post_some();
        if (below(12) == 0 && w->hybrid)
            world_transfer(w, 0, below(64));
        if (below(24) == 0) {
            for (int polls = 0; is_unseen && polls < SEEN_POLLS; polls++)
                numbered_pass();  /* the device has that time too */
            w->now_ns += 1000000; /* so that the lane keeps house often */
        }
        numbered_pass();
        if (fault_every > 0 && below(fault_every) == 0)
            happen();
    }
    numbered_settle();
    const struct lane_stats stats = world_stats(w, 0);
    for (uint32_t v = 0; v < NUMBERED && fault_every == 0; v++)
        ck_assert(!numbered_of[v].failed && numbered_of[v].gen == 0);
    ck_assert_uint_gt(ended_well, PASSES / 8);
    ck_assert_uint_ge(stats.links_taken, stats.links_left);
    numbered_close();
    world_ack_timeout = SHORT;
    return stats.transfers;
}

uint64_t numbered_seeds(void)
{
    return getenv("KEDGE_TEST_LONG") != NULL ? LONG_SEEDS : SEEDS;
}

void numbered_use(uint32_t vqp, unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        if (has_room(2) && numbered_of[vqp].posted - numbered_of[vqp].done < SLOTS / 2)
            post_next(vqp);
        numbered_pass();
    }
}

void numbered_use_both(unsigned passes)
{
    for (unsigned i = 0; i < passes; i++)
        for (uint32_t v = 0; v < NUMBERED; v += 2) { /* of one node */
            if (has_room(2) && !numbered_of[v].failed &&
                numbered_of[v].posted - numbered_of[v].done < SLOTS / 2)
                post_next(v);
            numbered_pass();
        }
}
