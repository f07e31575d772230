/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's own Unix socket, for its operator alone (mode 0600). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/version.h"
#include "admin_counters.h"
#include "fd_watch.h"
#include "leases.h"

enum { ANSWER_MAX = 1 << 20 };

enum { READY_WHY_BYTES = 800 };

void admin_refuse_method(struct http_request *request, const char *allow)
{
    struct base_text t;
    char detail[64];
    snprintf(detail, sizeof detail, "here it can be one of %s", allow);
    base_text_init(&t, 512);
    http_problem(&t, 405, "method not allowed", detail);
    struct http_response response = {.status = 405,
                                     .content_type = HTTP_PROBLEM_TYPE,
                                     .body = base_text_str(&t),
                                     .body_length = t.length,
                                     .headers = {{"Allow", allow}}};
    (void)http_reply(request, &response);
    base_text_fini(&t);
}

/* Why the nearest metaserver does not have the pool: "" before it was asked. */
static const char *say_nearest(const struct pool *p)
{
    return p != NULL && p->config->metaservers > 0 ? p->registration[0].why : "";
}

/* Whether workers are served, and what there is to say about it; "": all is well. Once registered,
 * an agent that has lost all metaservers serves its workers as before, but for nodes that it has
 * not met: to be taken out of service for that would make it worse. */
static bool is_ready(const struct agent *a, char why[READY_WHY_BYTES])
{
    const struct pool *own = a->pools[0], *missed = registrations_missed(a);
    const bool has_own = own != NULL && registrations_of(own) > 0;
    const char *nearest = say_nearest(has_own && missed != NULL ? missed : own);
    const char *from = nearest[0] != '\0' ? a->config.metaserver[0] : "";
    snprintf(why, READY_WHY_BYTES, "%s", address_why(a));
    if (why[0] != '\0')
        return a->was_registered;
    if (!a->was_registered)
        snprintf(why, READY_WHY_BYTES,
                 "no metaserver has had this node since its agent began: workers attach, and find "
                 "no other nodes%s%.100s%s%.400s; see rdmactl agent status",
                 from[0] != '\0' ? ": " : "", from, from[0] != '\0' ? ": " : "", nearest);
    else if (!has_own)
        snprintf(why, READY_WHY_BYTES,
                 "no metaserver has this node any more: workers attach, and reach the nodes that "
                 "are known here%s%.100s%s%.400s; see rdmactl agent status",
                 from[0] != '\0' ? ": " : "", from, from[0] != '\0' ? ": " : "", nearest);
    else if (missed != NULL)
        snprintf(
            why, READY_WHY_BYTES,
            "no metaserver has pool %.63s of this node: its workers attach, and reach the nodes "
            "that it knows: %.100s: %.400s; see rdmactl agent status",
            missed->name, from, nearest);
    else
        clock_why(a, why, READY_WHY_BYTES);
    return a->was_registered;
}

/* 200 with a "why" where something is amiss; 503 with the same as its detail. */
static void reply_ready(const struct agent *a, struct http_request *request, struct base_text *t)
{
    char why[READY_WHY_BYTES];
    if (!is_ready(a, why)) {
        http_reply_error(request, EHOSTUNREACH, why);
        return;
    }
    base_json_object(t, NULL);
    base_json_string(t, "status", "ok");
    base_json_u64(t, "metaservers", registrations_done(a));
    if (why[0] != '\0')
        base_json_string(t, "why", why);
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
    struct http_response response = {
        .status = 200, .body = base_text_str(t), .body_length = t->length};
    (void)http_reply(request, &response);
}

static enum http_verdict handle_request(void *user, struct http_request *request)
{
    struct agent *a = user;
    struct http_response response = {.status = 200};
    struct base_text *t = &a->answer;
    base_text_reset(t);
    enum http_verdict verdict;
    if (leases_handle(a, request, &verdict))
        return verdict;
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        admin_refuse_method(request, "GET, HEAD");
        return HTTP_REPLIED;
    }
    if (strcmp(request->path, "/v1/status") == 0) {
        status_print(a, t);
    } else if (strcmp(request->path, "/metrics") == 0) {
        metrics_print(a, t);
        response.content_type = BASE_METRICS_TYPE;
    } else if (strcmp(request->path, "/version") == 0) {
        base_json_object(t, NULL);
        base_json_string(t, "version", KEDGE_VERSION);
        base_json_string(t, "commit", base_version_commit());
        base_json_object_end(t);
        base_text_append(t, "\n", 1);
    } else if (strcmp(request->path, "/readyz") == 0) {
        reply_ready(a, request, t);
        return HTTP_REPLIED;
    } else if (strcmp(request->path, "/healthz") == 0) {
        base_json_object(t, NULL);
        base_json_string(t, "status", "ok");
        base_json_object_end(t);
        base_text_append(t, "\n", 1);
    } else {
        http_reply_error(request, ENOENT,
                         "there are /v1/status, /v1/workers, /v1/leases, /metrics, /healthz, "
                         "/readyz and /version");
        return HTTP_REPLIED;
    }
    if (t->error != 0) {
        http_reply_error(request, t->error, NULL);
        return HTTP_REPLIED;
    }
    response.body = base_text_str(t);
    response.body_length = t->length;
    (void)http_reply(request, &response);
    return HTTP_REPLIED;
}

static void on_admin(uv_poll_t *poll, int polled, int events)
{
    struct agent *a = poll->data;
    (void)polled, (void)events;
    http_server_run(a->admin);
}

int admin_listen(struct agent *a, struct base_errbuf *err)
{
    struct http_server_config config = {.unix_path = a->config.admin_socket,
                                        .program = "kedge-agentd",
                                        .setting = "`admin_socket`",
                                        .connections = ADMIN_CONNECTIONS,
                                        .handle = handle_request,
                                        .abandon = leases_abandon,
                                        .user = a};
    base_text_init(&a->answer, ANSWER_MAX);
    int status = http_server_new(&config, &a->admin, err);
    if (status != 0)
        return status;
    a->admin_poll.data = a;
    status = fd_watch(&a->loop, &a->admin_poll, http_server_fd(a->admin), on_admin, err);
    if (status != 0) {
        http_server_free(a->admin);
        a->admin = NULL;
    }
    return status;
}

void admin_stop(struct agent *a)
{
    base_text_fini(&a->answer);
    if (a->admin == NULL)
        return;
    uv_close((uv_handle_t *)&a->admin_poll, NULL);
    http_server_free(a->admin);
    a->admin = NULL;
}
