/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and SENDs: what the lane is asked for. */
#include "message_fixture.h"

START_TEST(an_agent_without_messages_is_asked_for_none_and_says_so_with_a_sentence)
{
    struct fixture f;
    struct kedge_session_info info;
    struct kedge_msg msg;
    setup_with(&f, ~(uint32_t)SCHEMA_FEATURE_MESSAGES);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    struct ibv_recv_wr recv = {.num_sge = 0}, *bad = NULL;
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        ck_assert_int_eq(call, -EOPNOTSUPP);                                                       \
        ck_assert_ptr_nonnull(strstr(kedge_last_error(), "agent carries no messages"));            \
        ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);                                             \
    } while (0)
    REFUSED(kedge_bind(f.q, PORT));
    REFUSED(kedge_connect_port(f.q, peer_gid, PORT));
    REFUSED(kedge_post_recv(f.q, &recv, &bad));
    ck_assert_ptr_eq(bad, &recv);
    REFUSED(kedge_pop_msgs(f.s, 1, &msg));
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0);
    REFUSED(post(f.q, &wr));
#undef REFUSED
    wr.opcode = IBV_WR_RDMA_READ;
    ck_assert_int_eq(post(f.q, &wr), 0);
    kedge_session_query(f.s, &info);
    ck_assert_uint_eq(info.max_recvs, 0);
    teardown(&f);
}
END_TEST

START_TEST(a_port_is_asked_for_once_and_its_queue_pair_hears_alone)
{
    struct fixture f;
    setup(&f);
    f.a.reply = (struct schema_reply){0};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_bind(f.q, PORT), 0);
    const struct schema_sq_desc *d = fake_agent_asked(&f.a);
    struct schema_sq_desc want = {.op = SCHEMA_OP_BIND_PORT,
                                  .slots = 1,
                                  .vqp = (uint16_t)kedge_vqp_num(f.q),
                                  .bind_port = {.tag = d->bind_port.tag, .port = PORT}};
    ck_assert_mem_eq(d, &want, sizeof want);
    ck_assert_int_eq(kedge_bind(f.q, PORT), 0); /* is bound */
    ck_assert_int_eq(kedge_bind(f.q, PORT + 1), -EISCONN);
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), -EISCONN);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), -EISCONN);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(post(f.q, &wr), -ENOTCONN);
    struct kedge_vqp *connected;
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &connected), 0);
    ck_assert_int_eq(kedge_connect(connected, peer_gid), 0);
    ck_assert_int_eq(kedge_bind(connected, PORT), -EISCONN);
    ck_assert_ptr_eq(kedge_vqp_find(f.s, kedge_vqp_num(f.q)), f.q);
    kedge_vqp_destroy(f.q); /* of which the lane hears */
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_DESTROY);
    teardown(&f);
}
END_TEST

START_TEST(a_port_that_is_taken_is_refused_and_one_that_was_given_late_is_had)
{
    struct fixture f;
    setup(&f);
    f.a.reply = (struct schema_reply){.status = -EADDRINUSE};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_bind(f.q, PORT), -EADDRINUSE);
    (void)fake_agent_asked(&f.a);
    ck_assert_str_eq(kedge_last_error(), "another queue pair of this tenant, on this node, hears "
                                         "port 7: destroy it, or choose another port");
    f.a.reply.status = -EDQUOT;
    f.a.reply.reason = SCHEMA_REASON_QUOTA_CONTROL_OPS;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_bind(f.q, PORT), -EDQUOT);
    (void)fake_agent_asked(&f.a);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "control operations"));
    f.a.reply.reason = SCHEMA_REASON_NONE;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_bind(f.q, PORT), -EDQUOT);
    (void)fake_agent_asked(&f.a);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "as many ports as may be on this node"));
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0); /* it was bound to none */
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &f.q), 0);
    f.a.reply = (struct schema_reply){.status = -EALREADY};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_bind(f.q, PORT), 0);
    (void)fake_agent_asked(&f.a);
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), -EISCONN);
    teardown(&f);
}
END_TEST

START_TEST(a_send_goes_behind_whom_it_is_for_each_byte_as_the_schema_says)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 64, 100);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_BIND);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->bind.peer_slot, 3);
    const struct schema_sq_desc to = {
        .op = SCHEMA_OP_SEND_TO, .slots = 1, .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT}};
    ck_assert_mem_eq(fake_lane_slot(&f.a, 1), &to, sizeof to);
    struct schema_sq_desc send = {.op = SCHEMA_OP_SEND,
                                  .flags = SCHEMA_OP_SIGNALED,
                                  .num_sge = 1,
                                  .slots = 1,
                                  .post = {.wr_id = 55, .length = 100, .offset = 64}};
    ck_assert_mem_eq(fake_lane_slot(&f.a, 2), &send, sizeof send);
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 0x12345678;
    wr.send_flags = IBV_SEND_FENCE;
    wr.num_sge = 0;
    ck_assert_int_eq(post(f.q, &wr), 0);
    send = (struct schema_sq_desc){.op = SCHEMA_OP_SEND,
                                   .flags = SCHEMA_OP_FENCE | SCHEMA_OP_IMM,
                                   .slots = 1,
                                   .post = {.wr_id = 55, .imm = 0x12345678}};
    send.slots |= (uint8_t)(schema_phase(UINT32_MAX - 2 + 3, SQ_SLOTS - 1) << SCHEMA_SLOTS_PHASE);
    ck_assert_mem_eq(fake_lane_slot(&f.a, 3), &send, sizeof send); /* published alone */
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0);             /* forgets the port */
    ck_assert_int_eq(post(f.q, &wr), -EDESTADDRREQ);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 4);
    teardown(&f);
}
END_TEST

