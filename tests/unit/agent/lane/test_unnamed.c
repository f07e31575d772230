/* SPDX-License-Identifier: Apache-2.0 */
/* The same where a device does not say whose request has broken a queue pair: with RC alone, since
 * what has DC names it. */
#include <string.h>

#include "../../check_main.h"
#include "world_accomplices.h"

enum {
    ACK_TIMEOUT = 19, /* 2 s, which a busy host does not disturb */
    UNNAMED = 6,      /* breaks without a name, until all go apart */
    STRANGER = 9,     /* a tenant */
    PEERS = 2,
    TENANTS_OF_THIRD = 3
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t SECOND = 1000000000;
static const uint64_t REST_NS = 2000000;

static struct world world;
static struct world *w = &world;

/* On a device that completes errors in another's name: the honest one's. What was out then goes
 * again one by one, and what comes behind it too, so that the guilty one's next error is his own.
 * With RC alone: what has DC names the request. */
static void harm_without_names(uint8_t op)
{
    struct accomplices s;
    world_fault = (struct fault_plan){.seed = 1, .errors_first = true};
    accomplices_open(&s, w, ACK_TIMEOUT);
    accomplices_warm(&s);
    for (uint32_t i = 0; w->rc && i < ROUNDS; i++)
        accomplices_round(&s, &s.guilty[i % SESSIONS], op);
    ck_assert_msg(s.failed <= BREAKS * WRITES, "%u of %u honest requests failed", s.failed,
                  s.posted);
    ck_assert(!w->node[0].quarantined[HONEST % WORLD_TENANTS]);
    accomplices_close(&s);
}

START_TEST(where_errors_have_no_names_who_reads_is_put_apart_and_nobody_for_him)
{
    harm_without_names(SCHEMA_OP_READ);
}
END_TEST

START_TEST(where_errors_have_no_names_who_writes_is_put_apart_and_nobody_for_him)
{
    harm_without_names(SCHEMA_OP_WRITE);
}
END_TEST

/* He waits each time until requests go together again. */
START_TEST(where_errors_have_no_names_who_bides_his_time_harms_strangers_a_few_times)
{
    struct accomplices s;
    world_fault = (struct fault_plan){.seed = 1, .errors_first = true};
    accomplices_open(&s, w, ACK_TIMEOUT);
    accomplices_warm(&s);
    for (uint32_t i = 0; w->rc && i < ROUNDS; i++) {
        accomplices_round(&s, &s.guilty[i % SESSIONS], SCHEMA_OP_WRITE);
        for (int more = 0; more < 4; more++) {
            accomplices_bind(&s);
            accomplices_post(&s, SCHEMA_OP_WRITE);
            accomplices_take(&s);
        }
    }
    ck_assert_msg(s.failed <= UNNAMED * WRITES, "%u of %u honest requests failed", s.failed,
                  s.posted);
    ck_assert(!w->rc || w->node[0].quarantined[GUILTY % WORLD_TENANTS]);
    ck_assert(!w->rc || w->node[0].named[GUILTY % WORLD_TENANTS]);
    ck_assert(!w->node[0].named[HONEST % WORLD_TENANTS]);
    world_sleep(w, 60 * SECOND);
    world_run(w, 2000);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, 0);
    accomplices_close(&s);
}
END_TEST

/* There is nobody but him. */
START_TEST(where_errors_have_no_names_a_tenant_by_itself_is_not_put_apart)
{
    enum { MANY = 3 };
    struct accomplices s;
    world_fault = (struct fault_plan){.seed = 1, .errors_first = true};
    accomplices_open(&s, w, ACK_TIMEOUT);
    accomplices_warm(&s);
    for (int round = 0; round < 3 * BREAKS; round++) {
        world_sleep(w, EVENT_NS);
        for (int i = 0; i < MANY; i++)
            ck_assert_int_eq(world_connect(w, &s.guilty[i], 0, 1), 0);
        world_run(w, 3);
        for (int i = 0; i < MANY; i++) {
            struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.gone_key, 0);
            world_post(&s.guilty[i], &d);
        }
        accomplices_doorbells(w);
        for (int i = 0; i < MANY; i++)
            ck_assert_uint_ne(world_done(w, &s.guilty[i], LONG).status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_gt(world_stats(w, 0).qp_broken, BREAKS);
    ck_assert_uint_eq(world_stats(w, 0).quarantined, 0);
    accomplices_close(&s);
}
END_TEST

/* ---- connections */

/* A third tenant that had nothing out beside them, and regions of all on both other nodes. */
struct third {
    struct world_worker worker, owner[PEERS][TENANTS_OF_THIRD];
    uint32_t key[PEERS][TENANTS_OF_THIRD];
};
static const uint32_t tenants[TENANTS_OF_THIRD] = {GUILTY, HONEST, STRANGER};

/* VQPs 6 and 7 of each: to the nodes 1 and 2. */
static void use_both(struct third *t, struct world_worker *k, uint32_t tenant)
{
    for (uint16_t p = 0; p < PEERS; p++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, p, 0, 8, t->key[p][tenant], 0);
        d.vqp = 6 + p;
        world_post(k, &d);
        ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
    }
}

