/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../man_page.h"
#include "metaserver/config_file.h"
#include "open_store.h"

static int configure(const char *text, struct meta_config *out, struct base_errbuf *err)
{
    char path[] = "/tmp/kedge-config-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    err->text[0] = '\0';
    int status = meta_config_read(path, out, err);
    unlink(path);
    return status;
}

START_TEST(settings_have_defaults_and_are_read)
{
    struct meta_config c;
    struct base_errbuf err;
    ck_assert_int_eq(meta_config_read(NULL, &c, &err), 0);
    ck_assert_str_eq(c.listen, "127.0.0.1:7480");
    ck_assert_uint_eq(c.max_endpoints, 16384);
    ck_assert_uint_eq(c.node_lease_ns, 10000000000ull);
    ck_assert_int_eq(
        configure("# a comment\n[metaserver]\nlisten = [::1]:0\nnode_lease=250ms ; short\n"
                  "\n[fabric]\ngid = fd00::7\ntraffic_class = 104\n",
                  &c, &err),
        0);
    ck_assert_str_eq(c.listen, "[::1]:0");
    ck_assert_uint_eq(c.node_lease_ns, 250000000);
    ck_assert_uint_eq(c.gid[15], 7);
    ck_assert_uint_eq(c.service.traffic_class, 104);
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[metaserver]\nlisten = a\nmax_endpoint = 5\n",
         ":3: there is no setting max_endpoint in [metaserver]"},
        {"[fabric]\nlisten = a\n",
         ":2: there is no setting listen in [fabric]: it is one of [metaserver]"},
        {"listen = a\n", ":1: listen stands before the first section: it is one of [metaserver]"},
        {"[metaserver]\n[fabrik]\n",
         ":2: there is no section [fabrik]: those that there are: [metaserver], [store], [fabric]"},
        {"[metaserver]\nmax_nodes = 0\n",
         ":2: max_nodes must be a number from 1 to 16777216, not \"0\""},
        {"[metaserver]\nnode_lease = 10\n", ":2: node_lease must be a duration such as 10s"},
        {"[metaserver]\nnode_lease = 1ms\n", "from 100 ms"},
        {"[metaserver]\n\n\nlog_level = loud\n",
         ":4: log_level must be error, warn, info or debug"},
        {"[metaserver]\nlog_format = xml\n", ":2: log_format must be text or json"},
        {"[metaserver]\nlisten=a\nlisten=b\n", ":3: listen is set a second time"},
        {"[fabric]\nservice_level = 16\n", ":2: service_level must be a number from 0 to 15"},
        {"[fabric]\ngid = x\n", ":2: gid must be a unicast IPv6 address"},
        {"[fabric]\ngid = ff02::1\n", ":2: gid must be a unicast IPv6 address"},
        {"[metaserver]\nrubbish\n", ":2: "},
        {"[metaserver\n", ":1: "},
        {"[metaserver]\nlisten =\nadmin_socket =\n", "nobody could connect"},
        {"[metaserver]\naccess = maybe\n", ":2: access must be tokens or open, not \"maybe\""},
        {"[metaserver]\naccess =\n", ":2: access must be tokens or open, not \"\""},
        {"[metaserver]\naccess = auto\n",
         ":2: access must be tokens or open (open is what auto was on loopback: every process that "
         "reaches the port may do everything), not \"auto\""},
    };
    struct meta_config c;
    struct base_errbuf err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(configure(cases[i].text, &c, &err) == -EINVAL, "%s", cases[i].text);
        ck_assert_msg(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].text, err.text);
    }
    char longest[400] = "[metaserver]\nlisten = ";
    memset(longest + strlen(longest), 'x', 350);
    ck_assert_int_eq(configure(longest, &c, &err), -EINVAL);
    ck_assert_int_eq(meta_config_read("/nonexistent", &c, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent"));
}
END_TEST

START_TEST(tokens_are_needed_on_every_address_unless_it_is_said_to_be_open)
{
    static const struct {
        const char *text;
        bool tokens_needed;
    } cases[] = {{"", true},
                 {"[metaserver]\nlisten =\n", true},
                 {"[metaserver]\nlisten = 127.0.0.9:0\n", true},
                 {"[metaserver]\nlisten = localhost:0\n", true},
                 {"[metaserver]\nlisten = [::1]:0\n", true},
                 {"[metaserver]\nlisten = 0.0.0.0:7480\n", true},
                 {"[metaserver]\naccess = tokens\n", true},
                 {"[metaserver]\naccess = open\n", false},
                 {"[metaserver]\naccess = tokens\nlisten = 10.0.0.7:7480\n", true},
                 {"[metaserver]\naccess = open\nlisten = 10.0.0.7:7480\n", false}};
    struct meta_config c;
    struct base_errbuf err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(configure(cases[i].text, &c, &err) == 0, "%s: %s", cases[i].text, err.text);
        ck_assert_msg(c.tokens_needed == cases[i].tokens_needed, "%s", cases[i].text);
    }
}
END_TEST

