/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../man_page.h"
#include "bounds.h"
#include "control/config.h"
#include "control/tenants.h"
#include "ctl/checks.h"

static struct agent_config config;
static struct base_errbuf err;

static int configure(const char *text)
{
    char path[] = "/tmp/kedge-agentd-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    err.text[0] = '\0';
    int status = agent_config_read(path, &config, &err);
    unlink(path);
    return status;
}

static void refused(const char *text, const char *sentence)
{
    ck_assert_int_eq(configure(text), -EINVAL);
    ck_assert_msg(strstr(err.text, sentence) != NULL, "\"%s\" is not in \"%s\"", sentence,
                  err.text);
}

static void append(char text[8192], const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, 8192 - length, "%s", more);
}

START_TEST(an_empty_file_means_the_defaults)
{
    ck_assert_int_eq(configure("[agent]\nnode = n1\n"), 0);
    ck_assert_str_eq(config.socket, "/run/kedge/agent.sock");
    ck_assert_uint_eq(config.dcis, 8);
    ck_assert_uint_eq(config.arena_bytes, 2 << 20);
    ck_assert_uint_eq(config.mr_lease_ns, 100000000);
    ck_assert_uint_eq(config.metaservers, 1);
    ck_assert_str_eq(config.metaserver[0], "http://127.0.0.1:7480");
}
END_TEST

START_TEST(an_unknown_key_is_named_with_its_line)
{
    refused("[agent]\nnode = n1\n\nnoed = n2\n", ":4: there is no setting noed in [agent]");
    refused("[pool]\nnode = n1\n", ":2: there is no setting node in [pool]: it is one of [agent]");
    refused("node = n1\n", ":1: node stands before the first section: it is one of [agent]");
    refused("noed = n1\n[agent]\n",
            ":1: there is no setting noed, which stands before the first section: see ");
    refused("[tenant a]\nuid = 1\n", ":2: there is no setting uid in [tenant a]");
}
END_TEST

START_TEST(a_section_that_there_is_not_is_named_also_where_it_is_empty)
{
    refused("[poool]\ndcis = 1\n",
            ":1: there is no section [poool]: those that there are: [agent], ");
    refused("[agent]\nnode = n1\n[agnt]\n", ":3: there is no section [agnt]");
    refused("[agent]\nnode = n1\n[tenant]\n", ":3: there is no section [tenant]");
    refused("[agent]\nnode = n1\n[tenant A]\n", ":3: a tenant's name has 1 to 31");
    refused("[agent]\nnode = n1\n[agnt] ; a comment\n", "[pool], [tenant NAME]");
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[tenant a]\n[pool]\n"), 0);
    ck_assert_str_eq(config.tenant[0].name, "default"); /* it is none without a setting */
}
END_TEST

START_TEST(a_wrong_value_says_what_it_must_be)
{
    refused("[pool]\ndcis = 33\n", ":2: dcis must be a number from 2 to 32, not \"33\"");
    refused("[pool]\nsq_slots = 100\n", "must be a power of two from 4 to 65536");
    refused("[pool]\nmr_lease = 5\n", "must be a duration such as 100ms");
    refused("[pool]\narena_bytes = much\n", "must be a size such as 2MiB");
    refused("[agent]\nnode = Has Spaces\n", "begin with a letter or digit");
    refused("[agent]\nsocket = relative\n", "must be an absolute path");
    refused("[agent]\nmetaservers = 10.0.0.1:7480\n",
            "must be a list of URLs without a path, such as http://");
    refused("[agent]\nmetaservers = http://10.0.0.1:7480/v1\n", "without a path");
    refused("[agent]\nlog_level = loud\n", "must be error, warn, info or debug");
    refused("[agent]\nlog_format = xml\n", "must be text or json");
    refused("[pool]\nname = Gold\n", "must be 1 to 31 of a-z");
    refused("[fabric]\ngid = 1.2.3\n", "must be a unicast IPv6 address");
    refused("[fabric]\ngid = ff02::1\n", "must be a unicast IPv6 address, not \"ff02::1\"");
}
END_TEST

