/* SPDX-License-Identifier: Apache-2.0 */
/* How a list ends of which WRITEs have failed: as the first of them did, and the next one by
 * itself. */
#include "../../check_main.h"
#include "request/lists.h"

static const struct wr written = {.special = SPECIAL_LISTED}, message = {.special = SPECIAL_SEND};

static bool fail_one(struct vqp *q, const struct wr *w, enum ibv_wc_status status, uint32_t reason,
                     struct ibv_wc *said)
{
    uint8_t opcode = IBV_WC_SEND;
    const bool is = lane_list_fail(q, w, &status, &reason, &opcode);
    *said = (struct ibv_wc){.status = status, .vendor_err = reason, .opcode = opcode};
    return is;
}

START_TEST(a_list_ends_as_the_first_of_its_writes_that_failed)
{
    struct vqp q = {.list_status = IBV_WC_SUCCESS};
    struct ibv_wc said;
    ck_assert(!fail_one(&q, &written, IBV_WC_REM_ACCESS_ERR, 7, &said));
    ck_assert(!fail_one(&q, &written, IBV_WC_WR_FLUSH_ERR, 9, &said));
    ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, 9, &said));
    ck_assert_int_eq(said.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(said.vendor_err, 7);
    ck_assert_int_eq(said.opcode, IBV_WC_RDMA_WRITE);
}
END_TEST

START_TEST(what_has_failed_of_one_says_nothing_of_the_next)
{
    struct vqp q = {.list_status = IBV_WC_SUCCESS};
    struct ibv_wc said;
    ck_assert(!fail_one(&q, &written, IBV_WC_REM_ACCESS_ERR, 7, &said));
    ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, 9, &said));
    ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, 9, &said));
    ck_assert_int_eq(said.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(said.vendor_err, 9);
    ck_assert_int_eq(said.opcode, IBV_WC_SEND);
}
END_TEST

START_TEST(a_message_that_fails_itself_says_so)
{
    struct vqp q = {.list_status = IBV_WC_SUCCESS};
    struct ibv_wc said;
    ck_assert(fail_one(&q, &message, IBV_WC_REM_OP_ERR, 3, &said));
    ck_assert_int_eq(said.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(said.vendor_err, 3);
    ck_assert_int_eq(said.opcode, IBV_WC_SEND);
}
END_TEST

/* Its queue pair broke behind both: a WRITE that nobody knows of says nothing of its message. */
START_TEST(where_nobody_knows_of_either_it_is_not_said_that_none_was_sent)
{
    static const struct {
        enum ibv_wc_status status;
        uint32_t reason;
    } unknown[] = {{IBV_WC_WR_FLUSH_ERR, SCHEMA_REASON_UNDER_WAY}, {IBV_WC_RETRY_EXC_ERR, 0}};
    struct vqp q = {.list_status = IBV_WC_SUCCESS};
    struct ibv_wc said;
    for (int i = 0; i < 2; i++) {
        ck_assert(!fail_one(&q, &written, unknown[i].status, unknown[i].reason, &said));
        ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, SCHEMA_REASON_UNDER_WAY, &said));
        ck_assert_int_eq(said.status, unknown[i].status);
        ck_assert_uint_eq(said.vendor_err, unknown[i].reason);
        ck_assert_int_eq(said.opcode, IBV_WC_SEND);
        ck_assert(!fail_one(&q, &written, unknown[i].status, unknown[i].reason, &said));
        ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, SCHEMA_REASON_BEHIND, &said));
        ck_assert_int_eq(said.opcode, IBV_WC_RDMA_WRITE);
    }
    ck_assert(!fail_one(&q, &written, IBV_WC_REM_ACCESS_ERR, 0, &said));
    ck_assert(fail_one(&q, &message, IBV_WC_WR_FLUSH_ERR, SCHEMA_REASON_UNDER_WAY, &said));
    ck_assert_int_eq(said.opcode, IBV_WC_RDMA_WRITE);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_list_ends_as_the_first_of_its_writes_that_failed)                                          \
    T(what_has_failed_of_one_says_nothing_of_the_next)                                             \
    T(a_message_that_fails_itself_says_so)                                                         \
    T(where_nobody_knows_of_either_it_is_not_said_that_none_was_sent)
KEDGE_CHECK_MAIN("agent.lane.lists", TESTS)
