/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/http/library.h"
#include "base/http/server.h"
#include "base/latency.h"
#include "base/log.h"
#include "base/notify.h"
#include "device.h"
#include "metaserver/access.h"
#include "metaserver/json.h"
#include "tls_watch.h"

#define NOTIFY_NS       UINT64_C(100000000) /* what the supervisor had no room for is sent again */
#define ANSWER_MAX      (4u << 20) /* bytes: a list of 1000 nodes with 16 endpoints each fits */
#define BODIES_MAX      (16u << 20)
#define HEADERS_MAX     (6u << 10) /* of each connection, of which an agent has two */
#define BURST_S         2          /* so much of a client's rate may come at once */
#define READER_PERCENT  25         /* of the thread's time that one reader may have */
#define READERS_PERCENT 50         /* of it that all of them together may have */

struct metad {
    uv_loop_t loop;
    uv_poll_t http, fabric, events, readers, store, heard;
    uv_prepare_t turned;
    uv_timer_t tick, notify;
    uint64_t ticked_ns, notified_ns; /* last */
    uv_signal_t term, interrupt;
    struct http_server *server;
    struct meta_tls_watch tls;
    bool allow_plain_tokens;
    struct meta_process *process;
    struct meta_service *service; /* whose device `fab` is */
    struct fab *fab;
    struct meta_device device;
    struct base_text body; /* of the answer that is being made */
};

/* ---- streams */

static int next_piece(void *data, const char **bytes, size_t *length)
{
    return meta_watch_next(data, base_clock_ns(), bytes, length);
}

static void stream_over(void *data)
{
    meta_watch_free(data);
}

static void wake_stream(void *token)
{
    http_stream_wake(token);
}

/* ---- requests */

static void send_reply(struct http_request *request, const struct meta_service_answer *answer,
                       const struct base_text *body)
{
    if (request->data != NULL)
        base_latency_record(request->data, base_clock_ns() - request->whole_ns);
    if (body->error != 0) {
        http_reply_error(request, body->error, NULL);
        return;
    }
    struct http_response response = {.status = answer->status,
                                     .content_type = answer->content_type,
                                     .body = body->length > 0 ? body->data : NULL,
                                     .body_length = body->length};
    const struct http_stream stream = {next_piece, stream_over, answer->watch};
    struct http_header *header = response.headers;
    char tag[24], seconds[16];
    snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
    snprintf(tag, sizeof tag, "\"%" PRIu64 "\"", answer->revision);
    if (answer->authenticate[0] != '\0')
        *header++ = (struct http_header){"WWW-Authenticate", answer->authenticate};
    if (answer->allow[0] != '\0')
        *header++ = (struct http_header){"Allow", answer->allow};
    if (answer->revision != 0)
        *header++ = (struct http_header){"ETag", tag};
    if (answer->retry_after_s != 0)
        *header++ = (struct http_header){"Retry-After", seconds};
    if (answer->watch != NULL)
        (void)http_stream(request, &response, &stream);
    else
        (void)http_reply(request, &response);
}

static void reply_later(void *token, const struct meta_service_answer *answer,
                        const struct base_text *body)
{
    send_reply(token, answer, body);
}

static bool is_gone(void *token)
{
    return http_client_gone(token);
}

/* What the server answers by itself, for the metrics. */
static void count_refusals(struct metad *m)
{
    struct http_server_stats stats;
    http_server_stats(m->server, &stats);
    m->service->count.http_refused = stats.refused;
    m->service->count.http_rejected = stats.rejected;
    m->service->count.http_limited = stats.limited;
    m->service->count.http_over_time = stats.over_time;
    m->service->count.http_dropped = stats.dropped;
    m->service->count.tls_handshakes_failed = stats.handshakes_failed;
    m->service->count.log_dropped = base_log_dropped();
    for (int rank = 0; rank < HTTP_RANKS; rank++)
        m->service->count.http_connections[rank] = stats.ranked[rank];
}

static void add_query(void *user, const char *name, const char *value)
{
    meta_service_add_parameter(user, name, value);
}

static bool is_local(const struct http_request *request)
{
    return request->local && (request->peer_uid == 0 || request->peer_uid == geteuid());
}

/* No token's: those are revisions. */
static uint64_t id_of_node(const char *name)
{
    uint64_t hash = 0;
    for (const char *c = name; *c != '\0'; c++)
        hash = base_hash_u64(hash, (unsigned char)*c);
    return hash | (uint64_t)1 << 63;
}

