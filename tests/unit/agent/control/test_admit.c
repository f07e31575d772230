/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a connection is before it has said anything. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "connection.h"
#include "schema/control.h"

static struct agent a;
static struct base_errbuf why;
static uint32_t share;

/* One tenant, of uid 1000. */
static void begin(uint32_t tokens)
{
    memset(&a, 0, sizeof a);
    a.tenants.at[0] = (struct agent_tenant){
        .state = AGENT_TENANT_LIVE,
        .config = {.name = "own", .uid_ranges = 1, .uids = {{1000, 1000}}, .tokens = tokens}};
}

START_TEST(a_uid_of_no_tenant_is_told_what_helps_and_what_does_not)
{
    begin(0);
    const struct attach_peer peer = {.uid = 2000};
    ck_assert_int_eq(agent_connection_share(&a, &peer, &share, &why), -EACCES);
    ck_assert_str_eq(why.text,
                     "uid 2000 belongs to no tenant (at the metaserver: rdmactl tenant create NAME "
                     "uids=2000; or add it to `uids` of a [tenant] of the agent's file; "
                     "KEDGE_WORKER_TOKEN would not help: no tenant of this agent has a token)");
}
END_TEST

START_TEST(the_whole_sentence_reaches_a_worker_whatever_its_uid)
{
    begin(0);
    const struct attach_peer peer = {.uid = UINT32_MAX - 1};
    ck_assert_int_eq(agent_connection_share(&a, &peer, &share, &why), -EACCES);
    ck_assert_uint_lt(strlen(why.text), sizeof((struct schema_control_error *)NULL)->text);
}
END_TEST

START_TEST(a_uid_that_the_file_gave_and_the_metaserver_has_not_is_told_so)
{
    begin(0);
    struct agent_tenant *t = &a.tenants.at[0];
    const struct attach_peer peer = {.uid = UINT32_MAX - 1};
    t->own = (struct agent_tenant_config){.name = "a23456789012345678901234567890b",
                                          .uid_ranges = 1,
                                          .uids = {{UINT32_MAX - 1, UINT32_MAX - 1}}};
    t->central = true;
    ck_assert_int_eq(agent_connection_share(&a, &peer, &share, &why), -EACCES);
    ck_assert_ptr_nonnull(strstr(why.text, "[tenant a23456789012345678901234567890b] of the "
                                           "agent's file has it, and the metaserver's tenant of "
                                           "that name stands in its place without it"));
    ck_assert_uint_lt(strlen(why.text), sizeof((struct schema_control_error *)NULL)->text);
}
END_TEST

START_TEST(a_uid_of_no_tenant_waits_among_strangers_where_a_token_may_be_shown)
{
    begin(1);
    const struct attach_peer stranger = {.uid = 2000}, own = {.uid = 1000};
    ck_assert_int_eq(agent_connection_share(&a, &stranger, &share, &why), 0);
    ck_assert_uint_eq(share, WAITING_SHARE_STRANGERS);
    ck_assert_int_eq(agent_connection_share(&a, &own, &share, &why), 0);
    ck_assert_uint_eq(share, WAITING_SHARE_TENANTS);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_uid_of_no_tenant_is_told_what_helps_and_what_does_not)                                     \
    T(a_uid_that_the_file_gave_and_the_metaserver_has_not_is_told_so)                              \
    T(the_whole_sentence_reaches_a_worker_whatever_its_uid)                                        \
    T(a_uid_of_no_tenant_waits_among_strangers_where_a_token_may_be_shown)
KEDGE_CHECK_MAIN("agent.control.admit", TESTS)
