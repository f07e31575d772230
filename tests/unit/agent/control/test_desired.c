/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "control/desired.h"
#include "base/text.h"

static struct agent_desired s;
static struct base_errbuf why;

static int decode(const char *text)
{
    memset(&s, 0xff, sizeof s); /* whatever was there before */
    return agent_desired_decode(text, strlen(text), &s, &why);
}

static void refused(const char *text, const char *sentence)
{
    ck_assert_int_eq(decode(text), -EINVAL);
    ck_assert_msg(strstr(why.text, sentence) != NULL, "%s", why.text);
}

START_TEST(a_document_is_read)
{
    ck_assert_int_eq(
        decode("{\"revision\":7,\"later\":{},\"tenants\":[{\"name\":\"red\",\"revision\":3,"
               "\"uids\":[1000,\"2000-2999\"],\"sessions\":5,\"vqps\":6,\"mrs\":0,"
               "\"control_ops_per_s\":44,\"region_names\":12,"
               "\"memory_bytes\":0,\"window_bytes\":4096,\"window_ops\":0}],"
               "\"windows\":[{\"name\":\"w\",\"scope\":\"device\",\"bytes\":0,\"ops\":64},"
               "{\"name\":\"x\",\"scope\":\"tenant\",\"tenant\":\"red\",\"bytes\":8192,\"ops\":9},"
               "{\"name\":\"y\",\"scope\":\"device\",\"bytes\":1,\"ops\":65},"
               "{\"name\":\"z\",\"scope\":\"destination\",\"bytes\":0,\"ops\":0}]}"),
        0);
    ck_assert_uint_eq(s.revision, 7);
    ck_assert_uint_eq(s.tenants, 1);
    const struct agent_tenant_config *t = &s.tenant[0];
    ck_assert_str_eq(t->name, "red");
    ck_assert_uint_eq(t->id, agent_tenant_id("red"));
    ck_assert_uint_eq(t->uid_ranges, 2);
    ck_assert_uint_eq(t->uids[0].last, 1000);
    ck_assert_uint_eq(t->uids[1].first, 2000);
    ck_assert_uint_eq(t->uids[1].last, 2999);
    ck_assert_uint_eq(t->sessions, 5);
    ck_assert_uint_eq(t->vqps, 6);
    ck_assert_uint_eq(t->mrs, 0);
    ck_assert_uint_eq(t->control_ops_per_s, 44);
    ck_assert_uint_eq(t->region_names, 12);
    ck_assert_uint_eq(t->memory, UINT64_MAX); /* no bound */
    struct agent_limits w = agent_desired_window(&s, RESOURCE_WINDOW_DEVICE, "");
    ck_assert_uint_eq(w.ops, 64); /* the narrowest of each */
    ck_assert_uint_eq(w.bytes, 1);
    w = agent_desired_window(&s, RESOURCE_WINDOW_TENANT, "red");
    ck_assert_uint_eq(w.bytes, 4096);
    ck_assert_uint_eq(w.ops, 9);
    w = agent_desired_window(&s, RESOURCE_WINDOW_TENANT, "blue");
    ck_assert_uint_eq(w.bytes + w.ops, 0);
    w = agent_desired_window(&s, RESOURCE_WINDOW_DESTINATION, "");
    ck_assert_uint_eq(w.bytes + w.ops, 0);
}
END_TEST

START_TEST(what_is_desired_of_the_node_and_its_pools_is_read)
{
    ck_assert_int_eq(decode("{\"revision\":7,\"tenants\":[],\"windows\":[]}"), 0); /* as of old */
    ck_assert(!s.node.cordoned && !s.node.draining && s.node.reason[0] == '\0');
    ck_assert_uint_eq(s.pools, 0);
    ck_assert_uint_eq(agent_desired_pool(&s, "default").numbers.spares, RESOURCE_UNSAID);
    ck_assert_int_eq(
        decode("{\"tenants\":[],\"windows\":[],\"node\":{"
               "\"labels\":{\"a\":\"b\",\"zone\":\"e\\nst\"},"
               "\"cordoned\":true,\"draining\":true,\"grace_ms\":500,\"reason\":"
               "\"a\\ndisk\\u009b\\u202e\"},"
               "\"pools\":[{\"name\":\"other\",\"spares\":9},{\"name\":\"default\",\"spares\":0,"
               "\"sessions_ahead\":1024,\"colour\":\"red\"}]}"),
        0);
    ck_assert(s.node.cordoned && s.node.draining);
    ck_assert_uint_eq(s.node.grace_ms, 500);
    ck_assert_str_eq(s.node.reason, "a?disk??");
    ck_assert_str_eq(s.node.zone, "e?st");
    struct agent_pool_config p = agent_desired_pool(&s, "default");
    ck_assert_str_eq(p.name, "default");
    ck_assert_uint_eq(p.numbers.spares, 0);
    ck_assert_uint_eq(p.numbers.sessions_ahead, 1024);
    ck_assert_uint_eq(p.numbers.dcis, RESOURCE_UNSAID);
    ck_assert_int_eq(decode("{\"tenants\":[],\"windows\":[],\"node\":{\"draining\":true}}"), 0);
    ck_assert(s.node.cordoned);                          /* whoever drains takes nobody */
    ck_assert_uint_eq(s.node.grace_ms, RESOURCE_UNSAID); /* they may finish */
    ck_assert_int_eq(
        decode("{\"tenants\":[],\"windows\":[],\"node\":{\"draining\":true,\"grace_ms\":0}}"), 0);
    ck_assert_uint_eq(s.node.grace_ms, 0); /* at once */
}
END_TEST

