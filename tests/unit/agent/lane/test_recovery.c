/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and metaservers that come back: what is left goes on, and nothing stale is used. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/peers.h"
#include "world.h"

enum { TENANT = 7, LONG = 200000 /* passes: a time-out of the device is in real time */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* An owner on node 1, and a worker on node 0 that has READ its memory. */
static struct schema_sq_desc pair_in_world(struct world_worker *owner, struct world_worker *k)
{
    struct schema_cqe e;
    world_attach(w, owner, 1, 0, TENANT);
    world_attach(w, k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    return d;
}

static struct schema_sq_desc pair(struct world_worker *owner, struct world_worker *k)
{
    world_open(w);
    return pair_in_world(owner, k);
}

/* The metaserver has restarted, and nobody has registered yet. */
static void forget(uint32_t node)
{
    struct schema_endpoint_record r = {.pool = w->node[node].config.pool};
    memcpy(r.gid, w->node[node].fab->caps.gid, sizeof r.gid);
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
}

START_TEST(a_node_that_fell_silent_is_looked_up_again_and_not_when_its_record_lapses)
{
    struct world_worker owner, k;
    struct schema_sq_desc d = pair(&owner, &k);
    uint64_t lapses_ns = w->now_ns + w->node[0].config.node_lease_ns;
    world_restart_node(w, 1);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_RETRY_EXC_ERR); /* it finds out */
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).vendor_err,
                      SCHEMA_REASON_VKEY); /* the new one has no regions */
    ck_assert_uint_lt(w->now_ns, lapses_ns);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_node_that_answers_outlives_its_record_in_a_metaserver_that_restarted)
{
    struct world_worker owner, k;
    struct schema_sq_desc d = pair(&owner, &k);
    forget(1);
    for (int i = 0; i < 3; i++) {
        world_sleep(w, w->node[0].config.node_lease_ns + 1);
        ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    }
    world_restart_node(w, 1); /* and is not there any more under its old numbers */
    forget(1);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), -ENOENT);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* A worker of node 1's present life exports something else, where the other's memory was. */
static uint32_t export_anew(struct world_worker *owner)
{
    world_attach(w, owner, 1, 1, TENANT);
    *(uint64_t *)owner->arena.addr = 0x5ec0d11fe;
    return world_register(w, owner, 0, 4096, ALL);
}

/* As libkedge does it: from the table that workers share, without a word to the lane. */
static void connect_from_the_table(struct world_worker *k, uint16_t vqp)
{
    struct schema_sq_desc bind = {.op = SCHEMA_OP_BIND, .slots = 1, .vqp = vqp};
    ck_assert_int_eq(schema_peers_find(w->node[0].peers, w->node[1].fab->caps.gid, 1,
                                       &bind.bind.peer_slot, &bind.bind.peer_gen),
                     0);
    world_post(k, &bind);
}

/* Where the clock began. */
START_TEST(a_node_that_fell_silent_is_looked_up_again_also_when_the_host_has_just_started)
{
    struct world_worker owner, k;
    world_open(w);
    w->now_ns = 0;
    struct schema_sq_desc d = pair_in_world(&owner, &k);
    world_restart_node(w, 1);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_lt(w->now_ns, w->node[0].config.node_lease_ns / 3);
    connect_from_the_table(&k, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).vendor_err, SCHEMA_REASON_VKEY);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* The restart goes unnoticed; then a worker connects, from what is known, and reads. */
static void read_after_a_restart(uint64_t asleep_ns)
{
    struct world_worker owner, k, anew;
    struct schema_sq_desc d = pair(&owner, &k);
    world_restart_node(w, 1);
    d.post.vkey = export_anew(&anew);
    world_sleep(w, asleep_ns);
    uint64_t lookups = world_stats(w, 0).endpoint_reads;
    connect_from_the_table(&k, 1);
    d.vqp = 1;
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*(uint64_t *)k.arena.addr, 0x5ec0d11fe);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, lookups + 1);
    d.vqp = 0; /* that of before was connected to the other life */
    struct schema_cqe e = world_do(w, &k, d, LONG);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_STALE_PEER);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_detach(w, &anew);
    world_close(w);
}

START_TEST(the_first_read_after_a_restart_is_served_while_the_old_record_is_still_believed)
{
    read_after_a_restart(2 * 1000000); /* the lease of its regions is over, no more */
}
END_TEST

START_TEST(the_first_read_after_a_restart_is_served_when_the_old_record_has_lapsed)
{
    read_after_a_restart(2 * 1000000000ull);
}
END_TEST

/* What the metaserver knows of node 1 is of the life before, and has been put back. */
static void put_back(void)
{
    struct schema_endpoint_record r;
    const uint8_t *gid = w->node[1].fab->caps.gid;
    const struct schema_table_desc *d = &w->table.desc;
    const uint32_t home = schema_endpoint_home(d, gid, 1);
    const uint8_t *window = w->table.slots + (size_t)home * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_endpoint_find(d, window, gid, 1, &r), 0);
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
    r.incarnation--;
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
}

