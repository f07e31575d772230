/* SPDX-License-Identifier: Apache-2.0 */
/* Where peers hear datagrams: some say no number, or have another one that nobody was told. */
#include "../../check_main.h"
#include "message_pair.h"
#include "world_trio.h"

static void expect_message(uint64_t send_id, uint64_t receive_id)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, receive_id);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, send_id);
}

/* The UD number in the record of a node with connections is that of handshakes, of which one with
 * DC alone has none. */
START_TEST(nothing_is_asked_of_a_node_whose_number_is_that_of_handshakes)
{
    world_handshakes = true;
    begin();
    world_handshakes = false;
    if (w.node[0].connector != NULL) { /* which can ask it */
        end();
        return;
    }
    world_handles_wanted = 0;
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    const struct schema_cqe e = world_done(&w, &sender, 100);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_MESSAGES);
    ck_assert_uint_eq(world_handles_wanted, 0);
    end();
}
END_TEST

/* Which the records of nodes with connections do not say: they are asked. */
START_TEST(one_that_says_that_it_carries_none_is_sent_none)
{
    world_mute[1] = true;
    begin();
    if (w.node[0].connector != NULL) {
        post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
        const struct schema_cqe e = world_done(&w, &sender, 2000);
        ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_MESSAGES);
    }
    end();
    world_mute[1] = false;
}
END_TEST

/* An agent of before says nothing. */
START_TEST(one_that_does_not_say_where_it_hears_is_asked_ever_later)
{
    begin();
    if (w.node[0].connector != NULL) {
        world_no_numbers = true;
        world_numbers_wanted = 0;
        post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
        post_receive(2, 0, 64);
        world_run(&w, 15000); /* after 1, 2, 4 and 8 ms */
        ck_assert_uint_ge(world_numbers_wanted, 3);
        ck_assert_uint_le(world_numbers_wanted, 6);
        world_no_numbers = false;
        expect_message(1, 2);
    }
    end();
}
END_TEST

static void give_both_other_numbers(void)
{
    world_no_ud_repairs = world_new_uds = true;
    for (uint32_t node = 0; node < 2; node++)
        world_break_ud(&w, node);
    world_run(&w, 100);
    const uint32_t before = world_ud(1)->qpn;
    world_repair_uds(&w);
    world_new_uds = false;
    ck_assert_uint_ne(world_ud(1)->qpn, before);
}

/* Neither can tell the other: who gets no word asks, or READs the record, anew, while it has
 * patience left. */
START_TEST(both_ends_may_have_other_numbers_at_once)
{
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    for (uint64_t id = 3; id < 9; id += 2) { /* and again, though it was sought before */
        give_both_other_numbers();
        world_publish_ud(&w, 1);
        const uint64_t again = world_stats(&w, 0).lookups_again;
        post_receive(id, 0, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, id + 1, 0, 8));
        ck_assert_uint_eq(world_done(&w, &sender, 200000).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(world_stats(&w, 0).lookups_again, again + 1);
    }
    end();
}
END_TEST

/* Nobody tells what it is now. */
START_TEST(another_number_that_is_not_to_be_found_is_found_by_who_begins_anew)
{
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    give_both_other_numbers();
    world_no_numbers = true;
    post_receive(3, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 0, 8));
    ck_assert_uint_eq(world_done(&w, &sender, 200000).status, IBV_WC_RETRY_EXC_ERR);
    world_no_numbers = false;
    world_publish_ud(&w, 1);
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    post_receive(5, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 6, 0, 8));
    ck_assert_uint_eq(world_done(&w, &sender, 200000).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

/* It is known to nobody there, so that nobody tells it. */
START_TEST(a_number_that_changed_before_the_first_message_is_looked_up_anew)
{
    struct schema_cqe e;
    begin();
    struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 1, 0, 8, 0xabcd, 0);
    post(&sender, read); /* so that the record is READ: of no region */
    ck_assert(world_poll(&w, &sender, &e, PATIENCE));
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    world_no_ud_repairs = world_new_uds = true;
    world_break_ud(&w, 1);
    world_run(&w, 400);
    const uint32_t before = world_ud(1)->qpn;
    world_repair_uds(&w);
    world_new_uds = false;
    ck_assert_uint_ne(world_ud(1)->qpn, before);
    world_publish(&w, &w.node[1]);
    post_receive(2, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    e = world_done(&w, &sender, 200000);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nothing_is_asked_of_a_node_whose_number_is_that_of_handshakes)                               \
    T(one_that_says_that_it_carries_none_is_sent_none)                                             \
    T(one_that_does_not_say_where_it_hears_is_asked_ever_later)                                    \
    T(both_ends_may_have_other_numbers_at_once)                                                    \
    T(another_number_that_is_not_to_be_found_is_found_by_who_begins_anew)                          \
    T(a_number_that_changed_before_the_first_message_is_looked_up_anew)
KEDGE_CHECK_MAIN("agent.lane.message_numbers", TESTS)
