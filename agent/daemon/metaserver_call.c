/* SPDX-License-Identifier: Apache-2.0 */
/* What all requests to metaservers have in common. */
#include <string.h>

#include "agent.h"
#include "fd_watch.h"
#include "start_check.h"

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

void metaservers_stop(struct agent *a)
{
    if (a->http_client == NULL)
        return;
    uv_close((uv_handle_t *)&a->http_poll, NULL);
    http_client_free(a->http_client);
    a->http_client = NULL;
}

void metaservers_look_at_token(struct agent *a)
{
    struct base_errbuf why;
    const bool open = !start_check_privacy(&a->config, &why);
    if (open && !a->token_is_open)
        base_log(BASE_LOG_WARN, "others may read the token", "reason=\"%s\"", why.text);
    a->token_is_open = open;
}

struct http_call metaserver_call(const struct agent *a, const char *method, const char *url,
                                 uint32_t ms)
{
    return (struct http_call){.method = method,
                              .url = url,
                              .token_file = a->config.token_file,
                              .connect_timeout_ms = ms,
                              .timeout_ms = ms};
}