#define HASH "ab53a2911ddf9b4817ac01ddcd3d975fabbba9f5ba6ad57d2e7b9d5fbbbb1f80"
#define TENANT(tokens)                                                                             \
    "{\"revision\":7,\"windows\":[],\"tenants\":[{\"name\":\"red\",\"uids\":[],\"tokens\":" tokens \
    "}]}"

START_TEST(tokens_of_tenants_are_read)
{
    char text[4096] = "{\"revision\":7,\"windows\":[],\"tenants\":[{\"name\":\"red\",\"uids\":[],"
                      "\"tokens\":[{\"sha256\":\"" HASH "\"}";
    ck_assert_int_eq(
        decode(TENANT("[{\"sha256\":\"" HASH "\",\"expires_ms\":1800000000000,\"later\":1},"
                      "{\"sha256\":\"" HASH "\"}]")),
        0);
    ck_assert_uint_eq(s.tenant[0].tokens, 2);
    ck_assert_uint_eq(s.tenant[0].token[0].sha256[31], 0x80);
    ck_assert_uint_eq(s.tenant[0].token[0].expires_ms, 1800000000000);
    ck_assert_uint_eq(s.tenant[0].token[1].expires_ms, 0);
    refused(TENANT("{}"), "tokens must be at most 16");
    refused(TENANT("[\"" HASH "\"]"), "tokens[0] has no sha256");
    refused(TENANT("[{\"sha256\":\"ab53\"}]"), "tokens[0] has no sha256");
    refused(TENANT("[{\"sha256\":\"" HASH "\",\"expires_ms\":-1}]"), "expires_ms is no number");
    size_t length = strlen(text);
    for (int i = 1; i <= AGENT_TOKENS; i++) {
        snprintf(text + length, sizeof text - length, "]}]}");
        ck_assert_int_eq(decode(text), 0);
        ck_assert_uint_eq(s.tenant[0].tokens, i);
        length +=
            (size_t)snprintf(text + length, sizeof text - length, ",{\"sha256\":\"" HASH "\"}");
    }
    snprintf(text + length, sizeof text - length, "]}]}");
    refused(text, "tokens must be at most 16");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_and_named)
{
    refused("{\"tenants\":[],\"windows\":[],\"node\":{\"grace_ms\":9007199254740992}}", "grace_ms");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{}]}", "name");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":{}}", "pools");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"dcis\":1}]}", "dcis");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"service_level\":16}]}",
            "service_level");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"mtu\":1500}]}", "mtu");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"flow_label\":5,\"udp_"
            "source_port\":50000}]}",
            "flow_label");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"udp_source_port\":4791}]}",
            "udp_source_port");
    refused("{\"tenants\":[],\"windows\":[],\"pools\":[{\"name\":\"p\",\"spares\":\"2\"}]}",
            "spares");

    refused("", "no JSON object");
    refused("[]", "no JSON object");
    refused("{\"tenants\":[]}", "windows");
    refused("{\"revision\":-1,\"tenants\":[],\"windows\":[]}", "revision");
    refused("{\"tenants\":[{}],\"windows\":[]}", "name");
    refused("{\"tenants\":[{\"name\":\"a\"}],\"windows\":[]}", "uids");
    refused("{\"tenants\":[{\"name\":\"a\",\"uids\":[\"5-4\"]}],\"windows\":[]}", "uids[0]");
    refused("{\"tenants\":[{\"name\":\"a\",\"uids\":[4294967295]}],\"windows\":[]}", "uids[0]");
    refused("{\"tenants\":[{\"name\":\"a\",\"uids\":[],\"vqps\":1.5}],\"windows\":[]}", "vqps");
    refused("{\"tenants\":[],\"windows\":[{\"name\":\"w\",\"scope\":\"rack\"}]}", "scope");
    refused("{\"tenants\":[],\"windows\":[{\"name\":\"w\",\"scope\":\"tenant\"}]}", "tenant");
    refused(
        "{\"tenants\":[{\"name\":\"a\",\"uids\":[],\"control_ops_per_s\":\"1\"}],\"windows\":[]}",
        "control_ops_per_s");
    static const char *const destinations[][2] = {
        {"\"gid\":\"::\"", "window w: gid must be a unicast IPv6 address"},
        {"\"gid\":\"x\"", "window w: gid must be a unicast IPv6 address"},
        {"\"gid\":7", "window w: gid must be a unicast IPv6 address"},
        {"\"node\":7", "node"},
        {"\"node\":\"\"", "node"},
        {"\"node\":\"n\",\"gids\":[\"fd00::1\",0]", "no GID"},
        {"\"gid\":\"fd00::1\",\"pool\":[]", "pool"}};
    for (size_t i = 0; i < sizeof destinations / sizeof destinations[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"tenants\":[],\"windows\":[{\"name\":\"w\",\"scope\":\"destination\",%s}]}",
                 destinations[i][0]);
        refused(text, destinations[i][1]);
    }
}
END_TEST

