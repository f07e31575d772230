/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant whose requests break queue pairs under those of others is put apart, and nobody else. */
#include <stdio.h>
#include <stdlib.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world_accomplices.h"

enum {
    AT_ONCE = 4, /* VQPs of each session of a reader's */
    ADDS = 6,
    FELT = 16, /* breaks that count as one */
    MANY_BREAKS = 200,
    RESTS = 5
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t SECOND = 1000000000;
static const uint64_t REST_NS = 50000000; /* so long waits who is apart and breaks one */

static uint8_t ack_timeout = 19; /* of the next scene: 2 s, which a busy host does not disturb */
static struct world world;
static struct world *w = &world;

static void harm(struct accomplices *s, uint32_t sessions)
{
    accomplices_warm(s);
    for (uint32_t i = 0; i < ROUNDS; i++)
        accomplices_round(s, &s->guilty[i % sessions], SCHEMA_OP_READ);
    ck_assert_uint_ge(s->breaks, ROUNDS / 2); /* who is guilty gets his answers all the same */
    ck_assert_msg(s->late_failed == 0 && s->failed <= BREAKS * WRITES,
                  "%u of %u honest requests failed, %u of them after break %d", s->failed,
                  s->posted, s->late_failed, BREAKS);
    ck_assert(w->node[0].quarantined[GUILTY % WORLD_TENANTS]);
    ck_assert(!w->node[0].quarantined[HONEST % WORLD_TENANTS]);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 1);
}

START_TEST(strangers_lose_a_few_requests_to_accomplices_and_then_none)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    harm(&s, 1);
    accomplices_close(&s);
}
END_TEST

START_TEST(it_is_the_same_when_a_tenant_takes_a_session_for_each_break)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    harm(&s, SESSIONS);
    accomplices_close(&s);
}
END_TEST

/* All that it asks for is carried out, and in order; when it has kept quiet it is among others
 * again. */
START_TEST(who_is_apart_goes_on_and_not_for_ever)
{
    struct accomplices s;
    struct world_worker *k = &s.guilty[1], good;
    enum { MANY = 24 };
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    s.guilty_key = world_register(w, &good, 0, 4096, ALL);
    harm(&s, 1);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
        for (uint64_t i = 0; i < MANY; i++) {
            struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, i, 8 * i, 8, s.guilty_key, 0);
            d.post.compare_add = 1;
            world_post(k, &d);
        }
        for (uint64_t i = 0; i < MANY; i++) {
            const struct schema_cqe e = world_done(w, k, LONG);
            ck_assert_uint_eq(e.wr_id, i);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(((uint64_t *)k->arena.addr)[i], (uint64_t)again * MANY + i);
        }
        if (again == 0) {
            ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 1);
            world_sleep(w, 60 * SECOND);
            world_run(w, 2000);
        }
        ck_assert_uint_eq(w->node[0].quarantined[GUILTY % WORLD_TENANTS], 0);
        ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 0);
    }
    world_detach(w, &good);
    accomplices_close(&s);
}
END_TEST

/* The records of more regions than the lane can remember at a time: each is READ for a request that
 * waits, and is there still when that has its turn. */
START_TEST(who_is_apart_goes_on_however_many_records_are_wanted)
{
    enum { EACH = 6, ALL_WANTED = SESSIONS * EACH };
    struct accomplices s;
    struct world_worker good;
    uint32_t key[ALL_WANTED];
    world_max_mrs = ALL_WANTED;
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    for (uint32_t i = 0; i < ALL_WANTED; i++)
        key[i] = world_register(w, &good, 64 * i, 64, ALL);
    harm(&s, 1);
    for (uint16_t i = 0; i < ALL_WANTED; i++)
        ck_assert_int_eq(world_connect(w, &s.guilty[i / EACH], i % EACH, 1), 0);
    for (uint16_t i = 0; i < ALL_WANTED; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, 8, key[i], 64 * i);
        d.vqp = i % EACH;
        world_post(&s.guilty[i / EACH], &d);
    }
    accomplices_doorbells(w);
    for (uint16_t i = 0; i < ALL_WANTED; i++)
        ck_assert_uint_eq(world_done(w, &s.guilty[i / EACH], LONG).status, IBV_WC_SUCCESS);
    world_detach(w, &good);
    accomplices_close(&s);
    world_max_mrs = 0;
}
END_TEST

