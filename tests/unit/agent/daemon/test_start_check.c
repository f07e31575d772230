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

#define TESTS(T) T(it_is_said_where_neither_token_nor_certificate_is_shown)
KEDGE_CHECK_MAIN("agent start check", TESTS)
