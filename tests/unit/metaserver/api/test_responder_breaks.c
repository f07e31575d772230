/* SPDX-License-Identifier: Apache-2.0 */
/* Readers whose metaserver's end breaks, and how their agents hear of it. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static void renew(struct world *w, struct reply *reply)
{
    world_ask(w, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}", reply);
    ck_assert_int_eq(reply->status, 200);
}

/* Its own end may say nothing for as long as it repeats what it has asked for. */
START_TEST(whose_queue_pair_has_broken_is_told_so_until_it_has_another)
{
    struct world w;
    struct reader a, next;
    struct reply reply;
    char broken[64];
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_open(&next, &w, 2);
    next.node = a.node;
    reader_put(&w, &a, 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 201);
    reader_connect(&a, &reply);
    unsigned qpn = 0;
    ck_assert_int_eq(sscanf(strstr(reply.body, "\"rc\":{"), "\"rc\":{\"qpn\":%u", &qpn), 1);
    snprintf(broken, sizeof broken, "\"broken_qpns\":[%u]", qpn);
    renew(&w, &reply);
    ck_assert(!says(&reply, "broken"));
    ck_assert_ptr_null(meta_responders_broken(w.s.responders));
    (void)reader_try(&a, &w, IBV_WR_RDMA_WRITE, 1); /* which it may not */
    ck_assert_str_eq(world_hear_broken(&w), "n1");
    ck_assert_ptr_null(meta_responders_broken(w.s.responders)); /* once */
    for (int i = 0; i < 2; i++) {
        renew(&w, &reply);
        ck_assert(says(&reply, broken));
    }
    reader_join(&w, &next, 5, 200);
    renew(&w, &reply);
    ck_assert(!says(&reply, "broken"));
    ck_assert_ptr_null(meta_responders_broken(w.s.responders));
    ck_assert(reader_finds(&next, &w, 1));
    reader_close(&a);
    reader_close(&next);
    world_close(&w);
}
END_TEST

START_TEST(of_several_pools_those_are_named_whose_queue_pairs_have_broken)
{
    struct world w;
    struct reader a, b;
    struct reply reply;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_open(&b, &w, 2);
    b.node = a.node;
    a.pools = b.pools = 2;
    b.pool = 1;
    reader_join(&w, &a, 5, 201);
    reader_join(&w, &b, 5, 200);
    ck_assert_ptr_null(meta_responders_broken(w.s.responders));
    (void)reader_try(&b, &w, IBV_WR_RDMA_WRITE, 1);
    ck_assert_str_eq(world_hear_broken(&w), "n1");
    ck_assert_ptr_null(meta_responders_broken(w.s.responders));
    renew(&w, &reply);
    ck_assert(says(&reply, "\"broken_qpns\":[") &&
              strchr(strstr(reply.body, "broken_qpns"), ',') == NULL);
    ck_assert(reader_finds(&a, &w, 1));
    (void)reader_try(&a, &w, IBV_WR_RDMA_WRITE, 1);
    ck_assert_str_eq(world_hear_broken(&w), "n1");
    renew(&w, &reply);
    ck_assert_ptr_nonnull(strchr(strstr(reply.body, "broken_qpns"), ','));
    reader_close(&a);
    reader_close(&b);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(whose_queue_pair_has_broken_is_told_so_until_it_has_another)                                 \
    T(of_several_pools_those_are_named_whose_queue_pairs_have_broken)
KEDGE_CHECK_MAIN("metaserver readers that break", TESTS)
