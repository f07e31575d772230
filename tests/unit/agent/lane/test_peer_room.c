/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that are known, when there are more than there is room for. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/peers.h"
#include "world.h"
#include "world_held.h"

enum { GOOD = 1, GREEDY = 2, MANY = 40, FEW = 100, LONG = 10000 /* passes */, LOOKS = 70 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world;
static struct world *w = &world;
static uint64_t most_looks; /* at endpoints and lookups, in a pass */

static void name_endpoint(uint64_t which, uint8_t gid[16])
{
    memset(gid, 0xee, 16);
    memcpy(gid, &which, sizeof which);
}

/* That metaservers know, where nobody is. */
static void add_endpoints(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct schema_endpoint_record r = {.pool = w->node[0].config.pool,
                                           .flags = SCHEMA_RECORD_LIVE |
                                                    (w->rc ? SCHEMA_RECORD_RC : SCHEMA_RECORD_DC),
                                           .incarnation = 1};
        name_endpoint(i, r.gid);
        ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
    }
}

static int connect_to(struct world_worker *k, const uint8_t gid[16])
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    memcpy(d.connect.gid, gid, 16);
    d.connect.tag = ++k->tag;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
    const struct schema_reply *reply = &k->r->reply[k->tag % SCHEMA_REPLIES];
    for (int i = 0; i < LONG && atomic_load(&reply->tag) != k->tag; i++) {
        const uint64_t before = world_stats(w, 0).lookups_compared;
        world_run(w, 1);
        const uint64_t looks = world_stats(w, 0).lookups_compared - before;
        most_looks = looks > most_looks ? looks : most_looks;
    }
    ck_assert_uint_eq(atomic_load(&reply->tag), k->tag);
    return reply->status;
}

static int connect_to_one(struct world_worker *k, uint64_t which)
{
    uint8_t gid[16];
    name_endpoint(which, gid);
    return connect_to(k, gid);
}

static bool is_known(const uint8_t gid[16])
{
    uint32_t slot, gen;
    return schema_peers_find(w->node[0].peers, gid, w->node[0].config.pool, &slot, &gen) == 0;
}

/* Forty in a table of eight, where the other tenant's was first the greedy one's too, who may have
 * made its flow. */
static void connect_beside_another(bool greedy_reads)
{
    struct world_worker owner, good, greedy;
    world_open(w);
    add_endpoints(MANY);
    const uint8_t *gid = w->node[1].fab->caps.gid;
    world_attach(w, &owner, 1, 0, GOOD);
    world_attach(w, &good, 0, 0, GOOD);
    world_attach(w, &greedy, 0, 1, GREEDY);
    const uint32_t key = world_register(w, &owner, 0, 64, ALL);
    const struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_int_eq(connect_to(&greedy, gid), 0);
    if (greedy_reads) {
        ck_assert_int_eq(world_connect(w, &greedy, 0, 1), 0);
        ck_assert_uint_eq(world_do(w, &greedy, read, 400).status, IBV_WC_REM_ACCESS_ERR);
    }
    ck_assert_int_eq(connect_to_one(&greedy, 0), 0);
    ck_assert_int_eq(world_connect(w, &good, 0, 1), 0);
    ck_assert_uint_eq(world_do(w, &good, read, 400).status, IBV_WC_SUCCESS);
    for (uint64_t i = 1; i < MANY; i++) {
        ck_assert_int_eq(connect_to_one(&greedy, i), 0);
        ck_assert_msg(is_known(gid), "forgotten by %u", (unsigned)i);
    }
    world_detach(w, &greedy);
    world_detach(w, &good);
    world_detach(w, &owner);
    world_close(w);
}

START_TEST(who_connects_to_many_endpoints_has_his_own_forgotten)
{
    connect_beside_another(false);
}
END_TEST

START_TEST(who_uses_an_endpoint_keeps_it_where_the_one_with_many_used_it_first)
{
    connect_beside_another(true);
}
END_TEST

/* The first hundred are of one who has fewer, who keeps them. */
START_TEST(of_many_endpoints_a_few_are_looked_at_in_a_pass)
{
    struct world_worker good, greedy;
    uint8_t gid[16];
    world_max_peers = 2 * FEW + 1;
    world_open(w);
    add_endpoints(2 * FEW + 2);
    world_attach(w, &good, 0, 0, GOOD);
    world_attach(w, &greedy, 0, 1, GREEDY);
    for (uint64_t i = 0; i < 2 * FEW + 1; i++)
        ck_assert_int_eq(connect_to_one(i < FEW ? &good : &greedy, i), 0);
    ck_assert_uint_eq(world_stats(w, 0).peers, 2 * FEW + 1);
    most_looks = 0;
    ck_assert_int_eq(connect_to_one(&greedy, 2 * FEW + 1), 0);
    ck_assert_msg(most_looks <= LOOKS, "%lu looks in a pass", (unsigned long)most_looks);
    for (uint64_t i = 0; i < FEW; i++) {
        name_endpoint(i, gid);
        ck_assert(is_known(gid));
    }
    ck_assert_uint_eq(world_stats(w, 0).peers, 2 * FEW + 1);
    world_detach(w, &greedy);
    world_detach(w, &good);
    world_close(w);
    world_max_peers = 8;
}
END_TEST