/* Borrowed with the request; *certificate is where what is said of it is put. */
static struct meta_shown shown_by(const struct metad *m, const struct http_request *request,
                                  struct meta_certificate *certificate)
{
    const struct http_certificate *c = request->certificate;
    struct meta_shown shown = {.authorization = http_header(request, "Authorization"),
                               .local = is_local(request),
                               .exposed = request->exposed && !m->allow_plain_tokens};
    if (c != NULL) {
        *certificate = (struct meta_certificate){.uri = c->uri, .gid = c->ip, .gids = c->ips};
        shown.certificate = certificate;
    }
    return shown;
}

/* Agents, and who may change something, come first. A worker's token is for agents, and good for
 * nothing here: who shows one has the room of those who show none. */
static struct http_who identify_client(void *user, const struct http_request *request)
{
    const struct metad *m = user;
    struct meta_certificate certificate;
    const struct meta_shown shown = shown_by(m, request, &certificate);
    const struct meta_caller caller =
        meta_access_caller(m->service->resources, &shown, base_clock_wall_ms());
    if (caller.kind == META_CALLER_NODE)
        return (struct http_who){.rank = HTTP_TRUSTED, .id = id_of_node(caller.node)};
    if (caller.kind == META_CALLER_LOCAL)
        return (struct http_who){.rank = HTTP_TRUSTED};
    if (caller.kind != META_CALLER_TOKEN || caller.token->token.scope == RESOURCE_SCOPE_WORKER)
        return (struct http_who){.rank = HTTP_ANONYMOUS};
    return (struct http_who){
        .rank = caller.token->token.scope == RESOURCE_SCOPE_READER ? HTTP_KNOWN : HTTP_TRUSTED,
        .id = caller.token->revision};
}

static void refuse_client(void *user, const char *peer, const char *why)
{
    struct metad *m = user;
    meta_tls_refused(&m->tls, peer, why);
}

static enum http_verdict handle_request(void *user, struct http_request *request)
{
    struct metad *m = user;
    struct meta_service_answer answer;
    struct meta_certificate certificate;
    char who[META_RESOURCE_WHO_BYTES];
    if (request->local)
        snprintf(who, sizeof who, "uid %u", (unsigned)request->peer_uid);
    else
        snprintf(who, sizeof who, "%s", request->peer);
    struct meta_service_request asked = {
        .method = request->method,
        .path = request->path,
        .content_type = http_header(request, "Content-Type"),
        .if_match = http_header(request, "If-Match"),
        .if_none_match = http_header(request, "If-None-Match"),
        .shown = shown_by(m, request, &certificate),
        .wall_ms = base_clock_wall_ms(),
        .who = who,
        .body = request->body,
        .body_bytes = request->body_length,
        .token = request,
    };
    http_queries(request, add_query, &asked);
    count_refusals(m);
    base_text_reset(&m->body);
    meta_service_handle(m->service, &asked, base_clock_ns(), &m->body, &answer);
    request->data = answer.took;
    if (answer.status == META_SERVICE_LATER)
        return HTTP_DEFER;
    send_reply(request, &answer, &m->body);
    return HTTP_REPLIED;
}

static void advance_service(struct metad *m)
{
    const uint64_t now_ns = base_clock_ns();
    meta_service_at(m->service, now_ns, base_clock_wall_ms());
    meta_service_advance(m->service, now_ns);
}

static void on_http(uv_poll_t *poll, int status, int events)
{
    struct metad *m = poll->data;
    (void)status, (void)events;
    http_server_run(m->server);
    advance_service(m);
}

static void on_fabric(uv_poll_t *poll, int status, int events)
{
    struct metad *m = poll->data;
    (void)status, (void)events;
    (void)fab_run(m->fab);
    advance_service(m);
}