static struct agent_destination found[AGENT_DESTINATIONS];

static uint32_t seen_from(const char *pool, uint32_t *left)
{
    return agent_desired_destinations(s.window, s.windows, pool, found, left);
}

static const struct agent_destination *of_gid(uint32_t count, const char *text)
{
    uint8_t gid[16];
    ck_assert_int_eq(base_gid_parse(text, gid), 0);
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(found[i].gid, gid, sizeof gid) == 0)
            return &found[i];
    return NULL;
}

START_TEST(windows_for_one_destination_are_read_and_the_narrowest_holds)
{
    uint32_t left;
    ck_assert_int_eq(
        decode(
            "{\"tenants\":[],\"windows\":["
            "{\"name\":\"each\",\"scope\":\"destination\",\"bytes\":0,\"ops\":64},"
            "{\"name\":\"a\",\"scope\":\"destination\",\"node\":\"n1\",\"bytes\":4096,\"ops\":9,"
            "\"gids\":[\"fd00::1\",\"fd00::2\"]},"
            "{\"name\":\"b\",\"scope\":\"destination\",\"gid\":\"fd00::2\",\"bytes\":8192,\"ops\":"
            "3},"
            "{\"name\":\"c\",\"scope\":\"destination\",\"gid\":\"fd00::2\",\"pool\":\"fast\","
            "\"bytes\":1024,\"ops\":0},"
            "{\"name\":\"d\",\"scope\":\"destination\",\"node\":\"gone\",\"ops\":1,\"gids\":[]},"
            "{\"name\":\"e\",\"scope\":\"destination\",\"node\":\"n1\",\"gids\":[\"fd00::9\"]}]}"),
        0);
    struct agent_limits each = agent_desired_window(&s, RESOURCE_WINDOW_DESTINATION, "");
    ck_assert_uint_eq(each.bytes, 0); /* those for one are none for each */
    ck_assert_uint_eq(each.ops, 64);
    ck_assert_uint_eq(s.windows, 5); /* what has no bound is none */
    ck_assert_str_eq(s.window[1].name, "a");
    ck_assert_str_eq(s.window[1].node, "n1");
    ck_assert(s.window[4].one && s.window[4].gids == 0);
    uint32_t count = seen_from("default", &left);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_eq(of_gid(count, "fd00::1")->most.bytes, 4096);
    ck_assert_uint_eq(of_gid(count, "fd00::1")->most.ops, 9);
    ck_assert_uint_eq(of_gid(count, "fd00::2")->most.bytes, 4096);
    ck_assert_uint_eq(of_gid(count, "fd00::2")->most.ops, 3);
    count = seen_from("fast", &left);
    ck_assert_uint_eq(of_gid(count, "fd00::2")->most.bytes, 1024);
    ck_assert_uint_eq(of_gid(count, "fd00::2")->most.ops, 3);
}
END_TEST

