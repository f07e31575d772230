/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/checks.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/table.h"

enum { MAX_CHECKS = 16 };
static const char *const levels[] = {"ok", "warn", "fail"};

/* Servers that do not run yet are no fault of the host. */
static void reach(struct ctl_check *c, const char *name, const char *where, int status,
                  struct kedge_http_result *result, const struct kedge_errbuf *err)
{
    *c = (struct ctl_check){.name = name, .level = status == 0 ? CTL_OK : CTL_WARN};
    if (status == 0) {
        snprintf(c->found, sizeof c->found, "%.200s is ready", where);
        kedge_http_result_fini(result);
        return;
    }
    snprintf(c->found, sizeof c->found, "%.200s is not ready", where);
    snprintf(c->advice, sizeof c->advice, "%s", err->text);
}

static void print_json(const struct ctl_check *check, size_t count)
{
    struct kedge_text t;
    kedge_text_init(&t, 1 << 16);
    kedge_text_printf(&t, "{\"checks\":[");
    for (size_t i = 0; i < count; i++) {
        kedge_text_printf(&t, "%s{\"check\":", i > 0 ? "," : "");
        kedge_text_json(&t, check[i].name);
        kedge_text_printf(&t, ",\"result\":\"%s\",\"found\":", levels[check[i].level]);
        kedge_text_json(&t, check[i].found);
        kedge_text_printf(&t, ",\"advice\":");
        kedge_text_json(&t, check[i].advice);
        kedge_text_printf(&t, "}");
    }
    kedge_text_printf(&t, "]}");
    puts(kedge_text_str(&t));
    kedge_text_fini(&t);
}

static int print_table(const struct ctl_check *check, size_t count)
{
    static const char *const headings[] = {"CHECK", "RESULT", "FOUND", "WHAT TO DO"};
    struct ctl_table *table;
    int status = ctl_table_new(headings, 4, &table);
    if (status != 0)
        return status;
    for (size_t i = 0; i < count; i++)
        ctl_table_row(table, (const char *const[]){check[i].name, levels[check[i].level],
                                                   check[i].found, check[i].advice});
    status = ctl_table_print(table);
    ctl_table_free(table);
    return status;
}

int ctl_doctor(const struct ctl_options *o, struct kedge_errbuf *err)
{
    static struct ctl_check check[MAX_CHECKS];
    struct kedge_http_result result;
    struct kedge_errbuf why = {.text = ""};
    size_t count = ctl_checks_host(check, MAX_CHECKS - 2), failed = 0;
    int status = ctl_fetch_agent(o, "/readyz", &result, &why);
    reach(&check[count++], "agent", o->agent_socket, status, &result, &why);
    status = ctl_fetch_server(o, "/readyz", &result, &why);
    reach(&check[count++], "metaserver", o->server, status, &result, &why);
    status = 0;
    if (o->json)
        print_json(check, count);
    else
        status = print_table(check, count);
    if (status != 0)
        return kedge_err(err, status, "printing failed: %s", strerror(-status));
    for (size_t i = 0; i < count; i++)
        failed += check[i].level == CTL_FAIL;
    return failed == 0 ? 0
                       : kedge_err(err, -EIO, "%zu of %zu checks failed: do what their rows say",
                                   failed, count);
}