START_TEST(the_service_of_the_device_is_read_and_bounded)
{
    ck_assert_int_eq(configure("[agent]\nnode = n\n"), 0);
    ck_assert(config.service.service_level == 0 && config.service.traffic_class == 0 &&
              config.service.flow_label == 0 && config.service.pkey_index == 0 &&
              config.service.mtu == 0);
    ck_assert_int_eq(configure("[agent]\nnode = n\n[fabric]\nservice_level = 3\n"
                               "traffic_class = 106\nflow_label = 1048575\npkey_index = 127\n"
                               "mtu = 1024\nudp_source_port = auto\n"),
                     0);
    ck_assert_uint_eq(config.service.service_level, 3);
    ck_assert_uint_eq(config.service.traffic_class, 106);
    ck_assert_uint_eq(config.service.flow_label, 0xfffff);
    ck_assert_uint_eq(config.service.pkey_index, 127);
    ck_assert_int_eq(config.service.mtu, IBV_MTU_1024);
    ck_assert_int_eq(configure("[agent]\nnode = n\n[fabric]\nudp_source_port = 50000\n"), 0);
    ck_assert_uint_eq(config.service.flow_label, 50000 - 0xc000);
    refused("[fabric]\nservice_level = 16\n", "service_level must be a number from 0 to 15");
    refused("[fabric]\ntraffic_class = 256\n", "traffic_class must be a number from 0 to 255");
    refused("[fabric]\nflow_label = 1048576\n", "must be auto or a number from 1 to 1048575");
    refused("[fabric]\nflow_label = 0\n", "must be auto or a number from 1 to 1048575");
    refused("[fabric]\nudp_source_port = 4791\n", "must be auto or a number from 49152 to 65535");
    refused("[fabric]\npkey_index = 0x1\n", "pkey_index must be a number from 0 to 65535");
    refused("[fabric]\nmtu = 1500\n", ":2: mtu must be auto, 256, 512, 1024, 2048 or 4096");
    refused("[fabric]\nflow_label = 5\nudp_source_port = 50000\n",
            ":3: udp_source_port must be auto beside flow_label, which says the same, not "
            "\"50000\"");
}
END_TEST

START_TEST(how_a_lane_polls_is_read_and_what_it_was_called_before_is_taken)
{
    ck_assert_int_eq(configure("[agent]\nnode = n1\n"), 0);
    ck_assert_int_eq(config.polling, POLLING_ADAPTIVE);
    ck_assert_uint_eq(config.max_retry, 500);
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\npolling = busy\nmax_retry = 120\n"), 0);
    ck_assert_int_eq(config.polling, POLLING_BUSY);
    ck_assert_uint_eq(config.max_retry, 120);
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\npolling = event\n"), 0);
    ck_assert_int_eq(config.polling, POLLING_EVENT);
    ck_assert_int_eq(config.window_policy, LANE_WINDOW_LADDER);
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\nwindow_policy = delay\n"), 0);
    ck_assert_int_eq(config.window_policy, LANE_WINDOW_DELAY);
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\nwindow_policy = static\n"), 0);
    ck_assert_int_eq(config.window_policy, LANE_WINDOW_STATIC);
    refused("[pool]\nwindow_policy = good\n",
            ":2: window_policy must be ladder, delay or static, not \"good\"");
    refused("[pool]\npolling = lazy\n",
            ":2: polling must be adaptive, busy or event, not \"lazy\"");
    refused("[pool]\nmax_retry = 50us\n", ":2: max_retry must be a number from 0 to 1048576");
    ck_assert(!config.says_spin);
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\nspin = 5ms\nmax_retry = 7\n"), 0);
    ck_assert(config.says_spin);
    ck_assert_uint_eq(config.max_retry, 7);
    refused("[agent]\nspin = 50us\n", ":2: there is no setting spin in [agent]");
}
END_TEST

START_TEST(a_key_that_is_set_twice_is_refused)
{
    refused("[pool]\ndcis = 4\ndcis = 5\n", ":3: dcis is set a second time");
    refused("[tenant a]\nmrs = 4\nmrs = 5\n", ":3: mrs is set a second time");
}
END_TEST

START_TEST(what_is_no_setting_at_all_is_refused)
{
    refused("[pool]\nnonsense\n", ":2: neither a [section] nor a key = value");
}
END_TEST

START_TEST(settings_that_contradict_each_other_are_refused)
{
    refused("[agent]\nnode = n\n[pool]\ncq_slots = 16\n",
            "max_inflight 256 needs as many cq_slots");
    refused("[agent]\nnode = n\nsocket = /a\nadmin_socket = /a\n", "must differ");
}
END_TEST

START_TEST(a_missing_file_is_a_sentence)
{
    ck_assert_int_eq(agent_config_read("/nowhere/at/all", &config, &err), -ENOENT);
    ck_assert(strstr(err.text, "/nowhere/at/all cannot be read") != NULL);
}
END_TEST

START_TEST(metaservers_are_taken_in_their_order)
{
    ck_assert_int_eq(configure("[agent]\nnode = n\nmetaservers = http://a:1/ , http://b:2\n"), 0);
    ck_assert_uint_eq(config.metaservers, 2);
    ck_assert_str_eq(config.metaserver[0], "http://a:1");
    ck_assert_str_eq(config.metaserver[1], "http://b:2");
}
END_TEST