static void write_to_dead(struct accomplices *s, struct world_worker *k)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 3, 0, 8, s->key, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 2), 0);
    world_post(k, &d);
    world_run(w, 100);
}

/* One asks nodes that do not answer, which takes the device its time; the other does not wait for
 * that. Nor do both requests to the dead take the queue pair that is there for strangers' too. */
START_TEST(those_who_are_apart_do_not_wait_for_each_others_dead)
{
    struct accomplices s;
    struct world_worker good;
    ack_timeout = 16; /* 0.3 s, and repeated */
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    s.guilty_key = world_register(w, &good, 0, 4096, ALL);
    harm(&s, 1);
    world_silence_node(w, 2);
    write_to_dead(&s, &s.guilty[0]);
    for (int i = 1; i < SESSIONS; i++) {
        ck_assert_int_eq(world_connect(w, &s.guilty[i], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s.guilty[i], SCHEMA_OP_WRITE, s.guilty_key),
                         IBV_WC_SUCCESS);
    }
    world_detach(w, &good);
    accomplices_close(&s);
    ack_timeout = 19;
}
END_TEST

/* DC: all spares are used up, and no queue pair can be repaired. */
START_TEST(who_is_apart_goes_on_where_no_queue_pair_is_free_for_him)
{
    struct accomplices s;
    struct world_worker good;
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    s.guilty_key = world_register(w, &good, 0, 4096, ALL);
    accomplices_warm(&s);
    for (int i = 0; !w->rc && i < BREAKS; i++) {
        if (i + 1 < BREAKS) {
            accomplices_round(&s, &s.guilty[i], SCHEMA_OP_READ);
            w->node[0].no_repairs = true;
            continue;
        }
        world_sleep(w, EVENT_NS);
        ck_assert_int_eq(world_connect(w, &s.guilty[i], 0, 1), 0);
        accomplices_bind(&s);
        world_run(w, 3);
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.gone_key, 0);
        world_post(&s.guilty[i], &d);
        accomplices_post(&s, SCHEMA_OP_WRITE);
        ck_assert_uint_eq(world_done(w, &s.guilty[i], LONG).status, IBV_WC_REM_ACCESS_ERR);
    }
    if (!w->rc) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, s.guilty_key, 0);
        ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 1);
        ck_assert_int_eq(world_connect(w, &s.guilty[4], 0, 1), 0);
        world_post(&s.guilty[4], &d);
        world_run(w, 100);
        world_sleep(w, 3 * SECOND);
        ck_assert_uint_eq(world_done(w, &s.guilty[4], LONG).status, IBV_WC_SUCCESS);
    }
    world_detach(w, &good);
    accomplices_close(&s);
}
END_TEST

/* The last one that worked breaks too, and one that was for endpoints that answer is repaired. */
static void come_back_with_one(struct accomplices *s)
{
    const struct lane_command ready = {.kind = LANE_COMMAND_QP_READY,
                                       .ready.qp = w->node[0].res.dci[0]};
    ck_assert_int_eq(world_connect(w, &s->guilty[0], 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s->guilty[0], SCHEMA_OP_READ, s->gone_key),
                     IBV_WC_REM_ACCESS_ERR);
    world_sleep(w, REST_NS);
    world_raise_dci(w->node[0].fab, ready.qp);
    ck_assert_int_eq(lane_command(w->node[0].lane, &ready), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, s->guilty_key, 0);
    ck_assert_int_eq(world_connect(w, &s->guilty[0], 0, 1), 0);
    world_post(&s->guilty[0], &d);
    world_run(w, 100);
    world_sleep(w, 3 * SECOND);
    ck_assert_uint_eq(world_done(w, &s->guilty[0], LONG).status, IBV_WC_SUCCESS);
}

/* DC: the initiator of those who are apart breaks and cannot be repaired; and the next ones, until
 * there is one left that is for endpoints that answer. */