static void connect_both_nodes(struct world_worker *k)
{
    for (uint16_t p = 0; p < PEERS; p++)
        ck_assert_int_eq(world_connect(w, k, 6 + p, p + 1), 0);
}

static void third_open(struct third *t)
{
    for (uint32_t p = 0; p < PEERS; p++)
        for (uint32_t i = 0; i < TENANTS_OF_THIRD; i++) {
            world_attach(w, &t->owner[p][i], p + 1, 10 + i, tenants[i]);
            t->key[p][i] = world_register(w, &t->owner[p][i], 0, 4096, ALL);
        }
    world_attach(w, &t->worker, 0, 10, STRANGER);
    connect_both_nodes(&t->worker);
}

static void third_close(struct third *t)
{
    world_detach(w, &t->worker);
    for (uint32_t p = 0; p < PEERS; p++)
        for (uint32_t i = 0; i < TENANTS_OF_THIRD; i++)
            world_detach(w, &t->owner[p][i]);
}

/* Two tenants are apart, of whom one has done nothing, and use two nodes each, with connections of
 * their own. Whoever was not apart uses the same nodes. */
struct two_apart {
    struct accomplices s;
    struct third t;
    uint32_t evicted, lost; /* lost: by the third */
    uint64_t took_ns;
};

static void two_apart_open(struct two_apart *a, uint64_t rest_ns, uint32_t max_links)
{
    struct accomplices *s = &a->s;
    *a = (struct two_apart){.evicted = 0};
    world_fault = (struct fault_plan){
        .seed = 1, .errors_first = true, .packet_life_ns = rest_ns, .now_ns = &w->now_ns};
    world_max_links = max_links;
    accomplices_open(s, w, ACK_TIMEOUT);
    accomplices_warm(s);
    for (uint32_t i = 0; w->rc && i < 2 * ROUNDS && world_stats(w, 0).tenants_quarantined < 2;
         i++) {
        accomplices_round(s, &s->guilty[i % SESSIONS], SCHEMA_OP_WRITE);
        for (int more = 0; more < 4; more++) {
            accomplices_bind(s);
            accomplices_post(s, SCHEMA_OP_WRITE);
            accomplices_take(s);
        }
    }
    third_open(&a->t);
    connect_both_nodes(&s->guilty[0]);
    connect_both_nodes(&s->honest);
    ck_assert(!w->rc || world_stats(w, 0).tenants_quarantined == 2);
    use_both(&a->t, &a->t.worker, 2);
}

static void two_apart_run(struct two_apart *a)
{
    uint32_t before[WORLD_FLOWS];
    const uint64_t since_ns = w->now_ns, links = world_stats(w, 0).links_evicted;
    for (int round = 0; w->rc && round < ROUNDS; round++) {
        memcpy(before, w->node[0].wanted_paths, sizeof before);
        use_both(&a->t, &a->t.worker, 2);
        for (int f = 0; f < WORLD_FLOWS; f++)
            a->lost += w->node[0].wanted_paths[f] != before[f];
        use_both(&a->t, &a->s.guilty[0], 0);
        use_both(&a->t, &a->s.honest, 1);
    }
    a->evicted = (uint32_t)(world_stats(w, 0).links_evicted - links);
    a->took_ns = w->now_ns - since_ns;
    ck_assert(!w->rc || world_stats(w, 0).tenants_quarantined == 2);
}

static void two_apart_close(struct two_apart *a)
{
    third_close(&a->t);
    accomplices_close(&a->s);
    world_max_links = 0;
}

START_TEST(connections_of_those_who_are_apart_are_not_taken_from_strangers)
{
    struct two_apart a;
    two_apart_open(&a, 0, 4);
    two_apart_run(&a);
    ck_assert_msg(a.lost == 0, "a stranger's connections were lost %u times (%u evictions)", a.lost,
                  a.evicted);
    two_apart_close(&a);
}
END_TEST