START_TEST(lists_may_be_as_long_as_they_can_be)
{
    char text[8192] = "[agent]\nnode = n\nmetaservers = http://a-rather-long-name.example.org:7480";
    for (int i = 1; i < AGENT_METASERVERS; i++)
        append(text, ", http://a-rather-long-name.example.org:7480");
    append(text, "\n[tenant many]\nuids = 1000000000-1000000001");
    for (int i = 1; i < AGENT_UID_RANGES; i++)
        append(text, ", 1000000000-1000000001");
    ck_assert_int_eq(configure(text), 0);
    ck_assert_uint_eq(config.metaservers, AGENT_METASERVERS);
    ck_assert_uint_eq(config.tenant[0].uid_ranges, AGENT_UID_RANGES);
    memset(text, ' ', 5000);
    memcpy(text, "[agent]\nnode =", 14);
    text[5000] = '\0';
    refused(text, ":2: a line has at most 4093 bytes");
}
END_TEST

static int tenant_of(uid_t uid)
{
    static struct agent_tenants tenants;
    agent_tenants_init(&tenants, &config);
    return agent_tenants_find(&tenants, uid);
}

START_TEST(a_uid_finds_its_tenant)
{
    ck_assert_int_eq(configure("[agent]\nnode = n\n[tenant red]\nuids = 1000, 2000-2999\n"
                               "memory = 1MiB\n[tenant blue]\nuids = 1001\n"),
                     0);
    ck_assert_int_eq(tenant_of(1000), 0);
    ck_assert_int_eq(tenant_of(2000), 0);
    ck_assert_int_eq(tenant_of(2999), 0);
    ck_assert_int_eq(tenant_of(1001), 1);
    ck_assert_int_eq(tenant_of(3000), -EACCES);
    ck_assert_int_eq(tenant_of(0), -EACCES);
    ck_assert_uint_eq(config.tenant[0].memory, 1 << 20);
    ck_assert_uint_ne(config.tenant[0].id, config.tenant[1].id);
    ck_assert_int_eq(configure("[agent]\nnode = n\n[tenant red]\nuids = 1000, root\n"), 0);
    ck_assert_int_eq(tenant_of(0), 0);
}
END_TEST

START_TEST(a_tenant_has_the_same_number_wherever_it_stands)
{
    ck_assert_int_eq(configure("[agent]\nnode = n\n[tenant red]\nuids = 1\n"), 0);
    uint32_t id = config.tenant[0].id;
    ck_assert_uint_ne(id, 0);
    ck_assert_int_eq(configure("[agent]\nnode = n\n[tenant a]\nuids=2\n[tenant red]\nuids = 1\n"),
                     0);
    ck_assert_uint_eq(config.tenant[1].id, id);
}
END_TEST

START_TEST(without_tenants_our_own_user_is_one)
{
    ck_assert_int_eq(configure("[agent]\nnode = n\n"), 0);
    ck_assert_int_eq(tenant_of(geteuid()), 0);
    ck_assert_int_eq(tenant_of(geteuid() + 1), -EACCES);
}
END_TEST

START_TEST(malformed_tenants_are_refused)
{
    refused("[tenant a b]\nuids = 1\n", ":1: a tenant's name has 1 to 31 of a-z");
    refused("[tenant Web]\nuids = 1\n", "as at metaservers");
    refused("[tenant web_1]\nuids = 1\n", "as at metaservers");
    refused("[tenant .web]\nuids = 1\n", "as at metaservers");
    refused("[tenant a]\nuids = no-such-user\n",
            ":2: uids must name users that this host has, or uids, such as www-data, 1000, "
            "2000-2999, not \"no-such-user\"");
    refused("[tenant a]\nuids = 9-3\n",
            ":2: uids must have ranges that begin with their least uid, such as 2000-2999");
    refused("[tenant a]\nuids = 9-x\n", ":2: uids must be a list of users");
    refused("[tenant a]\nuids = 7\n[tenant b]\nuids = 5-9\n",
            "uid 7 is in `uids` of both [tenant a] and [tenant b]");
}
END_TEST

#define HASH_A "ab53a2911ddf9b4817ac01ddcd3d975fabbba9f5ba6ad57d2e7b9d5fbbbb1f80"
#define HASH_B "0000000000000000000000000000000000000000000000000000000000000001"

