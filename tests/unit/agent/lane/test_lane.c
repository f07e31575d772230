/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "schema/peers.h"
#include "world.h"

enum { TENANT = 7, OTHER = 8 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

static uint64_t *word(struct world_worker *k, uint64_t offset)
{
    return (uint64_t *)(void *)((uint8_t *)k->arena.addr + offset);
}

START_TEST(a_worker_reads_writes_and_adds_in_the_memory_of_another_node)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    *word(&owner, 64) = 0x1122334455667788;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 64);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, 8);
    ck_assert_uint_eq(*word(&k, 0), 0x1122334455667788);

    *word(&k, 8) = 99;
    d = world_rw(SCHEMA_OP_WRITE, 2, 8, 8, vkey, 128);
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_FAA, 3, 16, 8, vkey, 128);
    d.post.compare_add = 1;
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_CAS, 4, 24, 8, vkey, 128);
    d.post.compare_add = 100;
    d.post.swap = 7;
    world_post(&k, &d);
    for (uint64_t i = 2; i <= 4; i++) {
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(*word(&k, 16), 99);
    ck_assert_uint_eq(*word(&k, 24), 100);
    ck_assert_uint_eq(*word(&owner, 128), 7);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(connecting_to_an_unknown_endpoint_costs_one_read_and_to_a_known_one_none)
{
    struct world_worker k;
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT,
                               .connect = {.pool = 1, .gid = {0xfd, 1, 2, 3}}};
    ck_assert_int_eq(world_ask(w, &k, d, NULL), -ENOENT);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

START_TEST(inline_bytes_and_several_sges_arrive_whole)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 100, vkey, 256);
    uint8_t bytes[2 * SCHEMA_LINE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    d.flags |= SCHEMA_OP_INLINE;
    d.num_sge = 0;
    d.slots = 3;
    world_post(&k, &d);
    world_post(&k, (const void *)bytes);
    world_post(&k, (const void *)(bytes + SCHEMA_LINE));
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_mem_eq((uint8_t *)owner.arena.addr + 256, bytes, 100);

    struct schema_sq_sges sges = {
        .sge = {{.offset = 1024, .length = 4}, {.offset = 2048, .length = 12}}};
    d = world_rw(SCHEMA_OP_READ, 2, 0, 0, vkey, 256);
    d.num_sge = 2;
    d.slots = 2;
    world_post(&k, &d);
    world_post(&k, (const void *)&sges);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.byte_len, 16);
    ck_assert_mem_eq((uint8_t *)k.arena.addr + 1024, bytes, 4);
    ck_assert_mem_eq((uint8_t *)k.arena.addr + 2048, bytes + 4, 12);
    world_unpair(w, &owner, &k);
}
END_TEST

