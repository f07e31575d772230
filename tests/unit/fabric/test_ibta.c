/* SPDX-License-Identifier: Apache-2.0 */
/* What the doubles have of the InfiniBand specification. */
#include <string.h>

#include "../check_main.h"
#include "ibta/ibta.h"

static uint32_t pay_len(uint32_t bytes, bool imm)
{
    static const uint8_t from[16] = {1}, to[16] = {2};
    uint8_t grh[FAB_GRH_BYTES];
    fab_ibta_make_grh(grh, &(struct fab_caps){.is_ethernet = true}, from, to, bytes, imm);
    ck_assert_uint_eq(grh[0] >> 4, 6);
    ck_assert_uint_eq(grh[6], 0x1b); /* a BTH comes next */
    ck_assert_int_eq(memcmp(grh + 8, from, sizeof from), 0);
    ck_assert_int_eq(memcmp(grh + 24, to, sizeof to), 0);
    return (uint32_t)grh[4] << 8 | grh[5];
}

/* 8.3.4: from the first byte after the GRH up to and with the ICRC; 9.2.3: the pad counts. */
START_TEST(a_grh_counts_the_headers_the_pad_and_the_icrc_behind_it)
{
    enum { HEADERS = 12 + 8, IMM_DT = 4, ICRC = 4 };
    ck_assert_uint_eq(pay_len(0, false), HEADERS + ICRC);
    ck_assert_uint_eq(pay_len(1, false), HEADERS + 4 + ICRC);
    ck_assert_uint_eq(pay_len(64, false), HEADERS + 64 + ICRC);
    ck_assert_uint_eq(pay_len(66, true), HEADERS + IMM_DT + 68 + ICRC);
    ck_assert_uint_eq(pay_len(4096, true), HEADERS + IMM_DT + 4096 + ICRC);
}
END_TEST

static struct fab fab = {
    .caps = {.port_num = 1, .mtu = IBV_MTU_1024, .max_rd_atomic = 16, .is_ethernet = true}};
static struct fab_pd pd = {.fab = &fab};

/* What a driver refuses is not to be found out on the first real device. */
START_TEST(a_queue_pair_takes_no_more_than_its_port_and_device_have)
{
    static const struct {
        struct ibv_qp_attr attr;
        int mask;
        bool takes;
    } of[] = {
        {{.path_mtu = IBV_MTU_1024}, IBV_QP_PATH_MTU, true},
        {{.path_mtu = IBV_MTU_2048}, IBV_QP_PATH_MTU, false},
        {{.path_mtu = 0}, IBV_QP_PATH_MTU, false},
        {{.path_mtu = IBV_MTU_4096}, IBV_QP_TIMEOUT, true}, /* it does not say it */
        {{.max_rd_atomic = 16}, IBV_QP_MAX_QP_RD_ATOMIC, true},
        {{.max_rd_atomic = 17}, IBV_QP_MAX_QP_RD_ATOMIC, false},
        {{.max_dest_rd_atomic = 16}, IBV_QP_MAX_DEST_RD_ATOMIC, true},
        {{.max_dest_rd_atomic = 17}, IBV_QP_MAX_DEST_RD_ATOMIC, false},
        {{.timeout = 31}, IBV_QP_TIMEOUT, true},
        {{.timeout = 32}, IBV_QP_TIMEOUT, false},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        ck_assert_msg(fab_ibta_takes_values(&pd, &of[i].attr, of[i].mask) == of[i].takes,
                      "number %zu", i);
}
END_TEST

static bool takes_region(uint64_t offset, uint64_t length, unsigned access, uint64_t iova)
{
    /* Nobody looks into it. */
    const struct fab_mem mem = {
        .addr = (void *)(uintptr_t)0x7f0000100000, .size = 0x10000, .fd = -1};
    const struct fab_ctl ctl = {.kind = FAB_REG_MR,
                                .mr = {.pd = &pd,
                                       .mem = &mem,
                                       .offset = offset,
                                       .length = length,
                                       .access = access,
                                       .iova = iova}};
    return fab_ibta_takes_region(&ctl);
}

START_TEST(a_region_that_peers_write_is_written_by_its_owner)
{
    static const struct {
        unsigned access;
        bool takes;
    } of[] = {
        {0, true},
        {IBV_ACCESS_LOCAL_WRITE, true},
        {IBV_ACCESS_REMOTE_READ, true},
        {IBV_ACCESS_REMOTE_WRITE, false},
        {IBV_ACCESS_REMOTE_ATOMIC, false},
        {IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, false},
        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, true},
        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, true},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        ck_assert_msg(takes_region(0, 0x1000, of[i].access, 0) == of[i].takes, "number %zu", i);
}
END_TEST

