/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs that a message ends: what the lane is asked for, whole or not at all. */
#include <kedge_notify.h>

#include "message_fixture.h"

enum { FEATURES = SCHEMA_FEATURE_MESSAGES | SCHEMA_FEATURE_NOTIFY };

static void begin(struct fixture *f)
{
    setup_with(f, FEATURES);
    ck_assert_int_eq(kedge_connect_port(f->q, peer_gid, PORT), 0);
}

static struct ibv_send_wr write_of(struct ibv_sge *sge, struct ibv_send_wr *next)
{
    return (struct ibv_send_wr){.wr_id = 11,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .sg_list = sge,
                                .num_sge = 1,
                                .wr.rdma = {.remote_addr = 4096, .rkey = 5},
                                .next = next};
}

static void expect(struct fixture *f, uint32_t at, uint8_t op, uint8_t flags, uint64_t wr_id)
{
    const struct schema_sq_desc *d = fake_lane_slot(&f->a, at);
    ck_assert_uint_eq(d->op, op);
    ck_assert_uint_eq(d->flags, flags);
    ck_assert_uint_eq(d->post.wr_id, wr_id);
}

START_TEST(an_agent_of_before_is_asked_for_none)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr last = send_of(&sge, 1), wr = write_of(&sge, &last), *bad = NULL;
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    ck_assert_int_eq(kedge_post_notify(f.q, &wr, &bad), -EOPNOTSUPP);
    ck_assert_ptr_eq(bad, &wr);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "before notifications"));
    last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    ck_assert_int_eq(post(f.q, &last), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_write_with_immediate_is_two_requests_with_one_completion)
{
    struct fixture f;
    begin(&f);
    struct ibv_sge sge = sge_of(&f, 64, 24);
    struct ibv_send_wr wr = write_of(&sge, NULL);
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = 0xabcdef;
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 4); /* behind what it is connected to */
    expect(&f, 2, SCHEMA_OP_WRITE, SCHEMA_OP_LISTED, 11);
    expect(&f, 3, SCHEMA_OP_WRITE_IMM, SCHEMA_OP_SIGNALED | SCHEMA_OP_IMM | SCHEMA_OP_LISTED, 11);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->post.remote_addr, 4096);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 3)->post.length, 24);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 3)->post.imm, 0xabcdef);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 3)->num_sge, 0);
    take_all(&f);
    wr.num_sge = 0; /* nothing is written */
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 1);
    expect(&f, 0, SCHEMA_OP_WRITE_IMM, SCHEMA_OP_SIGNALED | SCHEMA_OP_IMM | SCHEMA_OP_LISTED, 11);
    teardown(&f);
}
END_TEST

