/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "fd_watch.h"
#include "loop_world.h"
#include "metaserver_client.h"

static void on_http(uv_poll_t *poll, int status, int events)
{
    const struct loop_world *w = poll->data;
    (void)status, (void)events;
    http_client_run(w->http);
}

int agentd_metaserver_client_start(struct loop_world *w, struct base_errbuf *err)
{
    int status = http_client_new(&w->http);
    if (status != 0)
        return base_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    w->http_poll.data = w;
    status = agentd_fd_watch(&w->loop, &w->http_poll, http_client_fd(w->http), on_http, err);
    if (status != 0) {
        http_client_free(w->http);
        w->http = NULL;
    }
    return status;
}

/* Nothing else of the loop runs meanwhile. */
void agentd_metaserver_client_await_leaving(struct loop_world *w, unsigned grace_ms)
{
    const uint64_t end_ns = base_clock_ns() + grace_ms * BASE_NS_PER_MS;
    while (w->agent->unregistering > 0 && base_clock_ns() < end_ns) {
        struct pollfd fd = {.fd = http_client_fd(w->http), .events = POLLIN};
        (void)poll(&fd, 1, 10);
        http_client_run(w->http);
    }
}

void agentd_metaserver_client_stop(struct loop_world *w)
{
    if (w->http == NULL)
        return;
    uv_close((uv_handle_t *)&w->http_poll, NULL);
    http_client_free(w->http);
    w->http = NULL;
}
