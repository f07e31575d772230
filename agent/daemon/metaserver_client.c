/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "fd_watch.h"
#include "loop_world.h"
#include "metaserver_client.h"

enum { TLS_LOOK_MS = 5000 };

static void on_http(uv_poll_t *poll, int status, int events)
{
    const struct loop_world *w = poll->data;
    (void)status, (void)events;
    http_client_run(w->http);
}

int agentd_metaserver_tls_open(const struct agent_config *config, struct http_tls **out,
                               struct base_errbuf *err)
{
    const struct http_tls_config files = {.ca_file = config->trusted_ca_file,
                                          .cert_file = config->cert_file,
                                          .key_file = config->key_file,
                                          .crl_file = config->crl_file};
    return http_tls_new(&files, out, err);
}

void agentd_metaserver_tls_look(struct loop_world *w)
{
    struct base_errbuf why;
    const int status = http_tls_look(w->tls, &why);
    if (status < 0)
        base_log(BASE_LOG_ERROR,
                 "newer certificates are refused, and what was there before still holds",
                 "reason=\"%s\"", why.text);
    if (status > 0)
        base_log(BASE_LOG_INFO, "certificates are read again", "expires_s=%" PRId64,
                 http_tls_expiry(w->tls));
    w->agent->tls_expires_s = http_tls_expiry(w->tls);
    if (http_tls_warn(w->tls, (int64_t)(base_clock_wall_ms() / 1000), &why))
        base_log(BASE_LOG_WARN, "the certificate expires", "reason=\"%s\"", why.text);
}

static void on_tls_timer(uv_timer_t *timer)
{
    agentd_metaserver_tls_look(timer->data);
}

/* 0 or libuv's -errno. */
static int watch_tls(struct loop_world *w)
{
    int status = uv_timer_init(&w->loop, &w->tls_timer);
    w->tls_timer.data = w;
    agentd_metaserver_tls_look(w);
    return status == 0 ? uv_timer_start(&w->tls_timer, on_tls_timer, TLS_LOOK_MS, TLS_LOOK_MS)
                       : status;
}

int agentd_metaserver_client_start(struct loop_world *w, struct base_errbuf *err)
{
    int status = agentd_metaserver_tls_open(&w->agent->config, &w->tls, err);
    if (status != 0)
        return status;
    status = http_client_new(&w->http);
    if (status != 0) {
        http_tls_free(w->tls);
        return base_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    }
    w->http_poll.data = w;
    status = agentd_fd_watch(&w->loop, &w->http_poll, http_client_fd(w->http), on_http, err);
    if (status != 0) {
        http_client_free(w->http);
        http_tls_free(w->tls);
        w->http = NULL;
        return status;
    }
    status = watch_tls(w);
    if (status != 0) {
        base_err(err, status, "the event loop cannot begin: %s", uv_strerror(status));
        agentd_metaserver_client_stop(w);
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
    uv_close((uv_handle_t *)&w->tls_timer, NULL);
    http_client_free(w->http);
    http_tls_free(w->tls);
    w->tls = NULL;
    w->http = NULL;
}
