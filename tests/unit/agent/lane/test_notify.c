/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs that a message ends: it is heard when they are there, or not at all. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "flow_state.h"
#include "lane_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"
#include "message_pair.h"
#include "schema/record.h"

enum { BYTES = 64, ROOM = 32768, SEEDS = 24, LIST = 16, MANY = 20 };

static uint32_t key;

static void begin_with_region(void)
{
    begin();
    key = world_register(&w, &receiver, ROOM, ROOM, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    ck_assert_uint_ne(key, 0);
}

static struct schema_sq_desc listed_write(uint64_t wr_id, uint64_t to, uint64_t from)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, wr_id, from, BYTES, key, ROOM + to);
    d.flags = SCHEMA_OP_LISTED;
    return d;
}

static struct schema_sq_desc ending(uint64_t wr_id)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, wr_id, 0, 8);
    d.flags |= SCHEMA_OP_LISTED;
    return d;
}

static struct schema_sq_desc written(uint64_t wr_id, uint32_t bytes, uint32_t imm)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_WRITE_IMM, wr_id, 0, 0);
    d.flags = SCHEMA_OP_SIGNALED | SCHEMA_OP_LISTED | SCHEMA_OP_IMM;
    d.post.length = bytes;
    d.post.imm = imm;
    return d;
}

START_TEST(a_write_with_immediate_consumes_a_receive_and_says_its_own_length)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_with_region();
    post_receive(7, 0, 0); /* as for verbs, there need be no room in it */
    memset(memory_of(&sender, 4096), 0x5a, BYTES);
    post(&sender, listed_write(8, 128, 4096));
    post(&sender, written(9, BYTES, 0xabcdef));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(e.wr_id, 7);
    ck_assert_uint_eq(e.byte_len, BYTES);
    ck_assert_uint_eq(e.with_imm, 1);
    ck_assert_uint_eq(e.imm, 0xabcdef);
    ck_assert_mem_eq(memory_of(&receiver, ROOM + 128), memory_of(&sender, 4096), BYTES);
    e = world_done(&w, &sender, PATIENCE); /* one for both */
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_RDMA_WRITE);
    ck_assert_uint_eq(e.wr_id, 9);
    ck_assert(!world_poll(&w, &sender, &e, 1000));
    end();
}
END_TEST

/* A worker may write anything. */
START_TEST(one_that_has_pieces_or_no_immediate_is_refused)
{
    begin_with_region();
    struct schema_sq_desc bad[3] = {written(1, BYTES, 1), written(1, BYTES, 1),
                                    written(1, BYTES, 1)};
    bad[0].num_sge = 1;
    bad[1].flags &= (uint8_t)~SCHEMA_OP_IMM;
    bad[2].flags |= SCHEMA_OP_INLINE;
    bad[2].slots = 2;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
        world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
        world_post(&sender, &bad[i]);
        if (bad[i].slots == 2) {
            const struct schema_sq_desc more = {.op = 0};
            world_post(&sender, &more);
        }
        lane_doorbell(w.node[0].lane, sender.id);
        const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_DESCRIPTOR);
    }
    end();
}
END_TEST

static void post_list(uint32_t bad_one)
{
    for (uint32_t i = 0; i < LIST; i++) {
        struct schema_sq_desc d = listed_write(i, i * BYTES, 4096 + i * BYTES);
        if (i == bad_one)
            d.post.remote_addr += ROOM; /* behind its end */
        post(&sender, d);
    }
    post(&sender, ending(100));
}

static void fill(uint8_t with)
{
    memset(memory_of(&sender, 4096), with, LIST * BYTES);
}

static bool all_are(uint8_t what)
{
    for (uint32_t i = 0; i < LIST * BYTES; i++)
        if (*memory_of(&receiver, ROOM + i) != what)
            return false;
    return true;
}

START_TEST(a_list_has_one_completion_and_is_heard_once_it_is_there)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_with_region();
    for (uint8_t round = 1; round < 40; round++) {
        post_receive(round, 0, 64);
        fill(round);
        post_list(LIST);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert(all_are(round));
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.opcode, IBV_WC_SEND);
        ck_assert_uint_eq(e.wr_id, 100);
        ck_assert(!world_poll(&w, &sender, &e, 100));
    }
    end();
}
END_TEST