START_TEST(who_is_apart_goes_on_where_his_queue_pair_is_not_repaired)
{
    struct accomplices s;
    struct world_worker good;
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    s.guilty_key = world_register(w, &good, 0, 4096, ALL);
    harm(&s, 1);
    w->node[0].no_repairs = !w->rc;
    for (int i = 0; !w->rc && i < WORLD_SPARES + WORLD_DCIS - 1; i++) {
        ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                         IBV_WC_REM_ACCESS_ERR);
        world_sleep(w, REST_NS);
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, s.guilty_key, 0);
        ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
        world_post(&s.guilty[0], &d);
        world_run(w, 100);
        world_sleep(w, 3 * SECOND);
        ck_assert_uint_eq(world_done(w, &s.guilty[0], LONG).status, IBV_WC_SUCCESS);
    }
    if (!w->rc)
        come_back_with_one(&s);
    world_detach(w, &good);
    accomplices_close(&s);
}
END_TEST

/* There is nobody to keep them from. */
/* Node 0's device: the queue pair on which something was posted last. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    struct fab_qp *last;
} seen;

static int post_seen(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    seen.last = qp->pd == w->node[0].pd ? qp : seen.last;
    return seen.real->post_send(qp, wr, bad);
}

static void break_all_but(const struct fab_qp *kept)
{
    const struct lane_device_objects *has = &w->node[0].res;
    w->node[0].no_repairs = true;
    for (uint32_t i = 0; i < WORLD_DCIS + WORLD_SPARES; i++) {
        struct fab_qp *qp = i < WORLD_DCIS ? has->dci[i] : has->spare[i - WORLD_DCIS];
        if (qp == kept)
            continue;
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        world_run(w, 10);
    }
}

/* DC: all others are broken, and cannot be repaired. */
START_TEST(strangers_have_the_queue_pair_of_who_was_apart_when_there_is_no_other)
{
    struct accomplices s;
    struct world_worker good;
    accomplices_open(&s, w, ack_timeout);
    world_attach(w, &good, 1, 2, GUILTY);
    s.guilty_key = world_register(w, &good, 0, 4096, ALL);
    harm(&s, 1);
    seen.real = w->node[0].fab->ops;
    seen.ops = *seen.real;
    seen.ops.post_send = post_seen;
    w->node[0].fab->ops = &seen.ops;
    ck_assert_int_eq(world_connect(w, &s.guilty[1], 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s.guilty[1], SCHEMA_OP_WRITE, s.guilty_key),
                     IBV_WC_SUCCESS);
    w->node[0].fab->ops = seen.real;
    if (!w->rc)
        break_all_but(seen.last);
    world_sleep(w, 60 * SECOND);
    world_run(w, 2000);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 0);
    ck_assert_int_eq(world_connect(w, &s.honest, 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s.honest, SCHEMA_OP_WRITE, s.key), IBV_WC_SUCCESS);
    w->node[0].no_repairs = false;
    world_detach(w, &good);
    accomplices_close(&s);
}
END_TEST

START_TEST(a_tenant_that_harms_itself_alone_is_not_put_apart)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        world_sleep(w, REST_NS);
        ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                         IBV_WC_REM_ACCESS_ERR);
    }
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    accomplices_close(&s);
}
END_TEST

/* Now and then a region goes under its readers, among honest ones too. */
START_TEST(who_harms_strangers_seldom_is_not_put_apart)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < 2 * BREAKS; i++) {
        accomplices_round(&s, &s.guilty[0], SCHEMA_OP_READ);
        world_sleep(w, 11 * SECOND);
    }
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    accomplices_close(&s);
}
END_TEST

/* One break after the other, as fast as queue pairs are repaired, which takes no time here. */
START_TEST(who_breaks_as_many_as_he_can_at_once_is_put_apart_at_once)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < MANY_BREAKS && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_break_beside(&s, &s.guilty[i % SESSIONS], s.gone_key);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 1);
    ck_assert_uint_le(s.breaks, (BREAKS - 1) * FELT + 1);
    accomplices_close(&s);
}
END_TEST

/* Each of a reader's many READs of one region goes again when it is flushed with another, and then
 * breaks a queue pair by itself, under strangers' WRITEs: that is one thing that happened to him.
 */