START_TEST(a_region_lies_in_its_memory_and_at_an_address_that_leads_there)
{
    const uint64_t alike = 1ull << 62;
    ck_assert(takes_region(0, 0x10000, 0, 0));
    ck_assert(takes_region(0xffff, 1, 0, 0));
    ck_assert(!takes_region(0, 0, 0, 0));
    ck_assert(!takes_region(0, 0x10001, 0, 0));
    ck_assert(!takes_region(0x8000, 0x8001, 0, 0));
    ck_assert(!takes_region(0x10001, 1, 0, 0));
    ck_assert(!takes_region(UINT64_MAX, 2, 0, 0)); /* their sum is 1 */
    ck_assert(takes_region(0, 0x10000, 0, alike));
    ck_assert(!takes_region(0, 0x10000, 0, alike + 0x1000)); /* of pages as large as it is */
    ck_assert(takes_region(0x1000, 0x1000, 0, alike + 0x1000));
    ck_assert(takes_region(0xf000, 0xfff, 0, UINT64_MAX - 0xfff));
    ck_assert(!takes_region(0xf000, 0x1000, 0, UINT64_MAX - 0xfff)); /* its end has no number */
}
END_TEST

/* Numbers that verbs has, and nobody here, are passed to the wrappers by whoever wants. */
START_TEST(only_requests_of_the_fabric_are_known_whatever_number_is_asked_for)
{
    unsigned known = 0;
    for (unsigned i = 0; i <= UINT8_MAX; i++)
        known += fab_opcode_find((enum ibv_wr_opcode)i)->known;
    ck_assert_uint_eq(known, FAB_OPCODES);
    ck_assert(!fab_opcode_find(IBV_WR_SEND_WITH_INV)->known);
    ck_assert(!fab_opcode_find((enum ibv_wr_opcode)UINT32_MAX)->known);
}
END_TEST

START_TEST(a_request_has_a_right_that_it_needs_or_takes_a_receive)
{
    for (unsigned i = 0; i < FAB_OPCODES; i++) {
        const struct fab_opcode *o = fab_opcode_find((enum ibv_wr_opcode)i);
        ck_assert(o->access != 0 || o->takes_receive);
        ck_assert(o->is_send == (o->access == 0));
        ck_assert(!o->in_datagrams || o->is_send);
        ck_assert(!o->is_atomic || (o->bytes == 8 && o->access == IBV_ACCESS_REMOTE_ATOMIC));
        ck_assert_int_eq(o->access & (o->access - 1), 0);
    }
    ck_assert(fab_opcode_is_aligned(IBV_WR_ATOMIC_FETCH_AND_ADD, 0x1008));
    ck_assert(!fab_opcode_is_aligned(IBV_WR_ATOMIC_FETCH_AND_ADD, 0x1004));
    ck_assert(fab_opcode_is_aligned(IBV_WR_RDMA_WRITE, 0x1001));
}
END_TEST

/* Who looks at more than that is given what is not so, the same each time. */
START_TEST(of_an_error_nothing_but_its_request_its_status_and_its_queue_pair_can_be_relied_on)
{
    bool receives[2] = {false, false};
    for (uint64_t id = 0; id < 64; id++) {
        struct ibv_wc wc = {.wr_id = id,
                            .status = IBV_WC_WR_FLUSH_ERR,
                            .vendor_err = 9,
                            .qp_num = 5,
                            .opcode = IBV_WC_RDMA_READ},
                      again = wc;
        fab_ibta_scramble(&wc);
        fab_ibta_scramble(&again);
        ck_assert_mem_eq(&wc, &again, sizeof wc);
        ck_assert_uint_eq(wc.wr_id, id);
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(wc.vendor_err, 9);
        ck_assert_uint_eq(wc.qp_num, 5);
        receives[(wc.opcode & IBV_WC_RECV) != 0] = true;
    }
    ck_assert(receives[0] && receives[1]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_grh_counts_the_headers_the_pad_and_the_icrc_behind_it)                                     \
    T(a_queue_pair_takes_no_more_than_its_port_and_device_have)                                    \
    T(a_region_that_peers_write_is_written_by_its_owner)                                           \
    T(a_region_lies_in_its_memory_and_at_an_address_that_leads_there)                              \
    T(only_requests_of_the_fabric_are_known_whatever_number_is_asked_for)                          \
    T(a_request_has_a_right_that_it_needs_or_takes_a_receive)                                      \
    T(of_an_error_nothing_but_its_request_its_status_and_its_queue_pair_can_be_relied_on)
KEDGE_CHECK_MAIN("ibta", TESTS)