/* Each of them in turn, with another list behind it. */
START_TEST(a_list_in_which_one_fails_ends_with_that_error_and_is_not_heard)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_with_region();
    post_receive(7, 0, 64);
    for (uint32_t bad = 0; bad < LIST; bad++) {
        ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
        world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
        post_list(bad);
        post_list(LIST);
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_uint_eq(e.wr_id, 100);
        ck_assert_uint_eq(e.opcode, IBV_WC_RDMA_WRITE);
        ck_assert_uint_ne(e.vendor_err, 0);
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(e.wr_id, 100);
        ck_assert(!world_poll(&w, &sender, &e, 100));
    }
    ck_assert(!world_hear(&w, &receiver, &e, &from, 1000));
    /* and what failed there is of no concern to what is connected anew */
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT + 1);
    post(&sender, ending(101));
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(e.opcode, IBV_WC_SEND);
    end();
}
END_TEST

/* What the device itself refuses, with the notification posted behind it on its queue pair. */
START_TEST(a_list_that_the_device_refuses_is_not_heard)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    struct world_worker owner;
    begin_with_region();
    world_attach(&w, &owner, 1, 1, TENANT);
    const uint32_t gone = world_register(&w, &owner, 0, 4096, SCHEMA_RECORD_WRITE);
    post_receive(7, 0, 64);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, gone, 0);
    post(&sender, d);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    world_take_away(&w, &owner); /* of which its record says nothing yet */
    d.flags = SCHEMA_OP_LISTED;
    post(&sender, d);
    for (uint32_t i = 0; i < 4; i++)
        post(&sender, listed_write(i, i * BYTES, 4096));
    post(&sender, ending(100));
    e = world_done(&w, &sender, 100000);
    ck_assert_uint_eq(e.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(e.wr_id, 100);
    ck_assert(!world_poll(&w, &sender, &e, 1000));
    ck_assert(!world_hear(&w, &receiver, &e, &from, 1000));
    world_detach(&w, &owner);
    end();
}
END_TEST

/* Of a device that places what comes later earlier. */
START_TEST(a_list_is_heard_once_it_is_there_whatever_order_the_device_takes)
{
    static const char *const orders[] = {"late", "late-writes", "unseen-writes"};
    struct schema_cqe e;
    struct schema_cqe_sender from;
    char order[32];
    for (uint32_t seed = 0; seed < 3 * SEEDS; seed++) {
        snprintf(order, sizeof order, "%s:%u", orders[seed % 3], seed);
        setenv("KEDGE_SOFT_ORDER", order, 1);
        world_ack_timeout = 19; /* 2 s: what is held back is not to run into its time-out */
        begin_with_region();
        for (uint8_t round = 1; round < 20; round++) {
            post_receive(round, 0, 64);
            fill(round);
            struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 50, 0, 8, key, ROOM);
            read.flags = 0;
            post(&sender, read);
            post_list(LIST);
            ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
            ck_assert(all_are(round));
            ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        }
        end();
        unsetenv("KEDGE_SOFT_ORDER");
    }
}
END_TEST

/* A WRITE has ended, and is not seen yet: its queue pair breaks, so that the message takes another
 * one, of which no receive makes it seen. */
START_TEST(a_message_by_another_queue_pair_is_heard_behind_what_was_written_by_the_former)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    char order[32];
    uint32_t moved = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        snprintf(order, sizeof order, "unseen-writes:%u", seed);
        setenv("KEDGE_SOFT_ORDER", order, 1);
        begin_with_region();
        post_receive(0, 0, 64); /* so that the stream is known */
        post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        post_receive(1, 0, 64);
        memset(memory_of(&sender, 4096), 0x5a, BYTES);
        struct schema_sq_desc d = listed_write(2, 0, 4096);
        d.flags = SCHEMA_OP_SIGNALED;
        post(&sender, d);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        struct lane *l = w.node[0].lane;
        const struct flow *f = l->sessions[sender.id].vqps[0].flow;
        struct fab_qp *qp = l->phys[l->dci[f->dci]].qp;
        world_break(&w, 0, qp);
        world_run(&w, 1);
        post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_mem_eq(memory_of(&receiver, ROOM), memory_of(&sender, 4096), BYTES);
        moved += l->phys[l->dci[f->dci]].qp != qp;
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        end();
        unsetenv("KEDGE_SOFT_ORDER");
    }
    ck_assert_uint_gt(moved, 0);
}
END_TEST

/* A READ in between has shown nothing of what was written: it was lost with the former queue pair,
 * as the message behind it was, and goes by the other one. */
