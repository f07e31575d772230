/* SPDX-License-Identifier: Apache-2.0 */
/* Where a metaserver's device has fewer queue pairs than first and further lanes want. */
#include <stdio.h>
#include <string.h>

#include "world.h"

enum { MAX_READERS = 16, SHARED = 4, MAX_QP = SHARED + META_RESPONDERS_SPARES + 1 };

static void open_reader(struct reader *a, const struct world *w, uint8_t number, uint8_t node,
                        uint8_t lane)
{
    reader_open(a, w, number);
    a->node = node;
    a->lane = lane;
}

static bool reads(struct reader *a, const struct world *w)
{
    return reader_try(a, w, IBV_WR_RDMA_READ, 1) == IBV_WC_SUCCESS;
}

static void renew(struct world *w, const struct reader *a, struct reply *reply)
{
    char path[32];
    snprintf(path, sizeof path, "/v1/nodes/n%u/renew", a->node);
    world_ask(w, "POST", path, "{\"incarnation\":5}", reply);
    ck_assert_int_eq(reply->status, 200);
}

static void refuse(struct world *w, const struct reader *a, const char *why)
{
    struct reply reply;
    reader_put(w, a, 5, &reply);
    world_settle(w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert_msg(says(&reply, why), "%s", reply.body);
}

/* Two further lanes have half of the four; five first ones come. */
START_TEST(further_lanes_make_room_for_first_ones)
{
    struct world w;
    struct reader first[5], further[3];
    world_open_small(&w, MAX_READERS, MAX_QP);
    for (uint8_t i = 0; i < 5; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), (uint8_t)(i + 1), 0);
    for (uint8_t i = 0; i < 3; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 6), 1, (uint8_t)(i + 1));
    reader_join(&w, &first[0], 5, 201);
    reader_join(&w, &further[0], 5, 200);
    reader_join(&w, &further[1], 5, 200);
    refuse(&w, &further[2], "all 2 queue pairs that this metaserver has for further lanes");
    reader_join(&w, &first[1], 5, 201);
    ck_assert(reads(&further[0], &w) && reads(&further[1], &w));
    ck_assert_uint_eq(world_readers(&w).taken, 0);
    for (uint8_t i = 2; i < SHARED; i++) { /* more than are left: a further one's goes for each */
        reader_join(&w, &first[i], 5, 201);
        world_settle(&w);
        ck_assert_uint_eq(world_readers(&w).kept, SHARED);
        ck_assert_uint_eq(world_readers(&w).taken, i - 1u);
    }
    for (uint8_t i = 0; i < SHARED; i++)
        ck_assert(reads(&first[i], &w));
    ck_assert(!reads(&further[0], &w) && !reads(&further[1], &w));
    refuse(&w, &first[4], "all 4 queue pairs that this metaserver has for readers");
    refuse(&w, &further[2], "all 0 queue pairs that this metaserver has for further lanes");
    reader_renew(&first[2]); /* who has one gets another */
    reader_join(&w, &first[2], 5, 200);
    ck_assert(reads(&first[2], &w));
    ck_assert_uint_eq(world_readers(&w).taken, 2);
    for (uint8_t i = 0; i < 5; i++)
        reader_close(&first[i]);
    for (uint8_t i = 0; i < 3; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

/* What first ones have counts, and what is on its way to them. */
START_TEST(further_lanes_have_what_first_ones_leave)
{
    struct world w;
    struct reader first[3], further[2];
    struct reply reply[3], late;
    world_open_small(&w, MAX_READERS, MAX_QP);
    for (uint8_t i = 0; i < 3; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), (uint8_t)(i + 1), 0);
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 6), 1, (uint8_t)(i + 1));
    reader_join(&w, &first[0], 5, 201);
    world_hold(&w);
    reader_put(&w, &first[1], 5, &reply[1]);
    reader_put(&w, &first[2], 5, &reply[2]);
    reader_put(&w, &further[0], 5, &reply[0]);
    reader_put(&w, &further[1], 5, &late);
    world_wait_held(&w);
    world_release(&w);
    world_settle(&w);
    ck_assert_int_eq(reply[1].status, 201);
    ck_assert_int_eq(reply[2].status, 201);
    ck_assert_int_eq(reply[0].status, 200);
    ck_assert_int_eq(late.status, 503);
    ck_assert(says(&late, "all 1 queue pairs"));
    refuse(&w, &further[1], "all 1 queue pairs"); /* now that all are kept */
    ck_assert_uint_eq(world_readers(&w).taken, 0);
    world_delete_node(&w); /* its two are free: there is room for a further one again */
    reader_close(&first[0]);
    open_reader(&first[0], &w, 9, 2, 1);
    reader_join(&w, &first[0], 5, 200);
    ck_assert(reader_finds(&first[0], &w, 2));
    for (uint8_t i = 0; i < 3; i++)
        reader_close(&first[i]);
    for (uint8_t i = 0; i < 2; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

/* Whoever has the most of them, be its name what it may. */
START_TEST(the_node_with_the_most_further_lanes_loses_one)
{
    for (uint8_t greedy = 1; greedy <= 2; greedy++) {
        struct world w;
        struct reader further[3], first[2];
        const uint8_t modest = (uint8_t)(3 - greedy);
        world_open_small(&w, MAX_READERS, MAX_QP + 2);
        for (uint8_t i = 0; i < 3; i++)
            open_reader(&further[i], &w, (uint8_t)(i + 1), i == 1 ? modest : greedy,
                        (uint8_t)(i + 1));
        reader_join(&w, &further[0], 5, 201);
        reader_join(&w, &further[1], 5, 201);
        reader_join(&w, &further[2], 5, 200);
        for (uint8_t i = 0; i < 4; i++) {
            struct reader *a = &first[i % 2];
            open_reader(a, &w, (uint8_t)(i + 4), (uint8_t)(i + 4), 0);
            reader_join(&w, a, 5, 201);
            ck_assert(reads(a, &w));
            reader_close(a);
        }
        world_settle(&w);
        ck_assert_uint_eq(world_readers(&w).taken, 1);
        ck_assert(reads(&further[0], &w) && reads(&further[1], &w) && !reads(&further[2], &w));
        for (uint8_t i = 0; i < 3; i++)
            reader_close(&further[i]);
        world_close(&w);
    }
}
END_TEST

/* Else it would hear of it by its time-outs alone. */
START_TEST(who_loses_one_hears_of_it)
{
    struct world w;
    struct reader first[4], further;
    struct reply reply;
    char rc[32], broken[64];
    unsigned qpn = 0;
    world_open_small(&w, MAX_READERS, MAX_QP);
    for (uint8_t i = 0; i < 4; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), (uint8_t)(i + 1), 0);
    open_reader(&further, &w, 6, 1, 1);
    reader_join(&w, &first[0], 5, 201);
    reader_put(&w, &further, 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_int_eq(sscanf(strstr(reply.body, "\"rc\":{"), "\"rc\":{\"qpn\":%u", &qpn), 1);
    snprintf(rc, sizeof rc, "\"qpn\":%u,", qpn);
    for (uint8_t i = 1; i < 4; i++) {
        ck_assert_ptr_null(meta_responders_broken(w.s.responders));
        reader_join(&w, &first[i], 5, 201);
    }
    ck_assert_uint_eq(meta_responders_due_ns(w.s.responders), 0);
    ck_assert_str_eq(meta_responders_broken(w.s.responders), "n1");
    ck_assert_ptr_null(meta_responders_broken(w.s.responders)); /* once */
    snprintf(broken, sizeof broken, "\"broken_qpns\":[%u]", qpn);
    for (int i = 0; i < 2; i++) {
        renew(&w, &first[0], &reply);
        ck_assert_msg(says(&reply, broken), "%s", reply.body);
        renew(&w, &first[1], &reply); /* another node's */
        ck_assert(!says(&reply, "broken"));
    }
    ck_assert(says(&reply, "expires_in_ms"));
    for (uint8_t i = 0; i < 4; i++)
        reader_close(&first[i]);
    reader_close(&further);
    world_close(&w);
}
END_TEST

static struct fab_qp *try_qp(const struct reader *a)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = a->pd,
                                 .type = FAB_QP_RC,
                                 .send_cq = a->cq,
                                 .recv_cq = a->cq,
                                 .cap = {.send_wr = 1, .send_sge = 1}}};
    return fab_call(a->fab, &ctl) == 0 ? ctl.qp.x : NULL;
}