START_TEST(one_region_that_goes_under_many_reads_counts_once)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint16_t i = 0; i < SESSIONS * AT_ONCE; i++)
        ck_assert_int_eq(world_connect(w, &s.guilty[i / AT_ONCE], i % AT_ONCE, 1), 0);
    accomplices_bind(&s);
    world_run(w, 3);
    for (uint16_t i = 0; i < SESSIONS * AT_ONCE; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.gone_key, 0);
        d.vqp = i % AT_ONCE;
        world_post(&s.guilty[i / AT_ONCE], &d);
    }
    for (int i = 0; i < SESSIONS * AT_ONCE; i++) {
        accomplices_bind(&s);
        accomplices_post(&s, SCHEMA_OP_WRITE);
        accomplices_take(&s);
    }
    for (int i = 0; i < SESSIONS * AT_ONCE; i++)
        ck_assert_uint_eq(world_done(w, &s.guilty[i / AT_ONCE], LONG).status,
                          IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_gt(world_stats(w, 0).qp_broken, 2 * BREAKS);
    ck_assert_uint_gt(s.failed, 0);
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    accomplices_close(&s);
}
END_TEST

START_TEST(who_breaks_queue_pairs_under_reads_that_go_again_is_not_put_apart)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < 4 * BREAKS; i++)
        accomplices_round_beside(&s, &s.guilty[i % SESSIONS], SCHEMA_OP_READ, SCHEMA_OP_READ);
    ck_assert_uint_gt(s.breaks, 2 * BREAKS);
    ck_assert_uint_gt(world_stats(w, 0).reposted, 0);
    ck_assert_uint_eq(s.failed, 0);
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    accomplices_close(&s);
}
END_TEST

/* Late again and again is no better than lost now and then. */
START_TEST(who_delays_strangers_without_end_is_put_apart)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < (BREAKS + 1) * FELT && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_round_beside(&s, &s.guilty[i % SESSIONS], SCHEMA_OP_READ, SCHEMA_OP_READ);
    ck_assert_uint_eq(s.failed, 0);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 1);
    ck_assert(w->node[0].quarantined[GUILTY % WORLD_TENANTS]);
    accomplices_close(&s);
}
END_TEST

/* And goes on: each that he breaks has to be repaired, or rests. */
START_TEST(who_is_apart_and_breaks_another_one_waits_before_his_next_request)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    harm(&s, 1);
    const uint64_t since = w->now_ns;
    for (int i = 0; i < RESTS; i++) {
        ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                         IBV_WC_REM_ACCESS_ERR);
    }
    ck_assert_uint_ge(w->now_ns - since, (RESTS - 1) * REST_NS);
    const uint64_t before = w->now_ns; /* nobody else waits for him */
    ck_assert_int_eq(accomplices_one(w, &s.honest, SCHEMA_OP_WRITE, s.key), IBV_WC_SUCCESS);
    ck_assert_uint_lt(w->now_ns - before, REST_NS / 10);
    accomplices_close(&s);
}
END_TEST

/* Nobody else has anything out there. But queue pairs are everybody's, and have to be repaired, or
 * rest. */
START_TEST(who_breaks_his_own_without_end_waits_too)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    const uint64_t since = w->now_ns;
    for (int i = 0; i < FELT + RESTS; i++) {
        struct world_worker *k = &s.guilty[i % SESSIONS];
        ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, k, SCHEMA_OP_READ, s.gone_key), IBV_WC_REM_ACCESS_ERR);
        if (i < FELT)
            ck_assert_uint_lt(w->now_ns - since, REST_NS);
    }
    ck_assert_uint_ge(w->now_ns - since, (RESTS - 1) * REST_NS);
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    const uint64_t before = w->now_ns; /* nobody else waits for him */
    ck_assert_int_eq(accomplices_one(w, &s.honest, SCHEMA_OP_WRITE, s.key), IBV_WC_SUCCESS);
    ck_assert_uint_lt(w->now_ns - before, REST_NS / 10);
    accomplices_close(&s);
}
END_TEST

/* Nothing of a stranger's is out when a queue pair breaks, but with RC he waits for the next
 * connection each time. With DC another initiator is there at once. */
START_TEST(who_lets_strangers_wait_for_connections_without_end_is_put_apart)
{
    struct accomplices s;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < (BREAKS + 1) * FELT && world_stats(w, 0).tenants_quarantined == 0;
         i++) {
        world_sleep(w, REST_NS);
        ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                         IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(accomplices_one(w, &s.honest, SCHEMA_OP_WRITE, s.key), IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, w->rc);
    accomplices_close(&s);
}
END_TEST

