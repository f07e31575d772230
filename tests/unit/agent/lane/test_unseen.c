/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs that have ended, and that their responder may not see yet: what comes behind them on their
 * VQP, and by another queue pair than they had, is not ahead of them. And who has WRITTEN nothing
 * by a queue pair that broke waits for none of that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "flow_state.h"
#include "lane_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"
#include "message_pair.h"

enum {
    ROOM = 32768,
    BYTES = 64,
    OTHERS = 16384, /* where what is READ of another endpoint goes */
    MANY = 20,      /* that an endpoint does not stand behind for the sake of WRITEs */
    SEEDS = 24,
    SOON = 40 /* passes, of a microsecond: what waits until WRITEs are seen takes longer */
};

static struct world_worker other; /* on node 2 */
static uint32_t key, others;
static struct lane *l;

static void begin_seed(uint32_t seed)
{
    char order[32];
    struct schema_cqe e;
    struct schema_cqe_sender from;
    snprintf(order, sizeof order, "unseen-writes:%u", seed);
    setenv("KEDGE_SOFT_ORDER", order, 1);
    world_ack_timeout = 19; /* 2 s: a busy host may not disturb */
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 1000000000; /* no record is READ anew meanwhile */
    begin();
    key = world_register(&w, &receiver, ROOM, ROOM, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    world_attach(&w, &other, 2, 2, TENANT);
    others = world_register(&w, &other, ROOM, ROOM, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    ck_assert_int_eq(world_connect(&w, &sender, 1, 2), 0);
    ck_assert_int_eq(world_connect(&w, &sender, 2, 1), 0);
    l = w.node[0].lane;
    post_receive(0, 0, 64); /* so that the stream is known */
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    post_receive(1, 0, 64);
}

static void end_seed(void)
{
    world_detach(&w, &other);
    end();
    unsetenv("KEDGE_SOFT_ORDER");
}

static struct vqp *vqp_at(uint32_t v)
{
    return &l->sessions[sender.id].vqps[v];
}

static struct fab_qp *qp_of(uint32_t v)
{
    const struct flow *f = vqp_at(v)->flow;
    return f->rc ? f->link->qp : l->phys[l->dci[f->dci]].qp;
}

static struct schema_sq_desc to_other(uint8_t op, uint64_t wr_id, uint32_t bytes)
{
    struct schema_sq_desc d = world_rw(op, wr_id, OTHERS, bytes, others, ROOM);
    d.vqp = 1;
    return d;
}

static void do_well(struct schema_sq_desc d)
{
    post(&sender, d);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
}

static struct schema_sq_desc of_vqp_2(uint8_t op, uint64_t wr_id, uint64_t offset)
{
    struct schema_sq_desc d = world_rw(op, wr_id, offset, BYTES, key, ROOM + BYTES);
    d.vqp = 2;
    return d;
}

/* Twice, so that both endpoints are known to live, and use the initiators of such. */
static void warm_up(void)
{
    for (uint64_t i = 0; i < 2; i++) {
        do_well(world_rw(SCHEMA_OP_READ, 10, 8192, 8, key, ROOM));
        do_well(of_vqp_2(SCHEMA_OP_READ, 10, 8192));
        do_well(to_other(SCHEMA_OP_READ, 11, 8));
    }
    world_sleep(&w, 1000000); /* so that no former move has anybody wait */
}

static void write_word(uint64_t says)
{
    memset(memory_of(&sender, 4096), (int)says, BYTES);
    do_well(world_rw(SCHEMA_OP_WRITE, 20, 4096, BYTES, key, ROOM));
}

static void post_read(void)
{
    memset(memory_of(&sender, 8192), 0, BYTES);
    post(&sender, world_rw(SCHEMA_OP_READ, 21, 8192, BYTES, key, ROOM));
}

static void see_what_was_read(void)
{
    struct schema_cqe e;
    do { /* those to others may end before it */
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    } while (e.wr_id != 21);
    ck_assert_mem_eq(memory_of(&sender, 8192), memory_of(&sender, 4096), BYTES);
}

/* The initiator that both have is busy with much to another endpoint. Of two VQPs the first waits
 * in its queue then, and the second comes to the other initiator when it is known to be there. */
START_TEST(a_read_behind_a_write_is_not_ahead_by_the_initiator_that_its_endpoint_takes)
{
    if (getenv("KEDGE_TEST_TRANSPORT") != NULL)
        return;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        begin_seed(seed);
        l->narrow.ordinary = l->res.dcis; /* so that two are for those that have answered */
        warm_up();
        struct flow *f = vqp_at(0)->flow, *g = vqp_at(1)->flow;
        for (g->dci = 0; g->dci < 2; g->dci++) { /* both were used */
            do_well(to_other(SCHEMA_OP_READ, 11, 8));
            do_well(to_other(SCHEMA_OP_READ, 11, 8));
        }
        write_word(0x5a);
        do_well(of_vqp_2(SCHEMA_OP_WRITE, 23, 4096));
        const uint32_t before = g->dci = f->dci; /* nothing is out */
        for (int i = 0; i < MANY; i++)           /* in one pass */
            post(&sender, to_other(SCHEMA_OP_READ, 11, 8));
        post_read();
        world_run(&w, 2);
        ck_assert_uint_ne(f->dci, before);
        g->dci = f->dci;
        post(&sender, to_other(SCHEMA_OP_READ, 11, 8)); /* finds that there is room */
        post(&sender, of_vqp_2(SCHEMA_OP_READ, 24, 8192 + BYTES));
        see_what_was_read();
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, 24);
        ck_assert_mem_eq(memory_of(&sender, 8192 + BYTES), memory_of(&sender, 4096), BYTES);
        end_seed();
    }
}
END_TEST