/* As many as a metaserver takes of each: 256 windows, and 64 tenants with numbers of their own. */
START_TEST(tenants_with_windows_of_their_own_take_none_of_the_windows_room)
{
    enum { WINDOWS = 256, TENANTS = 64, BYTES = 64 << 10 };
    char *text = malloc(BYTES);
    size_t n = (size_t)snprintf(text, BYTES, "{\"tenants\":[");
    for (int i = 0; i < TENANTS; i++)
        n += (size_t)snprintf(text + n, BYTES - n,
                              "%s{\"name\":\"t%d\",\"uids\":[],\"window_ops\":%d}",
                              i > 0 ? "," : "", i, 1000 + i);
    n += (size_t)snprintf(text + n, BYTES - n, "],\"windows\":[");
    for (int i = 0; i < WINDOWS; i++)
        n += (size_t)snprintf(
            text + n, BYTES - n,
            "%s{\"name\":\"w%d\",\"scope\":\"tenant\",\"tenant\":\"t%d\",\"ops\":%d}",
            i > 0 ? "," : "", i, i % TENANTS, 1 + i);
    (void)snprintf(text + n, BYTES - n, "]}");
    ck_assert_int_eq(decode(text), 0);
    ck_assert_uint_eq(s.windows, WINDOWS + TENANTS);
    ck_assert_uint_eq(s.tenant[0].window.ops, 1);
    ck_assert_uint_eq(s.tenant[TENANTS - 1].window.ops, TENANTS);
    free(text);
}
END_TEST

START_TEST(destinations_for_which_there_is_no_room_are_counted)
{
    enum { NODES = 18 };
    uint32_t left;
    memset(&s, 0, sizeof s);
    s.windows = NODES;
    for (uint8_t i = 0; i < NODES; i++) { /* pairs of nodes with all GIDs but one in common */
        s.window[i] = (struct agent_window_config){.scope = RESOURCE_WINDOW_DESTINATION,
                                                   .one = true,
                                                   .gids = AGENT_WINDOW_GIDS,
                                                   .most = {.ops = 1 + i}};
        for (uint8_t k = 0; k < AGENT_WINDOW_GIDS; k++) {
            s.window[i].gid[k][0] = 1 + i / 2;
            s.window[i].gid[k][15] = k + i % 2;
        }
    }
    ck_assert_uint_eq(seen_from("default", &left), NODES / 2 * (AGENT_WINDOW_GIDS + 1));
    ck_assert_uint_eq(left, 0);
    for (uint8_t i = 0; i < NODES; i++) /* and now with none */
        for (uint32_t k = 0; k < AGENT_WINDOW_GIDS; k++)
            s.window[i].gid[k][1] = i;
    ck_assert_uint_eq(seen_from("default", &left), AGENT_DESTINATIONS);
    ck_assert_uint_eq(left, NODES * AGENT_WINDOW_GIDS - AGENT_DESTINATIONS);
}
END_TEST

START_TEST(pools_have_numbers_periods_and_tenants)
{
    ck_assert_int_eq(
        decode("{\"windows\":[],\"tenants\":[{\"name\":\"red\",\"uids\":[],\"pool\":\"gold\"},"
               "{\"name\":\"blue\",\"uids\":[]}],"
               "\"pools\":[{\"name\":\"silver\",\"number\":65535,\"lanes\":8,\"mr_lease_ms\":10,"
               "\"grace_ms\":0,\"tenants\":[\"x\"]},"
               "{\"name\":\"old\"},{\"name\":\"older\"},"
               "{\"name\":\"lead\",\"number\":1,\"mr_lease_ms\":3600000,"
               "\"grace_ms\":9007199254}]}"),
        0);
    ck_assert_str_eq(s.tenant[0].pool, "gold"); /* which this node does not have */
    ck_assert_str_eq(s.tenant[1].pool, "");
    struct agent_pool_config p = agent_desired_pool(&s, "silver");
    ck_assert_uint_eq(p.numbers.number, 65535);
    ck_assert_uint_eq(agent_desired_lanes(&p), 8);
    ck_assert_uint_eq(p.numbers.mr_lease_ms, 10);
    ck_assert_uint_eq(p.numbers.grace_ms, 0);
    p = agent_desired_pool(&s, "lead");
    ck_assert_uint_eq(p.numbers.number, 1);
    ck_assert_uint_eq(p.numbers.mr_lease_ms, 3600000);
    ck_assert_uint_eq(p.numbers.grace_ms, 9007199254);
    p = agent_desired_pool(&s, "old"); /* two without a number do not have the same one */
    ck_assert_str_eq(p.name, "old");
    ck_assert_uint_eq(agent_desired_lanes(&p), 1);
    ck_assert_uint_eq(p.numbers.number, RESOURCE_UNSAID);
    ck_assert_uint_eq(p.numbers.mr_lease_ms, RESOURCE_UNSAID);
    ck_assert_uint_eq(p.numbers.grace_ms, RESOURCE_UNSAID);
    p = agent_desired_pool(&s, "none");
    ck_assert_str_eq(p.name, "");
    ck_assert_uint_eq(p.numbers.grace_ms, RESOURCE_UNSAID);
    ck_assert_uint_eq(s.other_pools, 0);
    ck_assert_int_eq(
        decode("{\"windows\":[],\"tenants\":[],\"pools\":[],\"other_pools\":["
               "{\"name\":\"gold\",\"number\":7,\"grace_ms\":0},{\"name\":\"old\",\"later\":1}]}"),
        0);
    ck_assert_uint_eq(s.other_pools, 2);
    ck_assert_str_eq(s.other_pool[0].name, "gold");
    ck_assert_uint_eq(s.other_pool[0].numbers.number, 7);
    ck_assert_uint_eq(s.other_pool[0].numbers.grace_ms, 0);
    ck_assert_uint_eq(s.other_pool[1].numbers.grace_ms, RESOURCE_UNSAID);
}
END_TEST