static void on_store(uv_poll_t *poll, int status, int events)
{
    struct metad *m = poll->data;
    (void)status, (void)events;
    const uint64_t now_ns = base_clock_ns();
    meta_service_at(m->service, now_ns, base_clock_wall_ms());
    meta_process_run_store(m->process, now_ns);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void on_device(uv_poll_t *poll, int status, int events)
{
    struct metad *m = poll->data;
    (void)status, (void)events;
    meta_device_events(&m->device);
    if (m->device.lost != NULL)
        uv_walk(&m->loop, close_handle, NULL);
}

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t tick_due_ns(const struct metad *m)
{
    const struct meta_responders *responders = m->service->responders;
    const uint64_t service_due =
        earlier_of(meta_service_due(m->service), meta_process_due(m->process));
    return earlier_of(earlier_of(service_due, meta_device_due_ns(&m->device)),
                      responders != NULL ? meta_responders_due_ns(responders) : UINT64_MAX);
}

static void on_tick(uv_timer_t *timer)
{
    struct metad *m = timer->data;
    const uint64_t now_ns = base_clock_ns();
    if (now_ns < tick_due_ns(m)) /* libuv's clock is a little ahead, or the rest is over */
        return;
    m->ticked_ns = now_ns;
    meta_service_tick(m->service, now_ns, base_clock_wall_ms());
    meta_device_tick(&m->device, now_ns);
    if (m->service->responders != NULL)
        meta_responders_tick(m->service->responders, now_ns);
    meta_process_run_store(m->process, now_ns);
}

static void on_notify(uv_timer_t *timer)
{
    struct metad *m = timer->data;
    m->notified_ns = base_clock_ns();
    base_notify_tick(m->notified_ns);
}

/* At that time, or at `least_ns` if that is later; UINT64_MAX: not. libuv counts in milliseconds,
 * from a time that it has to be told. */
static void set_timer(uv_timer_t *timer, uv_timer_cb what, uint64_t due_ns, uint64_t least_ns)
{
    const uint64_t now_ns = base_clock_ns(), at_ns = due_ns > least_ns ? due_ns : least_ns;
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(timer);
        return;
    }
    uv_update_time(timer->loop);
    (void)uv_timer_start(
        timer, what, at_ns > now_ns ? (at_ns - now_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS : 0,
        0);
}

/* Before the loop waits, whatever has happened: nothing that is to be done later need set a timer.
 */
static void on_turned(uv_prepare_t *prepare)
{
    struct metad *m = prepare->data;
    set_timer(&m->tick, on_tick, tick_due_ns(m), m->ticked_ns + META_TICK_NS);
    set_timer(&m->notify, on_notify, base_notify_due_ns(), m->notified_ns + NOTIFY_NS);
}

static void on_readers(uv_poll_t *poll, int status, int events)
{
    struct metad *m = poll->data;
    (void)status, (void)events;
    fab_chan_drain(m->process->endpoint.chan);
    if (m->service->responders != NULL)
        meta_responders_hear(m->service->responders);
}

static void on_signal(uv_signal_t *sig, int number)
{
    struct metad *m = sig->data;
    base_log(BASE_LOG_INFO, "stopping", "signal=%s", number == SIGINT ? "SIGINT" : "SIGTERM");
    uv_walk(&m->loop, close_handle, NULL);
}

/* libuv fails here for want of memory or descriptors alone. */
static int start_watching(struct metad *m)
{
    m->http.data = m->fabric.data = m->events.data = m->readers.data = m->store.data =
        m->heard.data = m->tick.data = m->notify.data = m->turned.data = m->term.data =
            m->interrupt.data = m;
    int status = uv_poll_init(&m->loop, &m->http, http_server_fd(m->server));
    if (status == 0)
        status = uv_poll_start(&m->http, UV_READABLE, on_http);
    if (status == 0)
        status = uv_poll_init(&m->loop, &m->fabric, fab_ctl_fd(m->fab));
    if (status == 0)
        status = uv_poll_start(&m->fabric, UV_READABLE, on_fabric);
    if (status == 0)
        status = uv_poll_init(&m->loop, &m->events, fab_event_fd(m->fab));
    if (status == 0)
        status = uv_poll_start(&m->events, UV_READABLE, on_device);
    if (status == 0)
        status = uv_poll_init(&m->loop, &m->readers, m->process->endpoint.chan->fd);
    if (status == 0)
        status = uv_poll_start(&m->readers, UV_READABLE, on_readers);
    if (status == 0)
        status = uv_poll_init(&m->loop, &m->store, meta_store_worker_fd(m->process->world.worker));
    if (status == 0)
        status = uv_poll_start(&m->store, UV_READABLE, on_store);
    if (status == 0 && m->process->listener != NULL) {
        status = uv_poll_init(&m->loop, &m->heard, meta_store_listener_fd(m->process->listener));
        if (status == 0)
            status = uv_poll_start(&m->heard, UV_READABLE, on_store);
    }
    if (status == 0)
        status = uv_timer_init(&m->loop, &m->tick);
    if (status == 0)
        status = uv_timer_init(&m->loop, &m->notify);
    if (status == 0)
        status = uv_prepare_init(&m->loop, &m->turned);
    if (status == 0)
        status = uv_prepare_start(&m->turned, on_turned);
    if (status == 0)
        status = uv_signal_init(&m->loop, &m->term);
    if (status == 0)
        status = uv_signal_start(&m->term, on_signal, SIGTERM);
    if (status == 0)
        status = uv_signal_init(&m->loop, &m->interrupt);
    if (status == 0)
        status = uv_signal_start(&m->interrupt, on_signal, SIGINT);
    return status == 0 ? meta_tls_watch_start(&m->tls, &m->loop) : status;
}

/* Who has asked for tokens and has none yet cannot go on by the port. */
static void say_first_token(const struct metad *m, const struct meta_config *config)
{
    const struct meta_resources *all = m->service->resources;
    const struct meta_resource *t = meta_resources_after(all, META_TOKEN, "");
    while (t != NULL && t->token.scope != RESOURCE_SCOPE_ADMIN)
        t = meta_resources_after(all, META_TOKEN, t->name);
    if (t != NULL || !config->tokens_needed)
        return;
    if (config->admin_socket[0] != '\0')
        base_log(BASE_LOG_WARN, "there is no token of the scope admin yet",
                 "make_one=\"rdmactl --server unix:%s token create NAME scope=admin\"",
                 config->admin_socket);
    else
        base_log(BASE_LOG_WARN,
                 "there is no token of the scope admin, and no way to make one: set admin_socket",
                 "access=tokens");
}

/* A choice, and one that is easily forgotten. Who comes by the admin socket may all in any case. */
static void say_open(const struct meta_config *config)
{
    if (config->tokens_needed || config->listen[0] == '\0')
        return;
    base_log(
        BASE_LOG_WARN,
        "whoever reaches the port may register nodes, change settings, cordon nodes and revoke "
        "leases without a token, workers of this host included: say access = tokens where "
        "they are not trusted",
        "access=open listen=\"%s\"", config->listen);
}

static void say_library(void)
{
    const char *warning = http_library_warning(http_library_version());
    if (warning != NULL)
        base_log(BASE_LOG_WARN, warning, "libmicrohttpd=%s", http_library_version());
}

/* A prefix or an endpoint that is wrong makes a store that nobody else has. */
static void say_store(const struct metad *m, const struct meta_config *config)
{
    const struct meta_service *s = m->service;
    const uint64_t revision = meta_resources_revision(s->resources);
    if (!config->store_shared)
        return;
    base_log(BASE_LOG_INFO, "the store is shared",
             "id=%s prefix=\"%s\" member=%s revision=%" PRIu64, s->store_id, config->store_prefix,
             s->hearing.self.name, revision);
    if (s->hearing.shown_nothing)
        base_log(BASE_LOG_WARN, "etcd is shown neither a password nor a certificate",
                 "endpoints=\"%s\" reason=\"if it takes that, %s\"", config->store_endpoints,
                 meta_service_open_to_all);
    if (revision == 0)
        base_log(BASE_LOG_WARN,
                 "the store has never been changed: if other metaservers share one that has, "
                 "prefix or endpoints in [store] are wrong here",
                 "id=%s prefix=\"%s\"", s->store_id, config->store_prefix);
}

static void say_ready(const struct metad *m, const struct meta_config *config)
{
    uint16_t port = http_server_port(m->server);
    struct meta_directory_counts count = meta_directory_count(m->service->directory);
    char status[BASE_NOTIFY_TEXT];
    printf("kedge-metad: ready, port %u\n", port);
    fflush(stdout);
    base_log(BASE_LOG_INFO, "ready", "port=%u tls=%s admin_socket=\"%s\" access=%s nodes=%u", port,
             m->tls.tls == NULL         ? "no"
             : config->client_cert_auth ? "mutual"
                                        : "yes",
             config->admin_socket, config->tokens_needed ? "tokens" : "open", count.nodes);
    say_store(m, config);
    say_first_token(m, config);
    say_open(config);
    meta_tls_say_plain(config);
    say_library();
    snprintf(status, sizeof status, "port %u, access %s", port,
             config->tokens_needed ? "tokens" : "open");
    base_notify_ready(status);
}

/* Beside what is configured, this host's own name, which Debian resolves to 127.0.1.1: no page is
 * served by a name that is ours. */
static void list_hosts(const struct meta_config *config, char *out, size_t size)
{
    char name[HOST_NAME_MAX + 1] = "";
    if (gethostname(name, sizeof name - 1) != 0)
        name[0] = '\0';
    snprintf(out, size, "%s %s %.*s", config->hosts, name, (int)strcspn(name, "."), name);
}

static int listen_http(struct metad *m, const struct meta_config *config, const char *config_path,
                       struct base_errbuf *err)
{
    char setting[512], hosts[META_CONFIG_TEXT_BYTES + 2 * HOST_NAME_MAX + 4];
    list_hosts(config, hosts, sizeof hosts);
    snprintf(setting, sizeof setting, "listen or admin_socket in %.460s",
             config_path == NULL ? "the configuration" : config_path);
    struct http_server_config http = {
        .listen = config->listen[0] != '\0' ? config->listen : NULL,
        .unix_path = config->admin_socket[0] != '\0' ? config->admin_socket : NULL,
        .program = "kedge-metad",
        .setting = setting,
        .connections = (unsigned)config->connections,
        .anonymous = meta_config_anonymous(config),
        .connections_per_id = (unsigned)config->token_connections,
        .anonymous_per_second = config->tokens_needed ? (unsigned)config->client_rate : 0,
        .hosts = hosts,
        .client_cert_auth = config->client_cert_auth,
        .refused = refuse_client,
        .identify = identify_client,
        .connections_per_ip = meta_config_of_address(config),
        .requests_per_second = (unsigned)config->client_rate,
        .requests_burst = (unsigned)config->client_rate * BURST_S,
        .percent_per_id = config->tokens_needed && config->client_rate > 0 ? READER_PERCENT : 0,
        .percent_known = config->tokens_needed && config->client_rate > 0 ? READERS_PERCENT : 0,
        .body_bytes = META_JSON_MAX_ANSWER_BYTES,
        .bodies_bytes = BODIES_MAX,
        .header_bytes = HEADERS_MAX,
        .handle = handle_request,
        .user = m,
    };
    int status = meta_tls_open(config, &m->tls.tls, err);
    http.tls = m->tls.tls;
    if (status == 0)
        status = http_server_new(&http, &m->server, err);
    m->tls.server = m->server;
    m->tls.service = m->service;
    meta_tls_open_etcd(&m->tls, config);
    return status;
}

/* While there is a server to answer with, which does not end with requests that are deferred; and
 * what is durable first, since a device may hang. */
static int stop_serving(struct metad *m, int code, struct base_errbuf *err)
{
    base_notify_stopping();
    const int settled = meta_process_stop_store(m->process, err);
    meta_process_stop_device(m->process, FAB_STOP_MS, settled == 0 ? code : EXIT_FAILURE);
    meta_device_stop(&m->device);
    meta_process_stop_responders(m->process);
    if (settled == 0)
        meta_service_advance(m->service, base_clock_ns());
    return settled;
}

int meta_daemon_serve(const struct meta_config *config, const char *config_path,
                      struct meta_process *process, struct base_errbuf *err)
{
    struct meta_service *service = &process->service;
    struct metad m = {.process = process,
                      .service = service,
                      .fab = process->endpoint.fab,
                      .allow_plain_tokens = config->allow_plain_tokens};
    meta_device_init(&m.device, process);
    struct base_errbuf unsettled;
    int status = uv_loop_init(&m.loop);
    if (status != 0)
        return base_err(err, status, "the event loop cannot begin: %s", uv_strerror(status));
    base_text_init(&m.body, ANSWER_MAX);
    service->answer = reply_later;
    service->gone = is_gone;
    service->wake = wake_stream;
    status = listen_http(&m, config, config_path, err);
    if (status == 0) {
        status = start_watching(&m);
        if (status != 0)
            base_err(err, status, "the event loop cannot begin: %s", uv_strerror(status));
    }
    if (status == 0)
        say_ready(&m, config);
    else
        uv_walk(&m.loop, close_handle, NULL);
    uv_run(&m.loop, UV_RUN_DEFAULT);
    const bool ended = status == 0 && m.device.lost == NULL;
    const int settled = stop_serving(&m, ended ? EXIT_SUCCESS : EXIT_FAILURE, &unsettled);
    http_server_free(m.server);
    http_tls_free(m.tls.tls);
    http_tls_free(m.tls.etcd);
    base_text_fini(&m.body);
    int closed = uv_loop_close(&m.loop);
    BASE_ASSERT(closed == 0);
    if (settled != 0) {
        *err = unsettled;
        return settled;
    }
    if (status == 0 && m.device.lost != NULL)
        status = base_err(err, -ENODEV,
                          "the device cannot be used any more: %s; see the log; it begins anew "
                          "when the supervisor restarts it",
                          m.device.lost);
    return status;
}