START_TEST(a_send_has_what_a_write_has_but_fewer_pieces_and_bytes)
{
    struct fixture f;
    uint8_t bytes[128];
    setup(&f);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    struct ibv_sge sge[4];
    for (uint32_t i = 0; i < 4; i++)
        sge[i] = sge_of(&f, 64 * i, 32);
    struct ibv_send_wr wr = send_of(sge, 4);
    ck_assert_int_eq(post(f.q, &wr), -EINVAL);
    ck_assert_str_eq(kedge_last_error(), "num_sge is 4: 0 to 3 are possible");
    sge[0].length = SCHEMA_MESSAGE_MOST;
    wr.num_sge = 2;
    ck_assert_int_eq(post(f.q, &wr), -EMSGSIZE);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "at most 16384 bytes, and this one 16416"));
    sge[0].lkey = 9;
    wr.num_sge = 1;
    ck_assert_int_eq(post(f.q, &wr), -EINVAL);
    sge[0].lkey = f.lkey;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    ck_assert_int_eq(post(f.q, &wr), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    wr.opcode = IBV_WR_SEND;
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->post.length, SCHEMA_MESSAGE_MOST);
    take_all(&f);
    for (int i = 0; i < 4; i++)
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)bytes + 32u * (unsigned)i, .length = 32};
    for (int i = 0; i < 128; i++)
        bytes[i] = (uint8_t)i;
    wr.num_sge = 4;
    wr.send_flags = IBV_SEND_INLINE;
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->flags, SCHEMA_OP_INLINE);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->slots & SCHEMA_SLOTS_COUNT, 3);
    ck_assert_mem_eq(fake_lane_slot(&f.a, 1), bytes, 64);
    ck_assert_mem_eq(fake_lane_slot(&f.a, 2), bytes + 64, 64);
    teardown(&f);
}
END_TEST

/* Of an agent whose lanes have them READ. */
START_TEST(a_large_send_goes_to_an_agent_that_knows_such)
{
    struct fixture f;
    setup_with(&f, SCHEMA_FEATURE_MESSAGES | SCHEMA_FEATURE_LARGE);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    take_all(&f);
    struct ibv_sge sge = sge_of(&f, 0, SCHEMA_MESSAGE_MOST + 1);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(post(f.q, &wr), 0);
    /* Behind what binds it: BIND and SEND_TO. */
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->post.length, SCHEMA_MESSAGE_MOST + 1);
    struct ibv_sge many[3] = {sge, sge, sge};
    for (int i = 0; i < 3; i++)
        many[i].length = SCHEMA_LARGE_MOST / 2;
    wr = send_of(many, 3);
    ck_assert_int_eq(post(f.q, &wr), -EMSGSIZE);
    teardown(&f);
}
END_TEST

/* Of four slots: the largest SEND takes three, and what is before the first two. */
START_TEST(the_smallest_ring_has_room_for_the_largest_send_in_two_steps)
{
    struct fixture f;
    uint8_t bytes[128] = {1};
    setup(&f);
    kedge_close(f.s);
    close(f.a.connection);
    f.a.ro->sq_slots = 4;
    f.s = fake_agent_open(&f.a);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &f.q), 0);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = sizeof bytes};
    struct ibv_send_wr wr = send_of(&sge, 1);
    wr.send_flags = IBV_SEND_INLINE;
    ck_assert_int_eq(post(f.q, &wr), -ENOMEM);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 2);
    take_all(&f);
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_without_messages_is_asked_for_none_and_says_so_with_a_sentence)                     \
    T(a_port_is_asked_for_once_and_its_queue_pair_hears_alone)                                     \
    T(a_port_that_is_taken_is_refused_and_one_that_was_given_late_is_had)                          \
    T(a_send_goes_behind_whom_it_is_for_each_byte_as_the_schema_says)                              \
    T(a_send_has_what_a_write_has_but_fewer_pieces_and_bytes)                                      \
    T(a_large_send_goes_to_an_agent_that_knows_such)                                               \
    T(the_smallest_ring_has_room_for_the_largest_send_in_two_steps)
KEDGE_CHECK_MAIN("libclient messages", TESTS)
