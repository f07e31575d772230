/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs: one READ shows whether an endpoint or a metaserver is reached, and whoever does not
 * answer to it is in nobody's way. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, LONG = 200000 /* passes: a time-out of the device is in real time */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static uint32_t tag;

static void begin(uint32_t node, struct lane_command c)
{
    c.kind = LANE_COMMAND_PROVE;
    c.prove.tag = ++tag;
    ck_assert_int_eq(lane_command(w->node[node].lane, &c), 0);
}

static void begin_endpoint(uint32_t target, uint64_t fresh_ns)
{
    struct lane_command c = {.prove = {.metaserver = LANE_PROVE_ENDPOINT, .fresh_ns = fresh_ns}};
    memcpy(c.prove.gid, w->node[target].fab->caps.gid, sizeof c.prove.gid);
    begin(0, c);
}

static bool is_over(void)
{
    const struct lane_event *e = &w->node[0].answer;
    return e->kind == LANE_EVENT_PROVED && e->proved.tag == tag;
}

static int result(void)
{
    for (unsigned i = 0; i < LONG && !is_over(); i++)
        world_run(w, 100);
    ck_assert(is_over());
    return w->node[0].answer.proved.status;
}

static int prove(uint32_t target)
{
    begin_endpoint(target, 0);
    return result();
}

START_TEST(an_endpoint_is_proven_by_one_read_and_nothing_is_left_of_it)
{
    world_open(w);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(prove(1), 0);
        ck_assert_uint_eq(world_stats(w, 0).proofs, i);
    }
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    ck_assert_uint_eq(world_stats(w, 0).flows, 0);
    ck_assert_uint_eq(world_stats(w, 0).proofs_failed, 0);
    ck_assert_uint_eq(w->node[0].broken, 0);
    world_close(w);
}
END_TEST

START_TEST(what_workers_requests_have_shown_is_not_asked)
{
    struct world_worker owner, k;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    begin_endpoint(1, UINT64_C(1000000000));
    ck_assert_int_eq(result(), 0);
    ck_assert_uint_eq(world_stats(w, 0).proofs, 0);
    world_sleep(w, UINT64_C(1000000000));
    begin_endpoint(1, UINT64_C(1000000000));
    ck_assert_int_eq(result(), 0);
    ck_assert_uint_eq(world_stats(w, 0).proofs, 1);
    world_unpair(w, &owner, &k);
}
END_TEST

/* It answered long ago, and is dead now, which has not shown yet. */
START_TEST(that_something_is_out_to_it_proves_nothing)
{
    struct world_worker owner, k;
    world_ack_timeout = 16; /* 0.3 s, and repeated */
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    world_sleep(w, UINT64_C(500000000));
    world_silence_node(w, 1);
    const uint64_t reads = world_stats(w, 0).mr_reads;
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
    for (int i = 0; i < LONG && world_stats(w, 0).mr_reads == reads; i++)
        world_run(w, 1);
    begin_endpoint(1, UINT64_C(100000000));
    const int status = result();
    ck_assert(status == -ETIMEDOUT || status == -EHOSTUNREACH);
    ck_assert_uint_ne(world_done(w, &k, LONG).status, IBV_WC_SUCCESS);
    world_unpair(w, &owner, &k);
    world_ack_timeout = 4;
}
END_TEST

