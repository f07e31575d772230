/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions at metaservers of one store, of which each shows what it has heard itself. */
#include "world_shared.h"

/* The store has it, by another metaserver's word; here it is in no table yet. */
START_TEST(a_region_of_an_endpoint_that_another_metaserver_alone_shows_has_no_name_yet)
{
    const char *const two =
        "{\"incarnation\":5,\"endpoints\":["
        "{\"gid\":\"fd00::2\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":"
        "\"0000000000000001\",\"mtu\":4096},"
        "{\"gid\":\"fd00::3\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":8,\"dc_key\":"
        "\"0000000000000002\",\"mtu\":4096}]}";
    const char *const one =
        "{\"incarnation\":5,\"endpoints\":["
        "{\"gid\":\"fd00::2\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":"
        "\"0000000000000001\",\"mtu\":4096}]}";
    struct reply reply;
    setup_all(21);
    ck_assert_int_lt(ask(&all.metad[0], "PUT", "/v1/nodes/n1", one), 300);
    settle_all();
    ck_assert_int_lt(ask(&all.metad[1], "PUT", "/v1/nodes/n1", one), 300);
    ck_assert_int_lt(ask(&all.metad[0], "PUT", "/v1/nodes/n1", two), 300);
    settle_all();
    put_name(&all.metad[1], 1, 5, 2, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 404);
    ck_assert_ptr_nonnull(strstr(reply.body, "does not show that endpoint"));
    ck_assert_int_lt(ask(&all.metad[1], "PUT", "/v1/nodes/n1", two), 300);
    put_name(&all.metad[1], 1, 5, 2, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    teardown_all();
}
END_TEST

/* What this one shows was taken back at another one, of which it has not heard. */
START_TEST(a_name_that_is_there_already_is_so_by_the_stores_word_alone)
{
    struct reply reply;
    setup_all(22);
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    put_node(&all.metad[1], 1, 5, 1, &reply);
    settle_all();
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 200);
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "DELETE", "/v1/nodes/n1", ""), 204);
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    while (reply.status == META_SERVICE_LATER)
        step_all();
    ck_assert_int_ge(reply.status, 400);
    all.metad[1].cut_off = false;
    settle_all();
    expect_all_the_same(22);
    teardown_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_region_of_an_endpoint_that_another_metaserver_alone_shows_has_no_name_yet)                 \
    T(a_name_that_is_there_already_is_so_by_the_stores_word_alone)

KEDGE_CHECK_MAIN("metaserver shared names", TESTS)
