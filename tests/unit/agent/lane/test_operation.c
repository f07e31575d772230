/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations has all that a request needs of each, and makes nothing of other numbers.
 */
#include "../../check_main.h"
#include "schema/record.h"
#include "schema/session.h"
#include "transmit/operation.h"

static const uint8_t posts[] = {SCHEMA_OP_READ, SCHEMA_OP_WRITE, SCHEMA_OP_CAS, SCHEMA_OP_FAA};

START_TEST(a_number_that_means_nothing_is_of_no_kind)
{
    unsigned known = 0;
    for (unsigned op = 0; op <= UINT8_MAX; op++)
        known += operation_of((uint8_t)op)->kind != OPERATION_UNKNOWN;
    /* Beside the posts those of messages, of a VQP, of batches, and those that are answered. */
    ck_assert_uint_eq(known, sizeof posts + 3 + 3 + 2 + 17);
    ck_assert_int_eq(operation_of(0)->kind, OPERATION_UNKNOWN);
    ck_assert_int_eq(operation_of(UINT8_MAX)->kind, OPERATION_UNKNOWN);
}
END_TEST

START_TEST(each_post_needs_one_right_of_the_region_and_no_two_kinds_the_same)
{
    uint16_t rights = 0;
    for (size_t i = 0; i < sizeof posts; i++) {
        const struct operation *op = operation_of(posts[i]);
        ck_assert_int_eq(op->kind, OPERATION_POST);
        ck_assert_int_eq(op->access & (op->access - 1), 0);
        ck_assert_int_ne(op->access, 0);
        rights |= op->access;
    }
    ck_assert_uint_eq(rights, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC);
}
END_TEST

START_TEST(a_read_alone_may_go_again_whatever_became_of_it)
{
    for (size_t i = 0; i < sizeof posts; i++)
        ck_assert_int_eq(operation_of(posts[i])->repeatable, posts[i] == SCHEMA_OP_READ);
}
END_TEST

START_TEST(a_refused_write_alone_holds_back_what_is_behind_it)
{
    for (size_t i = 0; i < sizeof posts; i++)
        ck_assert_int_eq(operation_of(posts[i])->order == ORDER_HOLDS_BACK,
                         posts[i] == SCHEMA_OP_WRITE);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_number_that_means_nothing_is_of_no_kind)                                                   \
    T(each_post_needs_one_right_of_the_region_and_no_two_kinds_the_same)                           \
    T(a_read_alone_may_go_again_whatever_became_of_it)                                             \
    T(a_refused_write_alone_holds_back_what_is_behind_it)
KEDGE_CHECK_MAIN("agent.lane.operation", TESTS)