static struct schema_sq_desc add_one(const struct accomplices *s, uint64_t wr_id)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, wr_id, 64, 8, s->key, 0);
    d.post.compare_add = 1;
    return d;
}

/* Who is apart has a flow of his own to the endpoint, and no initiator: his READ is refused with
 * the honest one's additions to the same endpoint behind it, of which the device may have carried
 * out some. */
static void adds_are_done_once(uint32_t seed)
{
    struct accomplices s;
    uint64_t good = 0, failed = 0;
    char order[32];
    snprintf(order, sizeof order, "late:%u", seed);
    setenv("KEDGE_SOFT_ORDER", order, 1);
    world_one_dci = true;
    accomplices_open(&s, w, ack_timeout);
    accomplices_warm(&s);
    for (int i = 0; !w->rc && i < 2 * ROUNDS && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_round(&s, &s.guilty[0], SCHEMA_OP_READ);
    ck_assert(w->rc || world_stats(w, 0).tenants_quarantined == 1);
    ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
    accomplices_bind(&s);
    world_run(w, 3);
    const _Atomic uint64_t *counter = s.stays.arena.addr;
    const uint64_t before = *counter, posted = world_stats(w, 0).posted;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.gone_key, 0);
    world_post(&s.guilty[0], &d);
    accomplices_doorbells(w);
    for (int i = 0; i < LONG && world_stats(w, 0).posted == posted; i++)
        world_run(w, 1); /* its record is READ anew first */
    for (uint64_t i = 0; i < ADDS; i++) {
        d = add_one(&s, i);
        d.vqp = (uint16_t)(i % VQPS);
        world_post(&s.honest, &d);
    }
    accomplices_doorbells(w);
    ck_assert_uint_eq(world_done(w, &s.guilty[0], LONG).status, IBV_WC_REM_ACCESS_ERR);
    for (int i = 0; i < ADDS; i++) {
        const uint8_t status = world_done(w, &s.honest, LONG).status;
        good += status == IBV_WC_SUCCESS;
        failed += status != IBV_WC_SUCCESS;
    }
    const uint64_t done = *counter - before;
    ck_assert_msg(done >= good && done <= good + failed,
                  "seed %u: %lu additions for %lu that ended well and %lu that failed", seed,
                  (unsigned long)done, (unsigned long)good, (unsigned long)failed);
    accomplices_close(&s);
    world_one_dci = false;
    unsetenv("KEDGE_SOFT_ORDER");
}

START_TEST(what_may_have_been_done_behind_one_who_is_apart_is_not_done_again)
{
    for (uint32_t seed = 1; seed <= 16; seed++)
        adds_are_done_once(seed);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(strangers_lose_a_few_requests_to_accomplices_and_then_none)                                  \
    T(it_is_the_same_when_a_tenant_takes_a_session_for_each_break)                                 \
    T(who_is_apart_goes_on_and_not_for_ever)                                                       \
    T(who_is_apart_goes_on_however_many_records_are_wanted)                                        \
    T(those_who_are_apart_do_not_wait_for_each_others_dead)                                        \
    T(who_is_apart_goes_on_where_no_queue_pair_is_free_for_him)                                    \
    T(who_is_apart_goes_on_where_his_queue_pair_is_not_repaired)                                   \
    T(strangers_have_the_queue_pair_of_who_was_apart_when_there_is_no_other)                       \
    T(a_tenant_that_harms_itself_alone_is_not_put_apart)                                           \
    T(who_harms_strangers_seldom_is_not_put_apart)                                                 \
    T(who_breaks_as_many_as_he_can_at_once_is_put_apart_at_once)                                   \
    T(one_region_that_goes_under_many_reads_counts_once)                                           \
    T(who_breaks_queue_pairs_under_reads_that_go_again_is_not_put_apart)                           \
    T(what_may_have_been_done_behind_one_who_is_apart_is_not_done_again)                           \
    T(who_is_apart_and_breaks_another_one_waits_before_his_next_request)                           \
    T(who_breaks_his_own_without_end_waits_too)                                                    \
    T(who_delays_strangers_without_end_is_put_apart)                                               \
    T(who_lets_strangers_wait_for_connections_without_end_is_put_apart)
KEDGE_CHECK_MAIN("agent.lane.quarantine", TESTS)