/* What is answered, and is not much, is less to wait for than until the WRITE is seen. */
START_TEST(an_endpoint_that_was_written_to_keeps_an_initiator_that_serves_it_soon)
{
    if (getenv("KEDGE_TEST_TRANSPORT") != NULL)
        return;
    begin_seed(1);
    l->narrow.ordinary = l->res.dcis;
    warm_up();
    for (int i = 0; i < 8; i++) {
        write_word(1 + (uint64_t)i);
        struct flow *f = vqp_at(0)->flow, *g = vqp_at(1)->flow;
        const uint32_t before = g->dci = f->dci;
        post(&sender, to_other(SCHEMA_OP_READ, 11, 8));
        post_read();
        world_run(&w, 1);
        ck_assert_uint_eq(f->dci, before);
        const uint64_t since_ns = w.now_ns;
        see_what_was_read();
        ck_assert_uint_lt(w.now_ns - since_ns, SOON * 1000);
        /* Later, when it is seen, it takes the one that has nothing out, as ever. */
        world_sleep(&w, 1000000);
        g->dci = f->dci;
        post(&sender, to_other(SCHEMA_OP_READ, 11, 8));
        post_read();
        world_run(&w, 1);
        ck_assert_uint_ne(f->dci, g->dci);
        see_what_was_read();
        world_sleep(&w, 1000000);
    }
    end_seed();
}
END_TEST

START_TEST(nor_by_the_queue_pair_that_takes_the_place_of_one_that_broke)
{
    uint32_t moved = 0;
    for (uint32_t seed = 0; seed < 2 * SEEDS; seed++) {
        begin_seed(seed);
        warm_up();
        write_word(0x5a);
        struct fab_qp *qp = qp_of(0);
        world_break(&w, 0, qp);
        if (seed % 2 == 0) /* with nothing out; else the READ itself finds it */
            world_fatal(&w, 0, qp);
        world_run(&w, 1);
        post_read();
        see_what_was_read();
        moved += qp_of(0) != qp;
        end_seed();
    }
    ck_assert_uint_gt(moved, 0);
}
END_TEST

/* A flag behind data, each by a queue pair of its own: its reader has both. */
START_TEST(nor_is_a_flag_seen_before_the_data)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        begin_seed(seed);
        warm_up();
        write_word(0x5a);
        struct fab_qp *qp = qp_of(0);
        world_break(&w, 0, qp);
        world_fatal(&w, 0, qp);
        world_run(&w, 1);
        memset(memory_of(&sender, 4096 + BYTES), 1, 8);
        post(&sender, world_rw(SCHEMA_OP_WRITE, 22, 4096 + BYTES, 8, key, ROOM + BYTES));
        for (int i = 0; i < PATIENCE && *memory_of(&receiver, ROOM + BYTES) != 1; i++)
            world_run(&w, 1);
        ck_assert_uint_eq(*memory_of(&receiver, ROOM + BYTES), 1);
        ck_assert_mem_eq(memory_of(&receiver, ROOM), memory_of(&sender, 4096), BYTES);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        end_seed();
    }
}
END_TEST

/* Its receiver knows by then that READs stand behind messages, and has said what is sure. */
static void make_sure(void)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint64_t i = 0; i < 10; i++)
        post_receive(2 + i, 0, 64);
    for (uint64_t i = 0; i < 2; i++) {
        post(&sender, world_message(SCHEMA_OP_SEND, 40, 0, 8));
        post_read();
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        for (uint64_t id = 0; id != 21;) {
            e = world_done(&w, &sender, PATIENCE);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            id = e.wr_id;
        }
    }
}

/* A SEND is the last that has ended, of which its receiver knows nothing yet. */
START_TEST(nor_behind_a_message_that_its_receiver_has_not_seen)
{
    uint32_t kept = 0;
    for (uint32_t seed = 0; seed < 2 * SEEDS; seed++) {
        begin_seed(seed);
        warm_up();
        make_sure();
        const struct vqp *q = vqp_at(0);
        memset(memory_of(&sender, 4096), 0x5a, BYTES);
        post(&sender, world_rw(SCHEMA_OP_WRITE, 20, 4096, BYTES, key, ROOM));
        post(&sender, world_message(SCHEMA_OP_SEND, 41, 0, 8));
        do
            world_run(&w, 1);
        while (q->outstanding > 0);
        kept += q->kept > 0;
        struct fab_qp *qp = qp_of(0);
        world_break(&w, 0, qp);
        world_fatal(&w, 0, qp);
        world_run(&w, 1);
        post_read();
        see_what_was_read();
        end_seed();
    }
    ck_assert_uint_gt(kept, 0);
}
END_TEST

