/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with several pools, or lanes of them, and no DC: each READs the table through a queue pair
 * of its own. */
#include <stdio.h>

#include "world.h"

/* A node's two: one for its pool 0, one for its pool 1. */
static void open_both(struct reader both[2], const struct world *w)
{
    for (uint8_t i = 0; i < 2; i++) {
        reader_open(&both[i], w, (uint8_t)(i + 1));
        both[i].node = 1;
        both[i].pools = 2;
        both[i].pool = i;
    }
}

static void close_both(struct reader both[2])
{
    reader_close(&both[0]);
    reader_close(&both[1]);
}

START_TEST(each_pool_of_a_node_reads_through_its_own)
{
    struct world w;
    struct reader both[2];
    world_open(&w, 16);
    open_both(both, &w);
    both[0].pools = 0; /* the other one is made later */
    reader_join(&w, &both[0], 5, 201);
    reader_join(&w, &both[1], 5, 200);
    ck_assert(reader_finds(&both[0], &w, 1) && reader_finds(&both[1], &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 2);
    both[0].pools = 2;
    reader_renew(&both[0]); /* one breaks: the other one is left alone */
    reader_join(&w, &both[0], 5, 200);
    ck_assert(reader_finds(&both[0], &w, 1) && reader_finds(&both[1], &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 2);
    ck_assert_uint_eq(world_readers(&w).all, 2 + META_RESPONDERS_SPARES);
    close_both(both);
    world_close(&w);
}
END_TEST

START_TEST(readers_of_two_pools_may_be_asked_for_at_once)
{
    struct world w;
    struct reader both[2];
    struct reply first, last;
    world_open(&w, 16);
    open_both(both, &w);
    world_hold(&w);
    both[0].pools = 0;
    reader_put(&w, &both[0], 5, &first); /* which does not know the other pool */
    reader_put(&w, &both[1], 5, &last);
    world_wait_held(&w);
    ck_assert_int_eq(last.status, META_SERVICE_LATER); /* else the first would take it away */
    world_release(&w);
    world_settle(&w);
    ck_assert_int_eq(first.status, 201);
    ck_assert_int_eq(last.status, 200);
    reader_connect(&both[0], &first);
    reader_connect(&both[1], &last);
    ck_assert(reader_finds(&both[0], &w, 1) && reader_finds(&both[1], &w, 1));
    ck_assert_uint_eq(meta_directory_count(w.s.directory).endpoints, 2);
    close_both(both);
    world_close(&w);
}
END_TEST

START_TEST(a_pool_that_goes_takes_its_reader_with_it)
{
    struct world w;
    struct reader both[2];
    world_open(&w, 16);
    open_both(both, &w);
    reader_join(&w, &both[0], 5, 201);
    reader_join(&w, &both[1], 5, 200);
    reader_renew(&both[0]);
    both[0].pools = 1;
    reader_join(&w, &both[0], 5, 200);
    world_settle(&w);
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).endpoints, 1);
    ck_assert(reader_finds(&both[0], &w, 1));
    ck_assert_int_ne(reader_try(&both[1], &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
    close_both(both);
    world_close(&w);
}
END_TEST

START_TEST(endpoints_change_without_a_reader)
{
    struct world w;
    struct reader both[2];
    struct reply reply;
    static const char one[] = "{\"incarnation\":%d,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":0,"
                              "\"transports\":[\"rc\"],\"ud_qpn\":5,\"ud_qkey\":1,\"mtu\":1024}]}";
    char body[256];
    world_open(&w, 16); /* of a metaserver without DC */
    open_both(both, &w);
    reader_join(&w, &both[0], 5, 201);
    reader_join(&w, &both[1], 5, 200);
    snprintf(body, sizeof body, one, 6);
    world_ask(&w, "PUT", "/v1/nodes/n1", body, &reply); /* another life needs one */
    ck_assert_int_eq(reply.status, 422);
    snprintf(body, sizeof body, one, 5);
    world_ask(&w, "PUT", "/v1/nodes/n1", body, &reply);
    ck_assert_int_eq(reply.status, 200);
    world_settle(&w);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).endpoints, 1);
    ck_assert(reader_finds(&both[0], &w, 1)); /* as it was */
    ck_assert_int_ne(reader_try(&both[1], &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
    close_both(both);
    world_close(&w);
}
END_TEST

START_TEST(a_node_that_goes_or_starts_anew_has_no_reader_of_any_pool)
{
    void (*const ways[])(struct world * w) = {world_delete_node, world_expire_node,
                                              world_put_node_without, NULL};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct world w;
        struct reader both[2], other;
        world_open(&w, 16);
        open_both(both, &w);
        reader_join(&w, &both[0], 5, 201);
        reader_join(&w, &both[1], 5, 200);
        reader_open(&other, &w, 3);
        w.now += WORLD_LEASE / 2;
        reader_join(&w, &other, 5, 201);
        w.now -= WORLD_LEASE / 2;
        if (ways[i] != NULL) {
            ways[i](&w);
        } else { /* the next life's first one */
            reader_renew(&both[0]);
            reader_join(&w, &both[0], 6, 200);
        }
        world_settle(&w);
        ck_assert_uint_eq(world_readers(&w).kept, ways[i] != NULL ? 1 : 2);
        ck_assert_int_ne(reader_try(&both[1], &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
        ck_assert(reader_finds(&other, &w, 3));
        reader_close(&other);
        close_both(both);
        world_close(&w);
    }
}
END_TEST

START_TEST(each_pool_counts_where_readers_are_few)
{
    struct world w;
    struct reader both[2];
    struct reply reply;
    world_open(&w, 1);
    open_both(both, &w);
    reader_join(&w, &both[0], 5, 201);
    reader_put(&w, &both[1], 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "all 1 queue pairs"));
    ck_assert(reader_finds(&both[0], &w, 1));
    close_both(both);
    world_close(&w);
}
END_TEST

/* Readers of one node: of lane i of its pool i / 8. */
static void open_lanes(struct reader all[], uint8_t count, const struct world *w)
{
    for (uint8_t i = 0; i < count; i++) {
        reader_open(&all[i], w, (uint8_t)(i + 1));
        all[i].node = 1;
        all[i].pools = (uint8_t)(1 + (count - 1) / META_RESPONDERS_LANES);
        all[i].pool = i / META_RESPONDERS_LANES;
        all[i].lane = i % META_RESPONDERS_LANES;
    }
}

static void close_lanes(struct reader all[], uint8_t count)
{
    for (uint8_t i = 0; i < count; i++)
        reader_close(&all[i]);
}

START_TEST(each_lane_of_a_pool_reads_through_its_own)
{
    struct world w;
    struct reader lane[3];
    struct reply reply[3];
    world_open(&w, 16);
    open_lanes(lane, 3, &w);
    world_hold(&w);
    for (int i = 0; i < 3; i++)
        reader_put(&w, &lane[i], 5, &reply[i]);
    world_wait_held(&w);
    world_release(&w);
    world_settle(&w);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(reply[i].status, i == 0 ? 201 : 200);
        reader_connect(&lane[i], &reply[i]);
    }
    for (int i = 0; i < 3; i++)
        ck_assert(reader_finds(&lane[i], &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 3);
    reader_renew(&lane[1]); /* one breaks: the others are left alone */
    reader_join(&w, &lane[1], 5, 200);
    for (int i = 0; i < 3; i++)
        ck_assert(reader_finds(&lane[i], &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 3);
    reader_renew(&lane[2]); /* another life begins with whichever lane comes first */
    reader_join(&w, &lane[2], 6, 200);
    world_settle(&w);
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    ck_assert(reader_finds(&lane[2], &w, 1));
    ck_assert_int_ne(reader_try(&lane[0], &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
    close_lanes(lane, 3);
    world_close(&w);
}
END_TEST

START_TEST(further_lanes_take_no_first_lanes_queue_pair)
{
    struct world w;
    struct reader lane[3], other[2];
    struct reply reply;
    world_open(&w, 2);
    open_lanes(lane, 3, &w);
    for (uint8_t i = 0; i < 2; i++)
        reader_open(&other[i], &w, (uint8_t)(i + 5));
    reader_join(&w, &lane[1], 5, 201);
    reader_join(&w, &lane[2], 5, 200);
    other[1].lane = 1; /* the third */
    reader_put(&w, &other[1], 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "all 2 queue pairs") && says(&reply, "for further lanes"));
    reader_join(&w, &other[0], 5, 201);
    reader_join(&w, &lane[0], 5, 200);
    other[1].lane = 0;
    reader_put(&w, &other[1], 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "all 2 queue pairs") && says(&reply, "for readers"));
    reader_renew(&lane[2]); /* who has one gets another */
    reader_join(&w, &lane[2], 5, 200);
    for (int i = 0; i < 3; i++)
        ck_assert(reader_finds(&lane[i], &w, 1));
    world_delete_node(&w); /* its places are free again, of either kind */
    other[1].lane = 1;
    reader_join(&w, &other[1], 5, 201);
    ck_assert(reader_finds(&other[0], &w, 5) && reader_finds(&other[1], &w, 6));
    ck_assert_uint_eq(world_readers(&w).kept, 2);
    close_lanes(lane, 3);
    close_lanes(other, 2);
    world_close(&w);
}
END_TEST

/* It loses its own, and nobody else does. */
START_TEST(a_node_that_says_it_has_many_lanes_has_no_more_than_its_part)
{
    enum { MANY = META_RESPONDERS_OF_NODE + 2 };
    struct world w;
    struct reader lane[MANY], honest;
    world_open(&w, 16);
    reader_open(&honest, &w, 60);
    honest.lane = 3;
    reader_join(&w, &honest, 5, 201);
    open_lanes(lane, MANY, &w);
    for (int i = 0; i < MANY; i++)
        reader_join(&w, &lane[i], 5, i == 0 ? 201 : 200);
    world_settle(&w);
    ck_assert_uint_eq(world_readers(&w).kept, 1 + META_RESPONDERS_OF_NODE);
    ck_assert(reader_finds(&honest, &w, 60));
    ck_assert(reader_finds(&lane[MANY - 1], &w, 1) && reader_finds(&lane[2], &w, 1));
    ck_assert_int_ne(reader_try(&lane[0], &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
    reader_renew(&lane[0]); /* the first in its order, and the newest */
    reader_join(&w, &lane[0], 5, 200);
    world_settle(&w);
    ck_assert_uint_eq(world_readers(&w).kept, 1 + META_RESPONDERS_OF_NODE);
    ck_assert(reader_finds(&lane[0], &w, 1));
    ck_assert(reader_finds(&honest, &w, 60));
    reader_close(&honest);
    close_lanes(lane, MANY);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_pool_of_a_node_reads_through_its_own)                                                   \
    T(readers_of_two_pools_may_be_asked_for_at_once)                                               \
    T(a_pool_that_goes_takes_its_reader_with_it)                                                   \
    T(endpoints_change_without_a_reader)                                                           \
    T(a_node_that_goes_or_starts_anew_has_no_reader_of_any_pool)                                   \
    T(each_pool_counts_where_readers_are_few)                                                      \
    T(each_lane_of_a_pool_reads_through_its_own)                                                   \
    T(further_lanes_take_no_first_lanes_queue_pair)                                                \
    T(a_node_that_says_it_has_many_lanes_has_no_more_than_its_part)
KEDGE_CHECK_MAIN("metaserver reader pools", TESTS)