START_TEST(what_says_that_a_write_is_there_has_its_length_and_immediate)
{
    struct fixture f;
    setup_with(&f, FEATURES);
    bind_port(&f);
    const uint64_t cookie = receive(&f, f.q, 3, 8);
    const struct schema_cqe_sender from = sender_of(peer_gid, 77);
    struct schema_cqe c = received(f.q, cookie, 4096); /* more than the receive has room for */
    c.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    c.with_imm = 1;
    c.imm = 9;
    put(&f, c, &from);
    const struct kedge_msg msg = pop_one(&f);
    ck_assert_uint_eq(msg.wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(msg.wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(msg.wc.byte_len, 4096);
    ck_assert_uint_eq(msg.wc.wc_flags, IBV_WC_WITH_IMM);
    ck_assert_uint_eq(msg.wc.imm_data, 9);
    teardown(&f);
}
END_TEST

START_TEST(a_list_is_posted_whole_with_one_completion)
{
    struct fixture f;
    begin(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr last = send_of(&sge, 1), second = write_of(&sge, &last),
                       first = write_of(&sge, &second), *bad = NULL;
    first.send_flags = IBV_SEND_SIGNALED; /* says nothing */
    ck_assert_int_eq(kedge_post_notify(f.q, &first, &bad), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 5);
    expect(&f, 2, SCHEMA_OP_WRITE, SCHEMA_OP_LISTED, 11);
    expect(&f, 3, SCHEMA_OP_WRITE, SCHEMA_OP_LISTED, 11);
    expect(&f, 4, SCHEMA_OP_SEND, SCHEMA_OP_SIGNALED | SCHEMA_OP_LISTED, 55);
    take_all(&f);
    const uint32_t num = kedge_vqp_num(f.q);
    put(&f,
        (struct schema_cqe){.wr_id = 55,
                            .vqp = (uint16_t)num,
                            .vqp_gen = (uint16_t)(num >> 16),
                            .status = IBV_WC_REM_ACCESS_ERR,
                            .opcode = IBV_WC_RDMA_WRITE},
        NULL);
    struct ibv_wc wc;
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 1);
    ck_assert_uint_eq(wc.wr_id, 55);
    ck_assert_uint_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(wc.opcode, IBV_WC_RDMA_WRITE);
    teardown(&f);
}
END_TEST

/* The first post of a queue pair, so that nothing of what it is connected to may be left either. */
START_TEST(of_a_list_that_is_refused_nothing_is_posted)
{
    struct fixture f;
    begin(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8), long_sge = sge_of(&f, 0, KEDGE_NOTIFICATION_MOST + 1);
    struct ibv_sge strange = {.addr = 8, .length = 8, .lkey = 99};
    struct ibv_send_wr last = send_of(&sge, 1), second = write_of(&sge, &last),
                       first = write_of(&sge, &second), *bad = NULL;
#define REFUSED(status, whose)                                                                     \
    do {                                                                                           \
        ck_assert_int_eq(kedge_post_notify(f.q, &first, &bad), status);                            \
        ck_assert_ptr_eq(bad, whose);                                                              \
        ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);                                             \
    } while (0)
    second.sg_list = &strange;
    REFUSED(-EINVAL, &second);
    second.sg_list = &sge;
    second.opcode = IBV_WR_RDMA_READ;
    REFUSED(-EINVAL, &second);
    second.opcode = IBV_WR_RDMA_WRITE;
    last.opcode = IBV_WR_RDMA_WRITE;
    REFUSED(-EINVAL, &last);
    last.opcode = IBV_WR_SEND;
    last.sg_list = &long_sge;
    REFUSED(-EMSGSIZE, &last);
    last.sg_list = &sge;
#undef REFUSED
    ck_assert_int_eq(kedge_post_notify(f.q, &first, NULL), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 5); /* with what it is connected to */
    take_all(&f);
    ck_assert_int_eq(kedge_post_notify(NULL, &first, &bad), -EINVAL);
    ck_assert_int_eq(kedge_post_notify(f.q, NULL, &bad), -EINVAL);
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0); /* and is addressed to nobody */
    ck_assert_int_eq(kedge_post_notify(f.q, &first, &bad), -EDESTADDRREQ);
    teardown(&f);
}
END_TEST

START_TEST(a_list_that_has_no_room_now_has_none_posted_and_one_that_never_has_is_told_apart)
{
    struct fixture f;
    struct ibv_send_wr wr[SQ_SLOTS + 1], *bad = NULL;
    begin(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    for (uint32_t i = 0; i < SQ_SLOTS; i++)
        wr[i] = write_of(&sge, &wr[i + 1]);
    wr[SQ_SLOTS] = send_of(&sge, 1);
    ck_assert_int_eq(kedge_post_notify(f.q, wr, &bad), -EMSGSIZE);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    const uint32_t half = SQ_SLOTS / 2;
    wr[half].next = &wr[SQ_SLOTS];
    ck_assert_int_eq(kedge_post_notify(f.q, wr, &bad), 0);
    const uint32_t posted = fake_lane_waiting(&f.a);
    ck_assert_uint_eq(posted, 2 + half + 2);
    ck_assert_int_eq(kedge_post_notify(f.q, wr, &bad), -ENOMEM);
    ck_assert_ptr_ne(bad, NULL);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), posted);
    take_all(&f);
    ck_assert_int_eq(kedge_post_notify(f.q, wr, &bad), 0);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_of_before_is_asked_for_none)                                                        \
    T(a_write_with_immediate_is_two_requests_with_one_completion)                                  \
    T(what_says_that_a_write_is_there_has_its_length_and_immediate)                                \
    T(a_list_is_posted_whole_with_one_completion)                                                  \
    T(of_a_list_that_is_refused_nothing_is_posted)                                                 \
    T(a_list_that_has_no_room_now_has_none_posted_and_one_that_never_has_is_told_apart)
KEDGE_CHECK_MAIN("libclient.post_list", TESTS)