/* Whoever has made them, of another process perhaps. */
START_TEST(a_device_that_makes_fewer_than_it_says_gives_first_lanes_what_others_have)
{
    enum { FIRST = META_RESPONDERS_SPARES + 1, FURTHER = 2, MOST = 16384 };
    static struct fab_qp *strangers[MOST];
    struct world w;
    struct reader first[FIRST], further[FURTHER + 1], stranger;
    uint32_t count = 0;
    world_open(&w, MAX_READERS);
    world_settle(&w);
    for (uint8_t i = 0; i < FIRST; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), (uint8_t)(i + 1), 0);
    for (uint8_t i = 0; i <= FURTHER; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 20), 1, (uint8_t)(i + 1));
    reader_open(&stranger, &w, 30);
    while (count < MOST && (strangers[count] = try_qp(&stranger)) != NULL)
        count++;
    ck_assert_uint_lt(count, MOST);
    for (uint8_t i = 0; i < META_RESPONDERS_SPARES - FURTHER; i++)
        reader_join(&w, &first[i], 5, 201);
    for (uint8_t i = 0; i < FURTHER; i++)
        reader_join(&w, &further[i], 5, 200);
    ck_assert_uint_eq(world_readers(&w).all, META_RESPONDERS_SPARES);
    refuse(&w, &further[FURTHER], "makes no more queue pairs"); /* which takes no other's */
    ck_assert_uint_eq(world_readers(&w).taken, 0);
    for (uint8_t i = 0; i < FURTHER; i++) {
        reader_join(&w, &first[META_RESPONDERS_SPARES - FURTHER + i], 5, 201);
        ck_assert_uint_eq(world_readers(&w).taken, i + 1u);
    }
    for (uint8_t i = 0; i < META_RESPONDERS_SPARES; i++)
        ck_assert(reads(&first[i], &w));
    refuse(&w, &first[META_RESPONDERS_SPARES], "makes no more queue pairs");
    refuse(&w, &further[0], "makes no more queue pairs");
    while (count > 0)
        (void)fab_call(stranger.fab,
                       &(struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = strangers[--count]});
    reader_close(&stranger);
    for (uint8_t i = 0; i < FIRST; i++)
        reader_close(&first[i]);
    for (uint8_t i = 0; i <= FURTHER; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(further_lanes_make_room_for_first_ones)                                                      \
    T(further_lanes_have_what_first_ones_leave)                                                    \
    T(the_node_with_the_most_further_lanes_loses_one)                                              \
    T(who_loses_one_hears_of_it)                                                                   \
    T(a_device_that_makes_fewer_than_it_says_gives_first_lanes_what_others_have)
KEDGE_CHECK_MAIN("metaserver readers and room for them", TESTS)
