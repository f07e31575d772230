/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's own Unix socket, for its operator alone (mode 0600). What is said there is the
 * core's: control/admin.h. A request of the core's is one of the HTTP server's. */
#include "admin_http.h"
#include "agent.h"
#include "base/http/library.h"
#include "base/http/server.h"
#include "base/log.h"
#include "fd_watch.h"
#include "bounds.h"
#include "loop_world.h"

static struct http_request *http_request_of(struct world_request *r)
{
    return (struct http_request *)r;
}

static enum http_verdict handle_request(void *user, struct http_request *request)
{
    const struct loop_world *w = user;
    const struct admin_request r = {.method = request->method,
                                    .path = request->path,
                                    .limit = http_query(request, "limit"),
                                    .cursor = http_query(request, "cursor"),
                                    .tenant = http_query(request, "tenant"),
                                    .worker = http_query(request, "worker"),
                                    .force = http_query(request, "force")};
    return agent_admin_take(w->agent, (struct world_request *)request, &r) ? HTTP_REPLIED
                                                                           : HTTP_DEFER;
}

static void abandon_request(void *user, struct http_request *request)
{
    const struct loop_world *w = user;
    agent_admin_forget(w->agent, (const struct world_request *)request);
}

static void send_answer(struct world *w, struct world_request *r, const struct admin_answer *answer)
{
    struct http_response response = {.status = answer->status,
                                     .content_type = answer->content_type,
                                     .body = answer->body,
                                     .body_length = answer->length};
    (void)w;
    if (answer->allow != NULL)
        response.headers[0] = (struct http_header){"Allow", answer->allow};
    (void)http_reply(http_request_of(r), &response);
}

static void refuse_request(struct world *w, struct world_request *r, int errnum, const char *detail)
{
    (void)w;
    http_reply_error(http_request_of(r), errnum, detail);
}

static bool is_gone(struct world *w, const struct world_request *r)
{
    (void)w;
    return http_client_gone((const struct http_request *)r);
}

const struct world_admin_ops ADMIN_OPS = {
    .answer = send_answer, .refuse = refuse_request, .is_gone = is_gone};

static void on_readable(uv_poll_t *poll, int status, int events)
{
    const struct loop_world *w = poll->data;
    (void)status, (void)events;
    http_server_run(w->admin);
}

static void say_library(void)
{
    const char *warning = http_library_warning(http_library_version());
    if (warning != NULL)
        base_log(BASE_LOG_WARN, warning, "libmicrohttpd=%s", http_library_version());
}

int agentd_admin_listen(struct loop_world *w, struct base_errbuf *err)
{
    struct http_server_config config = {.unix_path = w->agent->config.admin_socket,
                                        .program = "kedge-agentd",
                                        .setting = "`admin_socket`",
                                        .connections = ADMIN_CONNECTIONS,
                                        .handle = handle_request,
                                        .abandon = abandon_request,
                                        .user = w};
    int status = http_server_new(&config, &w->admin, err);
    if (status != 0)
        return status;
    w->admin_poll.data = w;
    status = agentd_fd_watch(&w->loop, &w->admin_poll, http_server_fd(w->admin), on_readable, err);
    if (status != 0) {
        http_server_free(w->admin);
        w->admin = NULL;
    } else {
        say_library();
    }
    return status;
}

void agentd_admin_stop(struct loop_world *w)
{
    if (w->admin == NULL)
        return;
    uv_close((uv_handle_t *)&w->admin_poll, NULL);
    http_server_free(w->admin);
    w->admin = NULL;
}
