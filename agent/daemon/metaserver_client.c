/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client by which the agent calls metaservers, in its loop. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "agent.h"
#include "fd_watch.h"

static void on_http(uv_poll_t *poll, int status, int events)
{
    struct agent *a = poll->data;
    (void)status, (void)events;
    http_client_run(a->http_client);
}

int metaservers_start(struct agent *a, struct base_errbuf *err)
{
    int status = http_client_new(&a->http_client);
    if (status != 0)
        return base_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    a->http_poll.data = a;
    status = fd_watch(&a->loop, &a->http_poll, http_client_fd(a->http_client), on_http, err);
    if (status != 0) {
        http_client_free(a->http_client);
        a->http_client = NULL;
    }
    return status;
}

/* Nothing else of the loop runs meanwhile. */
void metaservers_await_leaving(struct agent *a, unsigned grace_ms)
{
    const uint64_t end_ns = base_clock_ns() + grace_ms * BASE_NS_PER_MS;
    while (a->unregistering > 0 && base_clock_ns() < end_ns) {
        struct pollfd fd = {.fd = http_client_fd(a->http_client), .events = POLLIN};
        (void)poll(&fd, 1, 10);
        http_client_run(a->http_client);
    }
}

void metaservers_stop(struct agent *a)
{
    if (a->http_client == NULL)
        return;
    uv_close((uv_handle_t *)&a->http_poll, NULL);
    http_client_free(a->http_client);
    a->http_client = NULL;
}
