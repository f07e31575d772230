/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of and for other tenants: what the lane is asked for. */
#include <errno.h>
#include <string.h>

#include "message_fixture.h"
#include "schema/record.h"

static void setup_guests(struct fixture *f)
{
    setup_with(f, SCHEMA_FEATURE_MESSAGES | SCHEMA_FEATURE_GUESTS);
}

static void expect_asked(struct fixture *f, uint8_t op, const char *tenant)
{
    const struct schema_sq_desc *d = fake_agent_asked(&f->a);
    const struct schema_sq_desc want = {
        .op = op,
        .slots = 1,
        .vqp = (uint16_t)kedge_vqp_num(f->q),
        .bind_port = {.tag = d->bind_port.tag, .tenant = schema_tenant_number(tenant)}};
    ck_assert_mem_eq(d, &want, sizeof want);
}

START_TEST(an_agent_of_before_is_not_asked_and_its_worker_hears_so)
{
    struct fixture f;
    setup(&f);
    bind_port(&f);
    ck_assert_int_eq(kedge_port_grant(f.q, "blue"), -EOPNOTSUPP);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "ports for other tenants"));
    ck_assert_int_eq(kedge_port_revoke(f.q, "blue"), -EOPNOTSUPP);
    struct kedge_vqp *q;
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect_port_of(q, peer_gid, "blue", PORT), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_tenant_is_let_in_and_shut_out_by_its_number)
{
    struct fixture f;
    setup_guests(&f);
    ck_assert_int_eq(kedge_port_grant(f.q, "blue"), -ENOTCONN);
    ck_assert_int_eq(kedge_port_revoke(f.q, "blue"), -ENOTCONN);
    bind_port(&f);
    ck_assert_int_eq(kedge_port_grant(f.q, "not,a,name"), -EINVAL);
    ck_assert_int_eq(kedge_port_grant(f.q, "No name"), -EINVAL);
    ck_assert_int_eq(kedge_port_revoke(f.q, "-nor-this"), -EINVAL);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    f.a.reply = (struct schema_reply){0};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_grant(f.q, "blue"), 0);
    expect_asked(&f, SCHEMA_OP_PORT_GRANT, "blue");
    f.a.reply.status = -EALREADY;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_grant(f.q, "blue"), 0);
    expect_asked(&f, SCHEMA_OP_PORT_GRANT, "blue");
    f.a.reply.status = -EDQUOT;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_grant(f.q, "red"), -EDQUOT);
    expect_asked(&f, SCHEMA_OP_PORT_GRANT, "red");
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "let in 16 tenants"));
    f.a.reply.reason = SCHEMA_REASON_QUOTA_CONTROL_OPS;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_grant(f.q, "red"), -EDQUOT);
    expect_asked(&f, SCHEMA_OP_PORT_GRANT, "red");
    ck_assert_ptr_null(strstr(kedge_last_error(), "let in 16 tenants"));
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "control operations"));
    f.a.reply = (struct schema_reply){0};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_revoke(f.q, "blue"), 0);
    expect_asked(&f, SCHEMA_OP_PORT_REVOKE, "blue");
    f.a.reply.status = -ENOENT;
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_port_revoke(f.q, "blue"), -ENOENT);
    expect_asked(&f, SCHEMA_OP_PORT_REVOKE, "blue");
    ck_assert_str_eq(kedge_last_error(), "the queue pair has not let in tenant blue");
    teardown(&f);
}
END_TEST

START_TEST(a_send_names_whose_port_it_is_for)
{
    struct fixture f;
    setup_guests(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(kedge_connect_port_of(f.q, peer_gid, "not,a,name", PORT), -EINVAL);
    ck_assert_int_eq(kedge_connect_port_of(f.q, peer_gid, "Blue", PORT), -EINVAL);
    ck_assert_int_eq(kedge_connect_port_of(f.q, peer_gid, "blue", PORT), 0);
    ck_assert_int_eq(post(f.q, &wr), 0);
    const struct schema_sq_desc to = {.op = SCHEMA_OP_SEND_TO,
                                      .slots = 1,
                                      .send_to = {.kind = SCHEMA_SEND_TO_PORT,
                                                  .to = PORT,
                                                  .tenant = schema_tenant_number("blue")}};
    ck_assert_mem_eq(fake_lane_slot(&f.a, 1), &to, sizeof to);
    take_all(&f);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0); /* its own again */
    ck_assert_int_eq(post(f.q, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->op, SCHEMA_OP_SEND_TO);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->send_to.tenant, 0);
    teardown(&f);
}
END_TEST

START_TEST(a_tenants_number_is_that_of_its_messages_and_a_wrong_name_has_none)
{
    ck_assert_uint_eq(kedge_tenant_number("blue"), schema_tenant_number("blue"));
    ck_assert_uint_ne(kedge_tenant_number("blue"), kedge_tenant_number("red"));
    ck_assert_uint_eq(kedge_tenant_number("Blue"), 0);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "a tenant's name has"));
    ck_assert_uint_eq(kedge_tenant_number(""), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_of_before_is_not_asked_and_its_worker_hears_so)                                     \
    T(a_tenant_is_let_in_and_shut_out_by_its_number)                                               \
    T(a_send_names_whose_port_it_is_for)                                                           \
    T(a_tenants_number_is_that_of_its_messages_and_a_wrong_name_has_none)
KEDGE_CHECK_MAIN("libclient port guests", TESTS)
