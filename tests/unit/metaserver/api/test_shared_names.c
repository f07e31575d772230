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

#define TESTS(T) T(a_region_of_an_endpoint_that_another_metaserver_alone_shows_has_no_name_yet)
KEDGE_CHECK_MAIN("metaserver shared names", TESTS)