START_TEST(a_silent_endpoint_is_asked_twice_and_others_go_on_beside_it)
{
    struct world_worker owner, k;
    world_max_links = WORLD_LINKS + 1;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_silence_node(w, 2);
    begin_endpoint(2, 0);
    int good = 0;
    for (unsigned i = 0; i < LONG && !is_over(); i++) {
        const struct schema_cqe e = world_do(w, &k, d, LONG);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        good++;
    }
    const int status = result();
    ck_assert(status == -ETIMEDOUT || status == -EHOSTUNREACH);
    ck_assert_int_gt(good, 0);
    const struct lane_stats s = world_stats(w, 0);
    ck_assert_uint_eq(s.failed, 0);
    ck_assert_uint_eq(s.reposted, 0); /* nothing of theirs was behind it */
    ck_assert_uint_eq(s.suspects, 0);
    ck_assert_uint_eq(s.proofs_failed, 1);
    world_run(w, 1000);
    world_restart_node(w, 2);
    ck_assert_int_eq(prove(2), 0);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(an_endpoint_that_has_restarted_is_looked_up_and_proven)
{
    world_open(w);
    ck_assert_int_eq(prove(1), 0);
    world_restart_node(w, 1);
    ck_assert_int_eq(prove(1), 0); /* the record of before is still believed, and has no target */
    world_close(w);
}
END_TEST

START_TEST(one_that_has_left_is_no_failure)
{
    world_open(w);
    ck_assert_int_eq(prove(1), 0);
    struct schema_endpoint_record r = {.pool = w->node[1].config.pool};
    memcpy(r.gid, w->node[1].fab->caps.gid, sizeof r.gid);
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
    world_silence_node(w, 1);
    ck_assert_int_eq(prove(1), -ENOENT);
    ck_assert_uint_eq(world_stats(w, 0).proofs_failed, 0);
    world_close(w);
}
END_TEST

START_TEST(a_metaserver_is_proven_unless_a_lookup_has)
{
    const struct lane_command c = {.prove = {.metaserver = 0, .fresh_ns = 10000000}};
    world_open(w);
    begin(0, c);
    ck_assert_int_eq(result(), 0);
    ck_assert_uint_eq(world_stats(w, 0).proofs, 1);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 0);
    world_sleep(w, 20000000);
    ck_assert_int_eq(prove(1), 0); /* which looks it up, once */
    ck_assert_uint_eq(world_stats(w, 0).proofs, 2);
    begin(0, c);
    ck_assert_int_eq(result(), 0);
    ck_assert_uint_eq(world_stats(w, 0).proofs, 2);
    world_forget_metaserver(w, 0);
    begin(0, c);
    ck_assert_int_eq(result(), -ENOENT);
    world_close(w);
}
END_TEST

/* With DC. */
START_TEST(a_spare_is_not_dropped_while_a_proof_is_out_on_it)
{
    world_ack_timeout = 15; /* 0.1 s, and repeated: a busy host is not to take as long */
    world_open(w);
    world_ack_timeout = 4;
    struct world_node *n = &w->node[0];
    if (!w->rc) {
        const struct lane_command drop = {.kind = LANE_COMMAND_SPARE_DROP};
        ck_assert_int_eq(prove(1), 0);
        world_silence_node(w, 1);
        begin_endpoint(1, 0);
        while (world_stats(w, 0).proofs < 2)
            world_run(w, 1);
        uint32_t dropped = 0;
        for (uint32_t i = 0; i < WORLD_SPARES; i++) {
            const uint32_t before = n->answers;
            ck_assert_int_eq(lane_command(n->lane, &drop), 0);
            while (n->answers == before)
                world_run(w, 1);
            if (n->answer.kind == LANE_EVENT_SPARE_DROPPED && n->answer.qp != NULL) {
                dropped++;
                ck_assert(n->answer.qp != n->res.spare[0]);
            }
        }
        ck_assert_uint_eq(dropped, WORLD_SPARES - 1);
        for (unsigned i = 0; i < LONG && world_stats(w, 0).proofs_failed == 0; i++)
            world_run(w, 100);
        ck_assert_uint_eq(world_stats(w, 0).proofs_failed, 1);
    }
    world_close(w);
}
END_TEST

/* With RC. */
START_TEST(no_connection_is_made_for_a_proof_where_there_is_no_room_for_others_beside_it)
{
    struct world_worker owner, k;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    if (w->rc) {
        ck_assert_int_eq(prove(2), -EAGAIN);
        ck_assert_uint_eq(world_stats(w, 0).links, 1);
        ck_assert_int_eq(prove(1), 0); /* on that of the worker */
        ck_assert_uint_eq(world_stats(w, 0).proofs, 1);
        ck_assert_uint_eq(world_stats(w, 0).links, 1);
    }
    world_unpair(w, &owner, &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_endpoint_is_proven_by_one_read_and_nothing_is_left_of_it)                                 \
    T(what_workers_requests_have_shown_is_not_asked)                                               \
    T(that_something_is_out_to_it_proves_nothing)                                                  \
    T(a_silent_endpoint_is_asked_twice_and_others_go_on_beside_it)                                 \
    T(an_endpoint_that_has_restarted_is_looked_up_and_proven)                                      \
    T(one_that_has_left_is_no_failure)                                                             \
    T(a_metaserver_is_proven_unless_a_lookup_has)                                                  \
    T(a_spare_is_not_dropped_while_a_proof_is_out_on_it)                                           \
    T(no_connection_is_made_for_a_proof_where_there_is_no_room_for_others_beside_it)
KEDGE_CHECK_MAIN("agent.lane.prove", TESTS)