/* One malformed request of each kind: its status, and that no physical queue pair noticed. */
START_TEST(a_wrong_request_fails_on_its_vqp_and_never_reaches_a_queue_pair)
{
    struct world_worker owner, k;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    struct {
        struct schema_sq_desc d;
        uint8_t status, reason;
    } cases[] = {
        {world_rw(SCHEMA_OP_READ, 0, WORLD_ARENA - 4, 8, vkey, 0), IBV_WC_LOC_PROT_ERR,
         SCHEMA_REASON_LOCAL_RANGE},
        {world_rw(SCHEMA_OP_READ, 0, UINT64_MAX - 3, 8, vkey, 0), IBV_WC_LOC_PROT_ERR,
         SCHEMA_REASON_LOCAL_RANGE},
        {world_rw(SCHEMA_OP_READ, 0, 0, 8, vkey, 4090), IBV_WC_REM_ACCESS_ERR,
         SCHEMA_REASON_REMOTE_RANGE},
        {world_rw(SCHEMA_OP_READ, 0, 0, 8, vkey, UINT64_MAX - 0x10000), IBV_WC_REM_ACCESS_ERR,
         SCHEMA_REASON_REMOTE_RANGE},
        {world_rw(SCHEMA_OP_WRITE, 0, 0, 8, vkey, 0), IBV_WC_REM_ACCESS_ERR, SCHEMA_REASON_ACCESS},
        {world_rw(SCHEMA_OP_READ, 0, 0, 8, vkey + 1, 0), IBV_WC_REM_ACCESS_ERR, SCHEMA_REASON_VKEY},
        {world_rw(SCHEMA_OP_FAA, 0, 0, 8, vkey, 4), IBV_WC_REM_INV_REQ_ERR, SCHEMA_REASON_ATOMIC},
        {world_rw(SCHEMA_OP_FAA, 0, 0, 16, vkey, 0), IBV_WC_LOC_QP_OP_ERR,
         SCHEMA_REASON_DESCRIPTOR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct schema_cqe e;
        struct schema_sq_desc behind = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
        world_post(&k, &cases[i].d);
        world_post(&k, &behind);
        ck_assert(world_poll(w, &k, &e, 500));
        ck_assert_msg(e.status == cases[i].status && e.vendor_err == cases[i].reason,
                      "case %zu: %u %u", i, e.status, e.vendor_err);
        ck_assert(world_poll(w, &k, &e, 500));
        ck_assert_uint_eq(e.wr_id, 1);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_int_eq(world_connect(w, &k, 0, 1), 0); /* back to use */
        world_post(&k, &behind);
        ck_assert(world_poll(w, &k, &e, 500));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(another_tenants_key_is_answered_like_an_unknown_one_until_its_token_is_imported)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    struct schema_reply reply;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, OTHER);
    struct schema_sq_desc reg = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.length = 64, .vaddr = 0x10000, .access = SCHEMA_RECORD_READ}};
    ck_assert_int_eq(world_ask(w, &owner, reg, &reply), 0);
    uint32_t vkey = (uint32_t)reply.value[0];
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);

    struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = vkey}};
    memcpy(import.import.secret, reply.secret, 16);
    import.import.secret[3] ^= 1; /* not the secret */
    ck_assert_int_eq(world_ask(w, &k, import, NULL), 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    import.import.secret[3] ^= 1;
    ck_assert_int_eq(world_ask(w, &k, import, NULL), 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    import.op = SCHEMA_OP_UNIMPORT; /* and again when it was given back */
    ck_assert_int_eq(world_ask(w, &k, import, &reply), 0);
    ck_assert_uint_eq(reply.value[0], 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_int_eq(world_ask(w, &k, import, NULL), -ENOENT);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(too_many_wrong_keys_end_the_session)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    for (uint32_t i = 1; i <= 6 && k.r->ended == 0; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, 8, vkey + i, 0);
        world_post(&k, &d);
        (void)world_poll(w, &k, &e, 50);
        if (k.r->ended == 0)
            (void)world_connect(w, &k, 0, 1);
    }
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_GUESSES);
    ck_assert_uint_eq(w->node[0].faults, 1);
    ck_assert_uint_eq(w->node[0].last_reason, SCHEMA_REASON_GUESSES);
    world_sleep(w, 1000);
    ck_assert_uint_eq(w->node[0].over, 1);
    world_close(w);
}
END_TEST

START_TEST(a_restarted_node_is_refused_as_stale_and_reached_after_connecting_again)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    world_restart_node(w, 1);
    world_sleep(w, w->node[0].config.node_lease_ns + 1);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 2000));
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_STALE_PEER);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY); /* the new one has no regions yet */
    world_detach(w, &k);
    world_close(w);
}
END_TEST