START_TEST(a_tenant_may_have_tokens_and_a_socket_of_its_own)
{
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[tenant a]\ntoken_sha256 = " HASH_A ", " HASH_B
                               "\nsocket = /run/a.sock\nsocket_mode = 0600\n"
                               "[tenant b]\nuids = 5\n"),
                     0);
    const struct agent_tenant_config *a = &config.tenant[0], *b = &config.tenant[1];
    ck_assert_uint_eq(a->uid_ranges, 0);
    ck_assert_uint_eq(a->tokens, 2);
    ck_assert_uint_eq(a->token[0].sha256[0], 0xab);
    ck_assert_uint_eq(a->token[1].sha256[31], 1);
    ck_assert_uint_eq(a->token[1].expires_ms, 0);
    ck_assert_str_eq(a->socket, "/run/a.sock");
    ck_assert_uint_eq(a->socket_mode, 0600);
    ck_assert_uint_eq(b->tokens, 0);
    ck_assert_str_eq(b->socket, "");
    ck_assert_uint_eq(b->socket_mode, 0660);
}
END_TEST

START_TEST(tokens_and_sockets_of_tenants_are_checked)
{
    static const char *const modes[] = {"",     "8",  "066",  "0777", "0668",
                                        "1666", "01", "-660", "a66"};
    char text[256], many[8192] = "[tenant a]\ntoken_sha256 = ";
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        snprintf(text, sizeof text, "[tenant a]\nsocket_mode = %s\n", modes[i]);
        if (strcmp(modes[i], "066") == 0)
            ck_assert_int_eq(configure(text), 0);
        else
            refused(text, "must be a mode such as 0660");
    }
    refused("[tenant a]\nsocket = a.sock\n", "must be an absolute path");
    refused("[agent]\nsocket = /s\n[tenant a]\nsocket = /s\n", "is another one's too");
    refused("[tenant a]\nsocket = /s\n[tenant b]\nsocket = /s\n", "socket of [tenant b]");
    refused("[tenant a]\nsocket = /run/kedge/agent-admin.sock\n", "is another one's too");
    refused("[tenant a]\ntoken_sha256 = " HASH_A "\n[tenant b]\ntoken_sha256 = " HASH_A "\n",
            "[tenant a] and [tenant b]");
    /* A token that stands there by mistake goes into no log. */
    refused("[tenant a]\ntoken_sha256 = kedge_web_secret\n", "sha256sum");
    ck_assert_ptr_null(strstr(err.text, "secret"));
    for (int i = 0; i < AGENT_TOKENS; i++)
        append(many, i == 0 ? HASH_A : "," HASH_A);
    ck_assert_int_eq(configure(many), 0);
    ck_assert_uint_eq(config.tenant[0].tokens, AGENT_TOKENS);
    append(many, "," HASH_B);
    refused(many, "has at most 16 tokens");
}
END_TEST

START_TEST(of_another_file_windows_alone_come_into_force)
{
    static struct agent_config fresh;
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\nwindow_bytes = 2MiB\nwindow_ops = 7\n"
                               "[tenant a]\nwindow_ops = 3\n"),
                     0);
    ck_assert_uint_eq(config.window.bytes, 2 << 20);
    ck_assert_uint_eq(config.window.ops, 7);
    ck_assert_uint_eq(config.destination_window.bytes, 0);
    ck_assert_uint_eq(config.tenant[0].window.ops, 3);
    fresh = config;
    ck_assert(!agent_config_update(&fresh, &config));
    ck_assert_int_eq(configure("[agent]\nnode = n1\n[pool]\ndestination_window_ops = 9\n"
                               "[tenant a]\nwindow_bytes = 64KiB\n"),
                     0);
    ck_assert(!agent_config_update(&fresh, &config));
    ck_assert_uint_eq(fresh.window.bytes, 0);
    ck_assert_uint_eq(fresh.destination_window.ops, 9);
    ck_assert_uint_eq(fresh.tenant[0].window.ops, 0);
    ck_assert_uint_eq(fresh.tenant[0].window.bytes, 65536);
    ck_assert_int_eq(configure("[agent]\nnode = n2\n[pool]\nwindow_ops = 1\n[tenant b]\n"), 0);
    ck_assert(agent_config_update(&fresh, &config));
    ck_assert_uint_eq(fresh.window.ops, 1);
    ck_assert_str_eq(fresh.node, "n1");
    ck_assert_str_eq(fresh.tenant[0].name, "a");
    refused("[pool]\nwindow_bytes = much\n", "window_bytes must be a size");
    refused("[tenant a]\nwindow_ops = -1\n", "window_ops must be a number");
}
END_TEST

