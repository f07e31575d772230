/* SPDX-License-Identifier: Apache-2.0 */
/* What --check-config says of how an agent will be known to its metaservers. */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "control/config.h"
#include "start_check.h"

START_TEST(it_is_said_where_neither_token_nor_certificate_is_shown)
{
    static const struct {
        const char *url, *token, *cert;
        bool plain;
        const char *says; /* NULL: nothing */
    } at[] = {
        {"http://192.0.2.2:7480", "/t", "", false, "show no token to http://192.0.2.2:7480"},
        {"http://192.0.2.2:7480", "/t", "", true, NULL},
        {"http://127.0.0.1:7480", "/t", "", false, NULL},
        {"https://192.0.2.2:7480", "/t", "", false, NULL},
        {"https://192.0.2.2:7480", "", "/c", false, NULL},
        {"http://192.0.2.2:7480", "", "/c", false, "show no certificate to http://192.0.2.2"},
        {"https://192.0.2.2:7480", "", "", false, "access = open: token_file is not set"},
    };
    static struct agent_config c;
    struct base_errbuf why;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        c = (struct agent_config){.metaservers = 2, .allow_plain_tokens = at[i].plain};
        snprintf(c.metaserver[0], sizeof c.metaserver[0], "https://good:1");
        snprintf(c.metaserver[1], sizeof c.metaserver[1], "%s", at[i].url);
        snprintf(c.token_file, sizeof c.token_file, "%s", at[i].token);
        snprintf(c.cert_file, sizeof c.cert_file, "%s", at[i].cert);
        ck_assert_int_eq(agentd_start_check_shown(&c, &why), at[i].says == NULL);
        if (at[i].says != NULL)
            ck_assert_msg(strstr(why.text, at[i].says) != NULL, "%s", why.text);
    }
    c.metaservers = 0;
    ck_assert(agentd_start_check_shown(&c, &why));
}
END_TEST

START_TEST(a_certificate_is_held_to_node_and_gid_as_metaservers_hold_it)
{
    static const uint8_t gid[16] = {0xfd, [15] = 1}, other[16] = {0xfd, [15] = 2};
    static const struct {
        const char *uri, *token;
        const uint8_t *ip;   /* it lists this one; NULL: none */
        const uint8_t *asks; /* gid of the settings; NULL: the provider chooses */
        const char *says;    /* NULL: nothing */
    } at[] = {
        {"kedge://node/n1", "", gid, gid, NULL},
        {"kedge://node/n1", "", other, NULL, NULL},
        {"kedge://node/n1", "/t", gid, gid, NULL},
        {"kedge://node/n1", "/t", NULL, gid, NULL},
        {"", "/t", NULL, gid, NULL},
        {"", "", gid, gid, "names no node: put one there with the URI kedge://node/n1"},
        {"kedge://host/n1", "", gid, gid, "names no node by its URI kedge://host/n1: put one"},
        {"kedge://host/n1", "/t", gid, gid, "names no node by its URI kedge://host/n1: put one"},
        {"kedge://node/N1", "", gid, gid, "names no node by its URI kedge://node/N1"},
        {"kedge://node/n2", "", gid, gid, "is for node n2, and not for n1: put one"},
        {"kedge://node/n2", "/t", NULL, NULL, "is for node n2, and not for n1"},
        {"kedge://node/n1", "", other, gid, "does not list the GID fd00::1: put one"},
        {"kedge://node/n1", "/t", other, gid, "does not list the GID fd00::1"},
        {"kedge://node/n1", "", NULL, gid, "does not list the GID fd00::1, nor any"},
    };
    static struct agent_config c;
    struct base_errbuf why;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        struct http_certificate shown = {.ips = at[i].ip != NULL};
        c = (struct agent_config){.node = "n1", .cert_file = "/c"};
        snprintf(shown.uri, sizeof shown.uri, "%s", at[i].uri);
        snprintf(c.token_file, sizeof c.token_file, "%s", at[i].token);
        if (at[i].ip != NULL)
            memcpy(shown.ip[0], at[i].ip, 16);
        if (at[i].asks != NULL)
            memcpy(c.gid, at[i].asks, 16);
        why.text[0] = '\0';
        ck_assert_msg(agentd_start_check_names(&c, &shown, &why) == (at[i].says == NULL), "%zu: %s",
                      i, why.text);
        if (at[i].says != NULL)
            ck_assert_msg(strstr(why.text, at[i].says) != NULL, "%s", why.text);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_said_where_neither_token_nor_certificate_is_shown)                                     \
    T(a_certificate_is_held_to_node_and_gid_as_metaservers_hold_it)
KEDGE_CHECK_MAIN("agent start check", TESTS)