START_TEST(nor_is_one_ahead_behind_a_read_that_went_by_the_other_queue_pair)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    char order[32];
    uint32_t moved = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        snprintf(order, sizeof order, "unseen-writes:%u", seed);
        setenv("KEDGE_SOFT_ORDER", order, 1);
        begin_with_region();
        post_receive(0, 0, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        post_receive(1, 0, 64);
        memset(memory_of(&sender, 4096), 0x5a, BYTES);
        struct schema_sq_desc d = listed_write(2, 0, 4096);
        d.flags = SCHEMA_OP_SIGNALED;
        post(&sender, d);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        const struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 4, 8192, 8, key, ROOM + 4096);
        struct lane *l = w.node[0].lane;
        const struct flow *f = l->sessions[sender.id].vqps[0].flow;
        struct fab_qp *qp = l->phys[l->dci[f->dci]].qp;
        world_break(&w, 0, qp); /* which the lane hears by what it posts there */
        post(&sender, read);
        post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_mem_eq(memory_of(&receiver, ROOM), memory_of(&sender, 4096), BYTES);
        moved += l->phys[l->dci[f->dci]].qp != qp && world_stats(&w, 0).reposted > 0;
        for (int i = 0; i < 2; i++)
            ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        end();
        unsetenv("KEDGE_SOFT_ORDER");
    }
    ck_assert_uint_gt(moved, 0);
}
END_TEST

/* The same where no queue pair breaks: so many requests to another endpoint are out on the
 * initiator that both have when the message goes that it takes a less loaded one. */
START_TEST(nor_is_one_ahead_whose_endpoint_takes_a_less_loaded_initiator)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    struct world_worker other;
    char order[32];
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 1000000000; /* no record is READ anew meanwhile */
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        snprintf(order, sizeof order, "unseen-writes:%u", seed);
        setenv("KEDGE_SOFT_ORDER", order, 1);
        begin_with_region();
        struct lane *l = w.node[0].lane;
        l->narrow.ordinary = l->res.dcis; /* so that two are for those that have answered */
        world_attach(&w, &other, 2, 2, TENANT);
        const uint32_t others = world_register(&w, &other, ROOM, ROOM, SCHEMA_RECORD_READ);
        ck_assert_int_eq(world_connect(&w, &sender, 1, 2), 0);
        struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 9, 8192, 8, others, ROOM);
        read.vqp = 1;
        ck_assert_uint_eq(world_do(&w, &sender, read, PATIENCE).status, IBV_WC_SUCCESS);
        post_receive(0, 0, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        post_receive(1, 0, 64);
        world_sleep(&w, 1000000); /* so that no former move has it wait */
        memset(memory_of(&sender, 4096), 0x5a, BYTES);
        struct schema_sq_desc d = listed_write(2, 0, 4096);
        d.flags = SCHEMA_OP_SIGNALED;
        post(&sender, d);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        struct vqp *vqps = l->sessions[sender.id].vqps;
        const uint32_t before = vqps[1].flow->dci = vqps[0].flow->dci; /* nothing is out */
        for (int i = 0; i < MANY; i++)
            post(&sender, read);
        post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8)); /* in the same pass */
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_mem_eq(memory_of(&receiver, ROOM), memory_of(&sender, 4096), BYTES);
        ck_assert_uint_ne(vqps[0].flow->dci, before);
        for (int i = 0; i < MANY + 1; i++)
            ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        world_detach(&w, &other);
        end();
        unsetenv("KEDGE_SOFT_ORDER");
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_write_with_immediate_consumes_a_receive_and_says_its_own_length)                           \
    T(one_that_has_pieces_or_no_immediate_is_refused)                                              \
    T(a_list_has_one_completion_and_is_heard_once_it_is_there)                                     \
    T(a_list_in_which_one_fails_ends_with_that_error_and_is_not_heard)                             \
    T(a_list_that_the_device_refuses_is_not_heard)                                                 \
    T(a_list_is_heard_once_it_is_there_whatever_order_the_device_takes)                            \
    T(a_message_by_another_queue_pair_is_heard_behind_what_was_written_by_the_former)              \
    T(nor_is_one_ahead_behind_a_read_that_went_by_the_other_queue_pair)                            \
    T(nor_is_one_ahead_whose_endpoint_takes_a_less_loaded_initiator)
KEDGE_CHECK_MAIN("agent.lane.notify", TESTS)