/* Twice as many as there is room for, of one tenant and none of them in use. */
static void turn_over(uint32_t room)
{
    struct world_worker k;
    uint8_t gid[16];
    world_max_peers = room;
    world_open(w);
    add_endpoints(2ull * room);
    world_attach(w, &k, 0, 0, GOOD);
    for (uint64_t i = 0; i < 2ull * room; i++)
        ck_assert_int_eq(connect_to_one(&k, i), 0);
    for (uint64_t i = 0; i < 2ull * room; i++) {
        name_endpoint(i, gid);
        ck_assert_msg(is_known(gid) == (i >= room), "of %u, %u", room, (unsigned)i);
    }
    world_detach(w, &k);
    world_close(w);
    world_max_peers = 8;
}

START_TEST(of_one_tenants_the_one_goes_that_came_first)
{
    turn_over(8);
    turn_over(70); /* more than are looked at each time */
}
END_TEST

START_TEST(where_all_are_in_use_one_more_waits_and_then_hears_that_there_is_no_room)
{
    struct world_worker k;
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, 12345, 0);
    world_max_peers = 1;
    world_open(w);
    add_endpoints(2);
    world_attach(w, &k, 0, 0, GOOD);
    w->away[2] = true;
    ck_assert_int_eq(world_connect(w, &k, 0, 2), 0);
    world_post(&k, &d);
    world_run(w, 10);
    const uint64_t since_ns = w->now_ns;
    ck_assert_int_eq(connect_to_one(&k, 0), -ENOSPC);
    ck_assert_uint_ge(w->now_ns - since_ns, w->node[0].config.lookup_timeout_ns);
    world_detach(w, &k);
    world_close(w);
    world_max_peers = 8;
}
END_TEST

/* All eight are of one who goes. Of the next one in its place none is, so that it may have as many
 * beside another. */
START_TEST(whose_place_was_anothers_has_none_of_the_endpoints_of_that_one)
{
    struct world_worker k, other;
    uint8_t gid[16];
    const struct lane_command next = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_TENANT, .tenant = GREEDY % WORLD_TENANTS, .anew = true}};
    world_open(w);
    add_endpoints(MANY);
    world_attach(w, &k, 0, 0, GREEDY);
    for (uint64_t i = 0; i < world_max_peers; i++)
        ck_assert_int_eq(connect_to_one(&k, i), 0);
    world_detach(w, &k);
    ck_assert_int_eq(lane_command(w->node[0].lane, &next), 0);
    world_attach(w, &k, 0, 0, GREEDY);
    world_attach(w, &other, 0, 1, GOOD);
    ck_assert_int_eq(connect_to_one(&k, MANY - 1), 0);
    for (uint64_t i = 1; i < world_max_peers; i++)
        ck_assert_int_eq(connect_to_one(&other, world_max_peers + i), 0);
    for (uint64_t i = 1; i < world_max_peers; i++) {
        name_endpoint(world_max_peers + i, gid);
        ck_assert_msg(is_known(gid), "%u is not known", (unsigned)i);
    }
    name_endpoint(MANY - 1, gid);
    ck_assert(is_known(gid));
    world_detach(w, &k);
    world_detach(w, &other);
    world_close(w);
}
END_TEST

/* All whose lookups are over want room in one pass. */
START_TEST(of_many_that_want_room_at_once_each_gets_it_and_a_pass_looks_a_few_times)
{
    static struct world_worker crowd[MANY];
    uint64_t most = 0;
    uint32_t answered = 0;
    world_max_peers = FEW;
    world_open(w);
    add_endpoints(FEW + MANY);
    for (uint32_t i = 0; i < MANY; i++)
        world_attach(w, &crowd[i], 0, i, GREEDY);
    for (uint64_t i = 0; i < FEW; i++)
        ck_assert_int_eq(connect_to_one(&crowd[0], i), 0);
    world_hold(&w->node[0], w->node[0].cq);
    for (uint32_t i = 0; i < MANY; i++) {
        struct schema_sq_desc d = {
            .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
        name_endpoint(FEW + i, d.connect.gid);
        d.connect.tag = ++crowd[i].tag;
        world_post(&crowd[i], &d);
        lane_doorbell(w->node[0].lane, i);
    }
    world_run(w, 2 * MANY);
    world_give();
    while (answered < MANY) {
        const uint64_t before = world_stats(w, 0).lookups_compared;
        world_run(w, 1);
        const uint64_t looks = world_stats(w, 0).lookups_compared - before;
        most = looks > most ? looks : most;
        answered = 0;
        for (uint32_t i = 0; i < MANY; i++)
            answered +=
                atomic_load(&crowd[i].r->reply[crowd[i].tag % SCHEMA_REPLIES].tag) == crowd[i].tag;
    }
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_int_eq(crowd[i].r->reply[crowd[i].tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_gt(most, 0);
    ck_assert_msg(most <= 4 * LOOKS, "%lu looks in a pass", (unsigned long)most);
    for (uint32_t i = 0; i < MANY; i++)
        world_detach(w, &crowd[i]);
    world_held_end();
    world_close(w);
    world_max_peers = 8;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_connects_to_many_endpoints_has_his_own_forgotten)                                        \
    T(who_uses_an_endpoint_keeps_it_where_the_one_with_many_used_it_first)                         \
    T(of_many_endpoints_a_few_are_looked_at_in_a_pass)                                             \
    T(of_many_that_want_room_at_once_each_gets_it_and_a_pass_looks_a_few_times)                    \
    T(whose_place_was_anothers_has_none_of_the_endpoints_of_that_one)                              \
    T(of_one_tenants_the_one_goes_that_came_first)                                                 \
    T(where_all_are_in_use_one_more_waits_and_then_hears_that_there_is_no_room)
KEDGE_CHECK_MAIN("agent.lane.peer_room", TESTS)