START_TEST(a_metaserver_that_is_behind_keeps_nobody_from_a_node_that_lives)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    world_open(w);
    world_restart_node(w, 1);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 500));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    put_back();
    for (int i = 0; i < 3; i++) {
        world_sleep(w, w->node[0].config.node_lease_ns + 1);
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 500));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    }
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_key_of_an_earlier_life_is_refused_and_reads_nothing)
{
    struct world_worker owner, k, anew;
    struct schema_sq_desc d = pair(&owner, &k);
    world_restart_node(w, 1);
    (void)export_anew(&anew);
    world_sleep(w, 2 * 1000000);
    *(uint64_t *)k.arena.addr = 77;
    connect_from_the_table(&k, 1);
    d.vqp = 1;
    struct schema_cqe e = world_do(w, &k, d, LONG);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_uint_eq(*(uint64_t *)k.arena.addr, 77);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_detach(w, &anew);
    world_close(w);
}
END_TEST

START_TEST(a_node_that_stays_away_fails_what_is_posted_and_is_connected_to_when_it_is_back)
{
    struct world_worker owner, k, anew;
    struct schema_sq_desc d = pair(&owner, &k);
    struct schema_endpoint_record r = {.pool = 1};
    memcpy(r.gid, w->node[1].fab->caps.gid, sizeof r.gid);
    const void *window = w->table.slots + (size_t)schema_endpoint_home(&w->table.desc, r.gid, 1) *
                                              SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_endpoint_find(&w->table.desc, window, r.gid, 1, &r), 0);
    world_restart_node(w, 1);
    struct schema_endpoint_record later;
    ck_assert_int_eq(schema_endpoint_find(&w->table.desc, window, r.gid, 1, &later), 0);
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0); /* it has not registered yet */
    world_sleep(w, 2 * 1000000);
    connect_from_the_table(&k, 1);
    d.vqp = 1;
    struct schema_cqe e = world_do(w, &k, d, LONG);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PEER_DOWN);
    ck_assert_int_ge(schema_table_put(&w->table, &later), 0);
    d.post.vkey = export_anew(&anew);
    world_sleep(w, 200 * 1000000);
    connect_from_the_table(&k, 1);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_detach(w, &anew);
    world_close(w);
}
END_TEST