/* Whatever there is of them. */
START_TEST(one_stranger_does_not_have_all_connections_of_strangers)
{
    static const unsigned all[] = {8, 16, 600, 4096, 65536};
    struct meta_config c;
    struct base_errbuf err;
    char text[128];
    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        snprintf(text, sizeof text, "[metaserver]\nconnections = %u\naccess = %s\n", all[i / 2],
                 i % 2 == 0 ? "tokens" : "open");
        ck_assert_int_eq(configure(text, &c, &err), 0);
        const unsigned anonymous = meta_config_anonymous(&c), of_one = meta_config_of_address(&c);
        ck_assert_uint_eq(anonymous, i % 2 == 0 ? all[i / 2] / 4 : all[i / 2]);
        ck_assert_uint_ge(of_one, 1);
        ck_assert_uint_le(2 * of_one, anonymous);
    }
    ck_assert_int_eq(configure("[metaserver]\nclient_connections = 900\n", &c, &err), 0);
    ck_assert_uint_eq(meta_config_of_address(&c), 900); /* as it is set */
}
END_TEST

START_TEST(a_setting_may_be_as_long_as_it_can_be)
{
    struct meta_config c;
    struct base_errbuf err;
    char text[8192] = "[metaserver]\ndata_dir = /";
    size_t begin = strlen(text), length = META_CONFIG_TEXT_BYTES - 2;
    memset(text + begin, 'd', length);
    text[begin + length] = '\0';
    ck_assert_int_eq(configure(text, &c, &err), 0);
    ck_assert_uint_eq(strlen(c.data_dir), length + 1);
    memset(text + begin, ' ', 5000);
    text[begin + 5000] = '\0';
    ck_assert_int_eq(configure(text, &c, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, ":2: a line has at most 4093 bytes"));
}
END_TEST

START_TEST(a_store_in_etcd_is_looked_through_before_etcd_is_asked)
{
    static const char *const wrong[][2] = {
        {"member = a\n", "member in [store] is of etcd alone: set kind = etcd"},
        {"endpoints = http://h:1\nkind = sqlite\n", "endpoints in [store] is of etcd alone"},
        {"kind = etcd\nmember = META_2\n", "not \"META_2\""},
        {"kind = etcd\nendpoints = 127.0.0.1:2379\n", "\"127.0.0.1:2379\" is no endpoint"},
        {"kind = etcd\nendpoints = https://h/v3\n", "is no endpoint of etcd"},
        {"kind = etcd\nuser = u\n", "user and password_file in [store]"},
        {"kind = etcd\ncert_file = /c\n", "cert_file and key_file in [store]"},
        {"kind = etcd\nuser = u\npassword_file = /nowhere/p\n", "/nowhere/p"},
        {"kind = etcd\ntrusted_ca_file = /nowhere/ca\n", "trusted_ca_file in [store] cannot"}};
    struct meta_config c;
    struct base_errbuf err;
    char text[256];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "[store]\n%s", wrong[i][0]);
        int status = configure(text, &c, &err);
        if (status == 0)
            status = meta_daemon_check_store(&c, &err);
        ck_assert_msg(status < 0, "%s is taken", wrong[i][0]);
        ck_assert_msg(strstr(err.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0], err.text);
    }
    ck_assert_int_eq(configure("[store]\nmember = meta-2\nkind = etcd\n", &c, &err), 0);
    ck_assert_int_eq(meta_daemon_check_store(&c, &err), 0);
    ck_assert_int_eq(configure("[store]\nkind = sqlite\n", &c, &err), 0);
    ck_assert_int_eq(meta_daemon_check_store(&c, &err), 0);
}
END_TEST

/* Manual pages are held against the table: each setting has an item, which has its range. */
START_TEST(the_man_page_has_each_setting_with_its_range)
{
    char *page = read_source("docs/man/kedge-metad.8");
    struct base_setting s;
    size_t i = 0;
    for (; meta_config_setting(i, &s); i++) {
        char heading[64];
        snprintf(heading, sizeof heading, "\n.Ss Section %s\n", s.section);
        char *section = cut_page_section(page, heading), *item = cut_item(section, s.key);
        ck_assert_msg(item != NULL, "kedge-metad.8 has no %s in %s", s.key, s.section);
        ck_assert_msg(strstr(item, s.range) != NULL, "kedge-metad.8: %s is %s: %s", s.key, s.range,
                      item);
        free(item);
        free(section);
    }
    ck_assert_uint_gt(i, 15);
    free(page);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(settings_have_defaults_and_are_read)                                                         \
    T(what_is_wrong_is_named_with_its_line)                                                        \
    T(tokens_are_needed_on_every_address_unless_it_is_said_to_be_open)                             \
    T(the_man_page_has_each_setting_with_its_range)                                                \
    T(one_stranger_does_not_have_all_connections_of_strangers)                                     \
    T(a_setting_may_be_as_long_as_it_can_be)                                                       \
    T(a_store_in_etcd_is_looked_through_before_etcd_is_asked)
KEDGE_CHECK_MAIN("metaserver config", TESTS)