START_TEST(a_worker_that_never_polls_is_held_back_and_harms_nobody)
{
    struct world_worker owner, k, other;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_attach(w, &other, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    for (int i = 0; i < 64 + 40; i++) {
        world_post(&k, &d);
        world_run(w, 3);
    }
    ck_assert_uint_eq(k.r->cq_tail, 64); /* its completion ring, and not one more */
    ck_assert_uint_lt(k.r->sq_head, k.sq_tail);
    for (int i = 0; i < 100; i++) {
        world_post(&other, &d);
        ck_assert(world_poll(w, &other, &e, 50));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < 64 + 40; i++) /* it polls at last: nothing was lost */
        ck_assert(world_poll(w, &k, &e, 5000));
    world_detach(w, &k);
    world_detach(w, &other);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(indices_that_make_no_sense_end_the_session)
{
    struct world_worker k;
    for (int which = 0; which < 2; which++) {
        world_open(w);
        world_attach(w, &k, 0, 0, TENANT);
        if (which == 0) {
            atomic_store(&k.w->sq_tail, 65);
        } else { /* ahead of what there is: seen when room is short, and looked for */
            struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, 1, 0);
            atomic_store(&k.w->cq_head, 1000);
            for (int i = 0; i < 70; i++) {
                world_post(&k, &d);
                world_run(w, 1);
            }
        }
        lane_doorbell(w->node[0].lane, 0);
        world_run(w, 3);
        ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_RING);
        ck_assert_uint_eq(w->node[0].over, 1);
        world_close(w);
    }
}
END_TEST

START_TEST(random_bytes_in_every_ring_never_harm_another_session)
{
    struct world_worker owner, good, bad;
    struct schema_cqe e;
    uint64_t random = 99;
    uint32_t vkey = world_pair(w, &owner, &good, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    for (int round = 0; round < 300; round++) {
        world_attach(w, &bad, 0, 1 + (uint32_t)round % 4, OTHER);
        (void)world_connect(w, &bad, 0, 1);
        for (int i = 0; i < 30; i++) {
            struct schema_sq_desc junk = d;
            uint8_t *bytes = (uint8_t *)&junk;
            for (int n = 0; n < 4; n++) {
                random = random * 6364136223846793005ull + 1442695040888963407ull;
                bytes[(random >> 33) % (n < 2 ? 8 : sizeof junk)] = (uint8_t)(random >> 56);
            }
            world_post(&bad, &junk);
        }
        world_post(&good, &d);
        ck_assert(world_poll(w, &good, &e, 5000));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        if (bad.r->ended != 0)
            for (int i = 0; i < 20; i++)
                world_sleep(w, 200000);
        world_detach(w, &bad);
    }
    ck_assert_uint_eq(world_stats(w, 0).sessions, 1);
    world_detach(w, &good);
    world_detach(w, &owner);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_uint_eq(world_stats(w, 0).vqps, 0);
    world_close(w);
}
END_TEST

/* A deregistration behind the lane's back makes the fabric refuse what the lane believed: the case
 * for which a queue pair breaks. Others' reads on the same queue pair are posted again; nobody else
 * notices. */
START_TEST(a_broken_queue_pair_is_replaced_and_innocent_reads_are_posted_again)
{
    struct world_worker owner, k, innocent;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    uint32_t safe = world_register(w, &owner, 8192, 64, ALL);
    world_attach(w, &innocent, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(w, &innocent, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    (void)safe;
    world_take_away(w, &owner);
    world_post(&k, &d);
    world_post(&innocent, &d);
    ck_assert(world_poll(w, &k, &e, 500));
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_ge(world_stats(w, 0).qp_broken, 1);
    ck_assert(world_poll(w, &innocent, &e, 500));
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR); /* its own: the memory is gone for it too */
    world_run(w, 10);
    ck_assert_uint_eq(w->node[0].broken, world_stats(w, 0).qp_broken);
    /* And the queue pairs work again, for a region that is there. */
    struct world_worker fresh;
    world_attach(w, &fresh, 2, 0, TENANT);
    uint32_t there = world_register(w, &fresh, 0, 64, ALL);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(world_connect(w, &k, 0, 2), 0);
        d = world_rw(SCHEMA_OP_READ, 5, 0, 8, there, 0);
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 500));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    world_close(w);
}
END_TEST