static void use_one(struct third *t, struct world_worker *k, uint32_t tenant)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, t->key[0][tenant], 0);
    d.vqp = 6;
    world_post(k, &d);
    ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
}

/* Two are theirs, of which the honest one needs one, and the guilty one as many as he gets. */
START_TEST(nor_from_an_honest_one_who_is_apart_too)
{
    struct two_apart a;
    uint32_t before[WORLD_FLOWS];
    two_apart_open(&a, 0, 8);
    use_one(&a.t, &a.s.honest, 1);
    for (int round = 0; w->rc && round < ROUNDS; round++) {
        use_both(&a.t, &a.s.guilty[0], 0);
        memcpy(before, w->node[0].wanted_paths, sizeof before);
        use_one(&a.t, &a.s.honest, 1);
        a.lost += memcmp(before, w->node[0].wanted_paths, sizeof before) != 0;
    }
    ck_assert_uint_eq(a.lost, 0);
    two_apart_close(&a);
}
END_TEST

/* Where a queue pair rests after its connection. */
START_TEST(nor_do_they_keep_the_queue_pairs_of_all_at_rest)
{
    struct two_apart a;
    two_apart_open(&a, REST_NS, 4);
    two_apart_run(&a);
    ck_assert_msg(a.lost == 0 && a.evicted <= a.took_ns / REST_NS + 1,
                  "%u evictions in %lu us, %u of them a stranger's", a.evicted,
                  (unsigned long)a.took_ns / 1000, a.lost);
    two_apart_close(&a);
}
END_TEST

static void post_one(const struct third *t, struct world_worker *k, uint16_t peer, uint32_t tenant)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, t->key[peer][tenant], 0);
    d.vqp = 6 + peer;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
}

/* One who is apart gives up a connection to a dead node, on which something is out for seconds. A
 * stranger, whose connection is never idle, gives up that one for another. */
START_TEST(nor_do_strangers_wait_until_one_of_theirs_has_come_back_from_a_dead_node)
{
    enum { PASSES = 20000, MANY = 50 * LONG, OWN = 5 /* VQP */ };
    struct two_apart a;
    struct world_worker *k = &a.t.worker;
    struct schema_cqe e;
    bool done = false;
    two_apart_open(&a, 0, 2);
    const uint32_t own_key = world_register(w, k, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, k, OWN, 0), 0);
    use_one(&a.t, &a.s.guilty[0], 0);
    if (w->rc) {
        connector_free(w->node[1].connector);
        w->node[1].connector = NULL;
        post_one(&a.t, &a.s.guilty[0], 0, 0);
        world_run(w, 5);
        post_one(&a.t, &a.s.guilty[0], 1, 0);
    }
    for (int pass = 0; w->rc && pass < PASSES && !done; pass++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 2, 64, 8, own_key, 0);
        d.vqp = OWN;
        if (pass < LATE || world_poll(w, k, &e, 0)) {
            post_one(&a.t, k, 1, 2);
            done = pass >= LATE && e.vqp == OWN;
        }
        if (pass == LATE)
            world_post(k, &d);
        world_run(w, 1);
    }
    ck_assert(!w->rc || (done && e.status == IBV_WC_SUCCESS));
    ck_assert(!world_poll(w, &a.s.guilty[0], &e, 0));
    if (w->rc) /* what is out there comes back after all, by the real clock */
        ck_assert(world_poll(w, &a.s.guilty[0], &e, MANY));
    two_apart_close(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(where_errors_have_no_names_who_reads_is_put_apart_and_nobody_for_him)                        \
    T(where_errors_have_no_names_who_writes_is_put_apart_and_nobody_for_him)                       \
    T(where_errors_have_no_names_who_bides_his_time_harms_strangers_a_few_times)                   \
    T(where_errors_have_no_names_a_tenant_by_itself_is_not_put_apart)                              \
    T(connections_of_those_who_are_apart_are_not_taken_from_strangers)                             \
    T(nor_from_an_honest_one_who_is_apart_too)                                                     \
    T(nor_do_they_keep_the_queue_pairs_of_all_at_rest)                                             \
    T(nor_do_strangers_wait_until_one_of_theirs_has_come_back_from_a_dead_node)
KEDGE_CHECK_MAIN("agent.lane.unnamed", TESTS)
