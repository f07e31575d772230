/* SPDX-License-Identifier: Apache-2.0 */
/* Where a metaserver's device has fewer queue pairs than first and further lanes want. */
#include <stdio.h>
#include <string.h>

#include "room_world.h"

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

/* Whoever makes them, of another process perhaps: the device makes no more. */
struct strangers {
    struct reader as;
    struct fab_qp *qp[16384];
    uint32_t count;
};

static void exhaust(struct strangers *s, const struct world *w)
{
    reader_open(&s->as, w, 60);
    s->count = 0;
    while (s->count < sizeof s->qp / sizeof s->qp[0] && (s->qp[s->count] = try_qp(&s->as)) != NULL)
        s->count++;
    ck_assert_uint_lt(s->count, sizeof s->qp / sizeof s->qp[0]);
}

static void relent(struct strangers *s)
{
    while (s->count > 0)
        (void)fab_call(s->as.fab,
                       &(struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = s->qp[--s->count]});
    reader_close(&s->as);
}

START_TEST(a_device_that_makes_fewer_than_it_says_gives_first_lanes_what_others_have)
{
    enum { FIRST = META_RESPONDERS_SPARES + 1, FURTHER = 2 };
    static struct strangers strangers;
    struct world w;
    struct reader first[FIRST], further[FURTHER + 1];
    world_open(&w, MAX_READERS);
    world_settle(&w);
    for (uint8_t i = 0; i < FIRST; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), (uint8_t)(i + 1), 0);
    for (uint8_t i = 0; i <= FURTHER; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 20), 1, (uint8_t)(i + 1));
    exhaust(&strangers, &w);
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
    relent(&strangers);
    for (uint8_t i = 0; i < FIRST; i++)
        reader_close(&first[i]);
    for (uint8_t i = 0; i <= FURTHER; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

enum { OTHERS = META_RESPONDERS_SPARES - 4 };

/* An honest node with two further lanes, others, and one that is not honest: all that there are. */
struct crowd {
    struct world w;
    struct strangers strangers;
    struct reader honest[3], other[OTHERS], last, hostile;
};

static void gather(struct crowd *c)
{
    world_open(&c->w, MAX_READERS);
    world_settle(&c->w);
    for (uint8_t i = 0; i < 3; i++)
        open_reader(&c->honest[i], &c->w, (uint8_t)(i + 1), 1, i);
    for (uint8_t i = 0; i < OTHERS; i++)
        open_reader(&c->other[i], &c->w, (uint8_t)(i + 4), (uint8_t)(i + 2), 0);
    open_reader(&c->last, &c->w, 30, HOSTILE + 1, 0);
    open_reader(&c->hostile, &c->w, 40, HOSTILE, 0);
    exhaust(&c->strangers, &c->w);
    for (uint8_t i = 0; i < 3; i++)
        reader_join(&c->w, &c->honest[i], 5, i == 0 ? 201 : 200);
    for (uint8_t i = 0; i < OTHERS; i++)
        reader_join(&c->w, &c->other[i], 5, 201);
}

static void disperse(struct crowd *c)
{
    relent(&c->strangers);
    for (uint8_t i = 0; i < 3; i++)
        reader_close(&c->honest[i]);
    for (uint8_t i = 0; i < OTHERS; i++)
        reader_close(&c->other[i]);
    reader_close(&c->last);
    reader_close(&c->hostile);
    world_close(&c->w);
}

/* The device has one for a queue pair at the other end: a stranger's goes for it. */
static void change_qp(struct crowd *c, struct reader *a)
{
    struct strangers *s = &c->strangers;
    (void)fab_call(s->as.fab, &(struct fab_ctl){.kind = FAB_DESTROY_QP, .qp.x = s->qp[--s->count]});
    reader_renew(a);
    while ((s->qp[s->count] = try_qp(&s->as)) != NULL)
        s->count++;
}

/* With other queue pairs, in other lives, as any lane: it pays for that itself. */
START_TEST(who_registers_again_and_again_ends_no_other_nodes_lane)
{
    static struct crowd c;
    struct reply reply;
    uint32_t incarnation = 5;
    gather(&c);
    reader_join(&c.w, &c.hostile, incarnation, 201);
    ck_assert_uint_eq(world_readers(&c.w).all, META_RESPONDERS_SPARES);
    for (uint8_t i = 0; i < 40; i++) {
        c.hostile.lane = i % META_RESPONDERS_LANES;
        change_qp(&c, &c.hostile);
        reader_put(&c.w, &c.hostile, incarnation += i % 3, &reply);
        world_settle(&c.w);
        ck_assert_int_eq(reply.status, c.hostile.lane == 0 ? 200 : 503);
        for (uint8_t k = 0; k < 3; k++)
            ck_assert_msg(reads(&c.honest[k], &c.w), "lane %u, %u", k, i);
        change_qp(&c, &c.honest[i % 3]); /* whose own requests are answered */
        reader_join(&c.w, &c.honest[i % 3], 5, 200);
        ck_assert(reads(&c.honest[i % 3], &c.w));
    }
    for (uint8_t i = 0; i < OTHERS; i++)
        ck_assert(reads(&c.other[i], &c.w));
    ck_assert_uint_eq(world_readers(&c.w).taken, 0);
    ck_assert_ptr_null(meta_responders_broken(c.w.s.responders));
    disperse(&c);
}
END_TEST

/* By which its responders go. */
static uint64_t clock_ns(const struct world *w)
{
    return w->now + w->rested_ns;
}

static void pass_a_second(struct crowd *c)
{
    struct reply reply;
    c->w.now += BASE_NS_PER_S;
    meta_responders_tick(c->w.s.responders, clock_ns(&c->w));
    renew(&c->w, &c->honest[0], &reply);
    renew(&c->w, &c->last, &reply);
    for (uint8_t i = 0; i < OTHERS; i++)
        renew(&c->w, &c->other[i], &reply);
}

/* It has got the honest node's last one, and gives it up; that one has it again. */
static void leave_again(struct crowd *c)
{
    struct reply reply;
    ck_assert(!reads(&c->honest[2], &c->w));
    world_ask(&c->w, "DELETE", "/v1/nodes/n9", "", &reply);
    ck_assert_int_eq(reply.status, 204);
    world_settle(&c->w);
    change_qp(c, &c->honest[2]);
    reader_join(&c->w, &c->honest[2], 5, 200);
}

/* Who gives up what it got, and comes again, has nobody's a second time. */
START_TEST(who_leaves_and_comes_gets_another_nodes_once_a_minute)
{
    static struct crowd c;
    struct reply reply;
    uint32_t taken = 0, refused = 0;
    gather(&c);
    reader_join(&c.w, &c.last, 5, 201);
    pass_a_second(&c);
    for (const uint64_t begun_ns = clock_ns(&c.w); taken < 2; pass_a_second(&c)) {
        const bool may = taken == 0 || clock_ns(&c.w) - begun_ns >= 60 * BASE_NS_PER_S;
        change_qp(&c, &c.hostile);
        reader_put(&c.w, &c.hostile, 5, &reply);
        world_settle(&c.w);
        ck_assert_msg(reply.status == (may ? 201 : 503), "%u: %s", refused, reply.body);
        ck_assert(may || says(&reply, "no more queue pairs"));
        refused += !may;
        ck_assert_uint_eq(world_readers(&c.w).taken, taken += may);
        ck_assert(reads(&c.honest[0], &c.w) && reads(&c.honest[1], &c.w));
        if (may)
            leave_again(&c);
        ck_assert(reads(&c.honest[2], &c.w));
    }
    ck_assert_uint_gt(refused, 30);
    disperse(&c);
}
END_TEST

/* Likewise where the device makes as many as it says. */
START_TEST(who_got_another_nodes_of_late_is_refused_before_a_queue_pair_is_spent)
{
    struct world w;
    struct reader first[3], further[2];
    struct reply reply;
    world_open_small(&w, MAX_READERS, MAX_QP);
    for (uint8_t i = 0; i < 3; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), i == 2 ? HOSTILE : i + 1, 0);
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 6), 1, (uint8_t)(i + 1));
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &first[i], 5, 201);
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &further[i], 5, 200);
    reader_join(&w, &first[2], 5, 201);
    ck_assert_uint_eq(world_readers(&w).taken, 1);
    world_ask(&w, "DELETE", "/v1/nodes/n9", "", &reply);
    ck_assert_int_eq(reply.status, 204);
    world_settle(&w);
    reader_renew(&further[1]);
    reader_join(&w, &further[1], 5, 200);
    reader_renew(&first[2]);
    refuse(&w, &first[2], "another node's further lane of late");
    ck_assert_uint_eq(world_readers(&w).taken, 1);
    ck_assert(reads(&further[0], &w) && reads(&further[1], &w));
    reader_close(&first[1]);
    open_reader(&first[1], &w, 9, HOSTILE + 1, 0); /* who has not is not */
    reader_join(&w, &first[1], 5, 201);
    ck_assert_uint_eq(world_readers(&w).taken, 2);
    for (uint8_t i = 0; i < 3; i++)
        reader_close(&first[i]);
    for (uint8_t i = 0; i < 2; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

/* Its own are fewer than others', and nearer. */
START_TEST(a_first_lane_has_its_own_nodes_further_one_before_others)
{
    struct world w;
    struct reader further[3], first[2];
    world_open_small(&w, MAX_READERS, MAX_QP + 2);
    for (uint8_t i = 0; i < 3; i++) { /* n1 has two, n2 one */
        open_reader(&further[i], &w, (uint8_t)(i + 1), i < 2 ? 1 : 2, (uint8_t)(i + 1));
        reader_join(&w, &further[i], 5, i == 1 ? 200 : 201);
    }
    for (uint8_t i = 0; i < 3; i++) {
        struct reader *a = &first[i % 2];
        open_reader(a, &w, (uint8_t)(i + 4), (uint8_t)(i + 4), 0);
        reader_join(&w, a, 5, 201);
        reader_close(a);
    }
    ck_assert_uint_eq(world_readers(&w).taken, 0);
    open_reader(&first[0], &w, 8, 2, 0);
    reader_join(&w, &first[0], 5, 200);
    world_settle(&w);
    ck_assert_uint_eq(world_readers(&w).taken, 1);
    ck_assert(reads(&first[0], &w) && reads(&further[0], &w) && reads(&further[1], &w));
    ck_assert(!reads(&further[2], &w));
    reader_close(&first[0]);
    for (uint8_t i = 0; i < 3; i++)
        reader_close(&further[i]);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(further_lanes_make_room_for_first_ones)                                                      \
    T(further_lanes_have_what_first_ones_leave)                                                    \
    T(the_node_with_the_most_further_lanes_loses_one)                                              \
    T(who_loses_one_hears_of_it)                                                                   \
    T(a_device_that_makes_fewer_than_it_says_gives_first_lanes_what_others_have)                   \
    T(who_registers_again_and_again_ends_no_other_nodes_lane)                                      \
    T(who_leaves_and_comes_gets_another_nodes_once_a_minute)                                       \
    T(who_got_another_nodes_of_late_is_refused_before_a_queue_pair_is_spent)                       \
    T(a_first_lane_has_its_own_nodes_further_one_before_others)
KEDGE_CHECK_MAIN("metaserver readers and room for them", TESTS)