START_TEST(without_a_metaserver_unknown_names_fail_soon_and_known_ones_work)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_forget_metaserver(w, 0);
    world_sleep(w, 2 * w->node[0].config.node_lease_ns);
    ck_assert_int_eq(world_connect(w, &k, 1, 2), -EHOSTUNREACH);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 2000));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(an_idle_lane_says_that_it_may_sleep_and_a_doorbell_wakes_the_session)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_run(w, 300);
    ck_assert_uint_eq(k.r->doorbell, 1);
    ck_assert_uint_eq(lane_prepare_sleep(w->node[0].lane, w->now_ns), UINT64_MAX);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50)); /* rings */
    ck_assert_uint_eq(k.r->doorbell, 0);
    world_unpair(w, &owner, &k);
}
END_TEST

static bool device_is_busy;

static bool is_busy(const struct fab_cq *cq)
{
    (void)cq;
    return device_is_busy;
}

/* As soft is with a long request: nobody but the lane makes it go on. */
START_TEST(a_lane_does_not_sleep_while_only_its_polling_makes_the_device_go_on)
{
    struct world_worker owner, k;
    world_pair(w, &owner, &k, TENANT, ALL);
    struct fab *fab = w->node[0].fab;
    const struct fab_ops *real = fab->ops;
    struct fab_ops ops = *real;
    ops.is_busy = is_busy;
    fab->ops = &ops;
    lane_doorbell(w->node[0].lane, k.id);
    world_run(w, 1);
    device_is_busy = true;
    ck_assert_uint_eq(lane_prepare_sleep(w->node[0].lane, w->now_ns), 0);
    ck_assert_uint_eq(k.r->doorbell, 0); /* nor is its worker to ring */
    device_is_busy = false;
    ck_assert_uint_eq(lane_prepare_sleep(w->node[0].lane, w->now_ns), UINT64_MAX);
    ck_assert_uint_eq(k.r->doorbell, 1);
    fab->ops = real;
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(a_lane_shows_that_it_lives_in_each_millisecond_in_which_it_is_stepped_and_no_oftener)
{
    world_open(w);
    struct lane *lane = w->node[0].lane;
    for (int i = 0; i < 5; i++) {
        const uint32_t before = schema_peers_beat(w->node[0].peers);
        w->now_ns += 1000000000; /* from a sleep */
        lane_step(lane, w->now_ns);
        const uint32_t after = schema_peers_beat(w->node[0].peers);
        ck_assert_uint_ne(after, before);
        ck_assert_uint_ne(after, 0);
        for (int pass = 0; pass < 99; pass++)
            lane_step(lane, w->now_ns += 10000);
        ck_assert_uint_eq(schema_peers_beat(w->node[0].peers), after);
        lane_step(lane, w->now_ns += 10000);
        ck_assert_uint_ne(schema_peers_beat(w->node[0].peers), after);
    }
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_worker_reads_writes_and_adds_in_the_memory_of_another_node)                                \
    T(connecting_to_an_unknown_endpoint_costs_one_read_and_to_a_known_one_none)                    \
    T(inline_bytes_and_several_sges_arrive_whole)                                                  \
    T(a_wrong_request_fails_on_its_vqp_and_never_reaches_a_queue_pair)                             \
    T(another_tenants_key_is_answered_like_an_unknown_one_until_its_token_is_imported)             \
    T(too_many_wrong_keys_end_the_session)                                                         \
    T(a_restarted_node_is_refused_as_stale_and_reached_after_connecting_again)                     \
    T(a_worker_that_never_polls_is_held_back_and_harms_nobody)                                     \
    T(indices_that_make_no_sense_end_the_session)                                                  \
    T(random_bytes_in_every_ring_never_harm_another_session)                                       \
    T(a_broken_queue_pair_is_replaced_and_innocent_reads_are_posted_again)                         \
    T(without_a_metaserver_unknown_names_fail_soon_and_known_ones_work)                            \
    T(an_idle_lane_says_that_it_may_sleep_and_a_doorbell_wakes_the_session)                        \
    T(a_lane_does_not_sleep_while_only_its_polling_makes_the_device_go_on)                         \
    T(a_lane_shows_that_it_lives_in_each_millisecond_in_which_it_is_stepped_and_no_oftener)
KEDGE_CHECK_MAIN("agent.lane.lane", TESTS)