/* A generation that the slot had when it was somebody else's, or has not had yet. */
START_TEST(a_vqp_follows_nobody_into_the_slot_of_another_endpoint)
{
    struct world_worker owner, k;
    struct schema_sq_desc d = pair(&owner, &k);
    uint32_t slot, gen;
    ck_assert_int_eq(schema_peers_find(w->node[0].peers, w->node[1].fab->caps.gid, 1, &slot, &gen),
                     0);
    const int wrong[] = {-1, 1, 1 << 30};
    d.vqp = 2;
    for (int i = 0; i < 3; i++) {
        struct schema_sq_desc bind = {.op = SCHEMA_OP_BIND, .slots = 1, .vqp = 2};
        bind.bind.peer_slot = slot;
        bind.bind.peer_gen = gen + (uint32_t)wrong[i];
        world_post(&k, &bind);
        ck_assert_uint_eq(world_do(w, &k, d, LONG).vendor_err, SCHEMA_REASON_STALE_PEER);
    }
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* One is idle, one has a READ out. */
START_TEST(initiators_that_are_renewed_come_back_when_nothing_is_out_and_nothing_fails)
{
    struct world_worker owner, k;
    struct schema_sq_desc d = pair(&owner, &k);
    struct world_node *n = &w->node[0];
    struct schema_cqe e;
    if (!w->rc) {
        world_post(&k, &d);
        world_run(w, 1);
        for (uint32_t i = 0; i < n->res.dcis; i++) {
            struct lane_command c = {.kind = LANE_COMMAND_QP_REBUILD, .qp = n->res.dci[i]};
            ck_assert_int_eq(lane_command(n->lane, &c), 0);
        }
        ck_assert(world_poll(w, &k, &e, LONG));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        world_run(w, 4);
        ck_assert_uint_eq(n->broken, n->res.dcis);
        for (int i = 0; i < 100; i++)
            ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(n->broken, n->res.dcis);
    }
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* Of a DC target: what it answers READs with. */
START_TEST(whoever_makes_a_path_hears_which_mtu_the_endpoints_record_says)
{
    struct world_worker owner, k;
    (void)pair(&owner, &k);
    ck_assert_int_eq(w->node[0].wanted_mtu, IBV_MTU_4096);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

static struct fab_qp *drop_spare(void)
{
    struct world_node *n = &w->node[0];
    struct lane_command c = {.kind = LANE_COMMAND_SPARE_DROP};
    uint32_t before = n->answers;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
    world_run(w, 4);
    ck_assert_uint_eq(n->answers, before + 1);
    ck_assert_int_eq(n->answer.kind, LANE_EVENT_SPARE_DROPPED);
    return n->answer.qp;
}

START_TEST(spares_come_and_go_and_one_that_breaks_comes_back_once)
{
    struct world_worker owner, k;
    struct schema_sq_desc d = pair(&owner, &k);
    struct world_node *n = &w->node[0];
    struct fab_qp *dropped[WORLD_SPARES];
    if (!w->rc) {
        world_break(w, 0, n->res.spare[0]);
        world_fatal(w, 0, n->res.spare[0]);
        world_run(w, 50);
        ck_assert_uint_eq(n->broken, 1);
        for (int i = 0; i < WORLD_SPARES; i++) {
            dropped[i] = drop_spare();
            ck_assert_ptr_nonnull(dropped[i]);
            for (int m = 0; m < i; m++)
                ck_assert_ptr_ne(dropped[i], dropped[m]);
        }
        ck_assert_ptr_null(drop_spare());
        ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
        for (int i = 0; i < WORLD_SPARES; i++) {
            struct lane_command more = {.kind = LANE_COMMAND_QP_READY, .ready.qp = dropped[i]};
            ck_assert_int_eq(lane_command(n->lane, &more), 0);
        }
        world_run(w, 4);
        ck_assert_ptr_eq(drop_spare(), dropped[WORLD_SPARES - 1]);
        ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    }
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

static void lose_initiator(struct fab_qp *qp)
{
    world_break(w, 0, qp);
    world_fatal(w, 0, qp);
    world_run(w, 2);
}

/* DC, no spare left: a long WRITE is under way on an initiator when that takes the place of the
 * probing one, which has broken and comes back. */
START_TEST(requests_stay_in_order_when_their_initiator_becomes_the_probing_one)
{
    enum { LENGTH = 40960, LAST = LENGTH - 8 };
    struct world_worker owner, k;
    const struct world_node *n = &w->node[0];
    world_ack_timeout = 19;
    (void)pair(&owner, &k);
    const uint32_t key = world_register(w, &owner, 0, LENGTH, ALL);
    uint8_t *from = k.arena.addr;
    const _Atomic uint8_t *to = owner.arena.addr;
    memset(from, 1, LENGTH);
    memset(from + LENGTH, 2, 8);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    w->node[0].no_repairs = true;
    for (uint32_t i = 0; i < n->res.spares; i++)
        lose_initiator(n->res.spare[i]);
    for (uint32_t i = 1; i + 1 < n->res.dcis; i++)
        lose_initiator(n->res.dci[i]);
    d = world_rw(SCHEMA_OP_WRITE, 2, 0, LENGTH, key, 0);
    world_post(&k, &d);
    lane_doorbell(n->lane, 0);
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 1);
    if (!w->rc) {
        struct fab_qp *probing = n->res.dci[n->res.dcis - 1];
        const struct lane_command back = {.kind = LANE_COMMAND_QP_READY, .ready.qp = probing};
        lose_initiator(probing);
        world_raise_dci(n->fab, probing);
        ck_assert_int_eq(lane_command(n->lane, &back), 0);
    }
    d = world_rw(SCHEMA_OP_WRITE, 3, LENGTH, 8, key, LAST);
    world_post(&k, &d);
    for (uint64_t id = 2; id <= 3; id++) {
        const struct schema_cqe e = world_done(w, &k, LONG);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, id);
    }
    ck_assert_uint_eq(to[LAST], 2);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
    world_ack_timeout = 4;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(initiators_that_are_renewed_come_back_when_nothing_is_out_and_nothing_fails)                 \
    T(whoever_makes_a_path_hears_which_mtu_the_endpoints_record_says)                              \
    T(spares_come_and_go_and_one_that_breaks_comes_back_once)                                      \
    T(requests_stay_in_order_when_their_initiator_becomes_the_probing_one)                         \
    T(a_node_that_fell_silent_is_looked_up_again_and_not_when_its_record_lapses)                   \
    T(a_node_that_fell_silent_is_looked_up_again_also_when_the_host_has_just_started)              \
    T(a_node_that_answers_outlives_its_record_in_a_metaserver_that_restarted)                      \
    T(the_first_read_after_a_restart_is_served_while_the_old_record_is_still_believed)             \
    T(the_first_read_after_a_restart_is_served_when_the_old_record_has_lapsed)                     \
    T(a_metaserver_that_is_behind_keeps_nobody_from_a_node_that_lives)                             \
    T(a_key_of_an_earlier_life_is_refused_and_reads_nothing)                                       \
    T(a_node_that_stays_away_fails_what_is_posted_and_is_connected_to_when_it_is_back)             \
    T(a_vqp_follows_nobody_into_the_slot_of_another_endpoint)
KEDGE_CHECK_MAIN("agent.lane.recovery", TESTS)