static void pools_refused(const char *pools, const char *sentence)
{
    char text[256];
    snprintf(text, sizeof text, "{\"tenants\":[],\"windows\":[],\"pools\":[%s]}", pools);
    refused(text, sentence);
}

START_TEST(pools_that_cannot_be_told_apart_are_refused)
{
    pools_refused("{\"name\":\"a\",\"number\":7},{\"name\":\"b\",\"number\":7}",
                  "pools a and b have one number, 7");
    pools_refused("{\"name\":\"a\",\"number\":7},{\"name\":\"a\",\"number\":8}",
                  "two pools of the name a");
    pools_refused("{\"name\":\"a\",\"number\":0}",
                  "pool a: number must be an integer from 1 to 65535");
    pools_refused("{\"name\":\"a\",\"number\":65536}", "pool a: number must be");
    pools_refused("{\"name\":\"a\",\"number\":\"7\"}", "pool a: number must be");
    pools_refused("{\"name\":\"a\",\"mr_lease_ms\":9}",
                  "mr_lease_ms must be an integer from 10 to 3600000");
    pools_refused("{\"name\":\"a\",\"mr_lease_ms\":3600001}", "mr_lease_ms must be");
    pools_refused("{\"name\":\"a\",\"lanes\":0}", "lanes must be an integer from 1 to 8");
    pools_refused("{\"name\":\"a\",\"lanes\":9}", "lanes must be an integer from 1 to 8");
    pools_refused("{\"name\":\"a\",\"grace_ms\":9007199255}", "grace_ms must be");
    refused("{\"tenants\":[{\"name\":\"a\",\"uids\":[],\"pool\":\"\"}],\"windows\":[]}", "pool");
    refused("{\"tenants\":[{\"name\":\"a\",\"uids\":[],\"pool\":7}],\"windows\":[]}", "pool");
}
END_TEST

START_TEST(there_may_be_no_more_than_fit)
{
    struct base_text t;
    base_text_init(&t, 1 << 16);
    base_text_printf(&t, "{\"revision\":1,\"windows\":[],\"tenants\":[");
    for (int i = 0; i <= AGENT_TENANTS; i++)
        base_text_printf(&t, "%s{\"name\":\"t%d\",\"uids\":[]}", i == 0 ? "" : ",", i);
    base_text_printf(&t, "]}");
    refused(base_text_str(&t), "more than 64 tenants");
    base_text_fini(&t);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_document_is_read)                                                                          \
    T(what_is_desired_of_the_node_and_its_pools_is_read)                                           \
    T(tokens_of_tenants_are_read)                                                                  \
    T(what_makes_no_sense_is_refused_and_named)                                                    \
    T(windows_for_one_destination_are_read_and_the_narrowest_holds)                                \
    T(tenants_with_windows_of_their_own_take_none_of_the_windows_room)                             \
    T(destinations_for_which_there_is_no_room_are_counted)                                         \
    T(pools_have_numbers_periods_and_tenants)                                                      \
    T(pools_that_cannot_be_told_apart_are_refused)                                                 \
    T(there_may_be_no_more_than_fit)
KEDGE_CHECK_MAIN("agent.control.desired", TESTS)