/* Nor behind one more that went by the other queue pair at once, since it is heard behind that. */
START_TEST(nor_behind_the_next_message_by_another_queue_pair)
{
    uint32_t kept = 0;
    for (uint32_t seed = 0; seed < 2 * SEEDS; seed++) {
        begin_seed(seed);
        warm_up();
        make_sure();
        const struct vqp *q = vqp_at(0);
        memset(memory_of(&sender, 4096), 0x5a, BYTES);
        post(&sender, world_rw(SCHEMA_OP_WRITE, 20, 4096, BYTES, key, ROOM));
        post(&sender, world_message(SCHEMA_OP_SEND, 41, 0, 8));
        do
            world_run(&w, 1);
        while (q->outstanding > 0);
        kept += q->kept > 0;
        struct fab_qp *qp = qp_of(0);
        world_break(&w, 0, qp);
        world_fatal(&w, 0, qp);
        world_run(&w, 1);
        post(&sender, world_message(SCHEMA_OP_SEND, 42, 0, 8));
        post_read();
        see_what_was_read();
        end_seed();
    }
    ck_assert_uint_gt(kept, 0);
}
END_TEST

static void lose(struct fab_qp *qp)
{
    w.node[0].no_repairs = true;
    world_break(&w, 0, qp);
    world_fatal(&w, 0, qp);
    world_run(&w, 1);
}

/* The one at the last place breaks, so that another comes there, and is brought up again at once,
 * in that one's place. */
START_TEST(nor_by_an_initiator_that_comes_where_another_one_was)
{
    if (getenv("KEDGE_TEST_TRANSPORT") != NULL)
        return;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        begin_seed(seed);
        warm_up();
        for (uint32_t i = 0; i < WORLD_SPARES; i++)
            lose(w.node[0].res.spare[i]);
        world_sleep(&w, 1000000);
        write_word(0x5a);
        struct flow *f = vqp_at(0)->flow;
        const uint32_t place = f->dci;
        struct fab_qp *last = l->phys[l->dci[l->res.dcis - 1]].qp, *qp = qp_of(0);
        lose(last);
        const struct lane_command ready = {.kind = LANE_COMMAND_QP_READY, .ready.qp = last};
        world_raise_dci(w.node[0].fab, last);
        ck_assert_int_eq(lane_command(l, &ready), 0);
        world_run(&w, 1);
        ck_assert_uint_eq(f->dci, place);
        ck_assert(qp_of(0) == last && last != qp);
        post_read();
        see_what_was_read();
        end_seed();
    }
}
END_TEST

/* That another endpoint's queue pair breaks is nothing to who goes by another one. */
START_TEST(nobody_waits_for_what_broke_elsewhere)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct schema_cqe e;
        struct schema_cqe_sender from;
        begin_seed(seed);
        if (!w.rc)
            l->narrow.ordinary = l->res.dcis;
        warm_up();
        write_word(0x5a);
        struct flow *f = vqp_at(0)->flow, *g = vqp_at(1)->flow;
        if (!w.rc)
            g->dci = 1 - f->dci;
        struct fab_qp *qp = qp_of(1);
        ck_assert(qp != qp_of(0));
        world_break(&w, 0, qp);
        post(&sender, to_other(SCHEMA_OP_READ, 11, 8)); /* finds it, and goes again */
        world_run(&w, 2);
        const uint64_t since_ns = w.now_ns;
        if (seed % 2 == 0) {
            post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
            ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        } else {
            post_read();
            see_what_was_read();
        }
        ck_assert_uint_lt(w.now_ns - since_ns, SOON * 1000);
        ck_assert_uint_gt(world_stats(&w, 0).qp_broken, 0);
        end_seed();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_read_behind_a_write_is_not_ahead_by_the_initiator_that_its_endpoint_takes)                 \
    T(an_endpoint_that_was_written_to_keeps_an_initiator_that_serves_it_soon)                      \
    T(nor_by_the_queue_pair_that_takes_the_place_of_one_that_broke)                                \
    T(nor_is_a_flag_seen_before_the_data)                                                          \
    T(nor_behind_a_message_that_its_receiver_has_not_seen)                                         \
    T(nor_behind_the_next_message_by_another_queue_pair)                                           \
    T(nor_by_an_initiator_that_comes_where_another_one_was)                                        \
    T(nobody_waits_for_what_broke_elsewhere)
KEDGE_CHECK_MAIN("agent.lane.unseen", TESTS)