/* Manual pages are held against the table: each setting has an item, which has its range. */
START_TEST(the_man_page_has_each_setting_with_its_range)
{
    char *page = read_source("docs/man/kedge-agent.conf.5");
    struct base_setting s;
    size_t i = 0;
    for (; agent_config_setting(i, &s); i++) {
        char heading[64];
        snprintf(heading, sizeof heading, "\n.Ss Section %s\n", s.section);
        char *section = cut_page_section(page, heading), *item = cut_item(section, s.key);
        ck_assert_msg(item != NULL, "kedge-agent.conf.5 has no %s in %s", s.key, s.section);
        ck_assert_msg(strstr(item, s.range) != NULL, "kedge-agent.conf.5: %s is %s: %s", s.key,
                      s.range, item);
        free(item);
        free(section);
    }
    ck_assert_uint_gt(i, 15);
    free(page);
}
END_TEST

/* What operators say of a pool's queue pairs and what a file says of a device's is one thing. */
START_TEST(settings_of_service_have_the_ranges_of_the_fields_of_pools)
{
#define KEY(key, initial, help) key,
    static const char *const keys[] = {FAB_SERVICE_SETTINGS(KEY)};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct resource_field *f =
            resource_field_find(resource_table(RESOURCE_POOL), keys[i]);
        ck_assert_msg(f != NULL, "%s", keys[i]);
        const uint64_t step = f->type == FIELD_POWER ? f->min : 1;
        const uint64_t values[] = {f->min, f->max, f->min - step, f->max + step};
        for (size_t k = 0; k < 4; k++) {
            struct fab_service service = {0};
            char value[24];
            snprintf(value, sizeof value, "%" PRIu64, values[k]);
            const int status = fab_service_set(&service, keys[i], value, &err);
            ck_assert_msg((status == 0) == (k < 2), "%s = %s: %s", keys[i], value, err.text);
        }
    }
}
END_TEST

static void says(const char *path, const char *format, uint64_t number)
{
    char text[80], *page = read_source(path);
    snprintf(text, sizeof text, format, (unsigned long long)number);
    ck_assert_msg(strstr(page, text) != NULL, "%s does not say: %s", path, text);
    free(page);
}

START_TEST(what_is_said_of_open_files_is_what_the_agent_wants)
{
    static const char man[] = "docs/man/kedge-agent.conf.5",
                      unit[] = "ops/systemd/kedge-agentd.service.in";
    enum { ALLOWED = 65536 };
    const uint64_t each = FDS_OF(1) - FDS_OF(0), beside = FDS_OF(0);
    ck_assert_int_eq(configure(""), 0);
    ck_assert_uint_eq(FDS_OF(config.max_sessions), CTL_FILES_WANTED);
    says(man, "Each needs %llu descriptors", each);
    says(man, "and all together %llu more", beside);
    says(man, "The unit allows %llu", ALLOWED);
    says(man, "enough for %llu;", (ALLOWED - beside) / each);
    says(unit, "LimitNOFILE=%llu\n", ALLOWED);
    says(unit, "max_sessions = %llu ", (ALLOWED - beside) / each);
    says(unit, "it takes %llu.", CTL_FILES_WANTED);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_empty_file_means_the_defaults)                                                            \
    T(an_unknown_key_is_named_with_its_line)                                                       \
    T(a_section_that_there_is_not_is_named_also_where_it_is_empty)                                 \
    T(a_wrong_value_says_what_it_must_be)                                                          \
    T(the_service_of_the_device_is_read_and_bounded)                                               \
    T(how_a_lane_polls_is_read_and_what_it_was_called_before_is_taken)                             \
    T(a_key_that_is_set_twice_is_refused)                                                          \
    T(what_is_no_setting_at_all_is_refused)                                                        \
    T(settings_that_contradict_each_other_are_refused)                                             \
    T(a_missing_file_is_a_sentence)                                                                \
    T(metaservers_are_taken_in_their_order)                                                        \
    T(lists_may_be_as_long_as_they_can_be)                                                         \
    T(a_uid_finds_its_tenant)                                                                      \
    T(a_tenant_has_the_same_number_wherever_it_stands)                                             \
    T(without_tenants_our_own_user_is_one)                                                         \
    T(malformed_tenants_are_refused)                                                               \
    T(a_tenant_may_have_tokens_and_a_socket_of_its_own)                                            \
    T(tokens_and_sockets_of_tenants_are_checked)                                                   \
    T(the_man_page_has_each_setting_with_its_range)                                                \
    T(what_is_said_of_open_files_is_what_the_agent_wants)                                          \
    T(settings_of_service_have_the_ranges_of_the_fields_of_pools)                                  \
    T(of_another_file_windows_alone_come_into_force)
KEDGE_CHECK_MAIN("agent.daemon.config_file", TESTS)
