/* SPDX-License-Identifier: Apache-2.0 */
#include "metad_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "common_looks.h"
#include "device_provider.h"
#include "disk.h"
#include "fabric/sim.h"
#include "kept.h"
#include "ledger.h"
#include "metad_judge.h"
#include "os.h"
#include "metaserver/json.h"
#include "open_store.h"
#include "random.h"
#include "trace.h"

enum { ANSWER_MAX = 4 << 20, TARGET_BYTES = 2048, NAMES = 128 };
#define ASK_NS (10 * BASE_NS_PER_S)

/* ---- its world */

static uint64_t tell_wall(struct meta_world *w)
{
    return play_host_wall_ms(((const struct play_metad *)w)->host);
}

static int draw_random(struct meta_world *w, void *bytes, size_t n)
{
    play_random_fill(&((struct play_metad *)w)->process->random, bytes, n);
    return 0;
}

static void write_log(struct meta_world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    ((struct play_metad *)w)->effects++;
    play_log(level, event, format, args);
}

static void submit_job(struct meta_world *w, struct meta_store_job *job)
{
    struct play_metad *m = (struct play_metad *)w;
    m->effects++;
    if (m->settings.shared)
        play_common_submit(&m->common, job);
    else
        play_store_thread_submit(&m->store, job);
}

static const struct meta_world_ops METAD_WORLD_OPS = {
    .wall_ms = tell_wall, .random = draw_random, .log = write_log, .submit = submit_job};

static void advance_service(struct play_metad *m)
{
    const uint64_t now_ns = play_host_now_ns(m->host);
    meta_service_at(&m->service, now_ns, play_host_wall_ms(m->host));
    meta_service_advance(&m->service, now_ns);
}

static void on_stored(void *user)
{
    advance_service(user);
}

/* ---- a store that all share, as metaserver/daemon/process.c has it */

static void apply_heard(void *user, const struct meta_store_heard *heard)
{
    play_common_hear(user, heard);
}

/* Now and then, as long as one is wanted. */
static void ask_snapshot(struct play_metad *m, uint64_t now_ns)
{
    if (!m->service.hearing.wants_snapshot || now_ns < m->asked_ns + ASK_NS)
        return;
    m->asked_ns = now_ns;
    play_common_ask(&m->common);
}

static void note_state(struct play_metad *m, uint64_t now_ns)
{
    struct base_errbuf why;
    if (m->common.state < 0) {
        base_err(&why, m->common.state, "etcd does not answer");
        meta_service_hear_nothing(&m->service, &why, now_ns);
    } else if (m->common.state > 0 && meta_store_order_is_idle(&m->common.order)) {
        meta_service_hear_nothing(&m->service, NULL, now_ns);
        play_common_know(&m->common);
    }
    m->common.state = 0;
}

static void on_common(void *user)
{
    struct play_metad *m = user;
    const uint64_t now_ns = play_host_now_ns(m->host);
    meta_service_at(&m->service, now_ns, play_host_wall_ms(m->host));
    play_common_take(&m->common);
    while (meta_store_order_run(&m->common.order, now_ns))
        meta_service_advance(&m->service, now_ns);
    note_state(m, now_ns);
    ask_snapshot(m, now_ns);
    meta_service_advance(&m->service, now_ns);
}

static int open_store(struct play_metad *m, struct base_errbuf *err)
{
    play_process_sleep(play_disk_time(m->host->disk));
    if (m->settings.shared) {
        const int status = play_common_open(&m->common, m->settings.number, m->host->name, err);
        m->service.store = m->common.store;
        return status;
    }
    const int status = meta_daemon_open_store(&m->config, false, &m->service.store, err);
    play_store_thread_init(&m->store, m->service.store, &m->inbox, on_stored, m);
    return status;
}

/* When it has loaded what is there. */
static void begin_hearing(struct play_metad *m)
{
    if (!m->settings.shared)
        return;
    meta_store_order_init(&m->common.order, apply_heard, m);
    m->common.inbox = &m->inbox;
    m->common.ran = on_common;
    m->common.committed = play_metad_judge_commit;
    m->common.user = m;
    play_common_listen(&m->common);
}

static void close_store(struct play_metad *m)
{
    if (m->settings.shared)
        play_common_close(&m->common);
    else
        meta_store_close(m->service.store);
    m->service.store = NULL;
}

/* Of a process that is killed. What it has of the heap is not the process's. */
static void crash_store(struct play_metad *m)
{
    struct play_disk *d = m->host->disk;
    if (m->settings.shared) {
        play_common_crash(&m->common);
        return;
    }
    struct play_process *before = play_process_enter(m->process);
    play_store_thread_crash(&m->store);
    play_disk_fail_after(d, 0);
    meta_store_close(m->service.store);
    play_disk_recover(d);
    play_process_leave(before);
}

/* ---- requests */

/* In its place. */
static void decode_text(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        uint8_t byte;
        const int length = base_percent_decode(at, &byte);
        *to++ = length > 0 ? (char)byte : *at;
        at += length > 0 ? length : 1;
    }
    *to = '\0';
}

/* "?a=1&b=2" behind the path, which it is cut off from. */
static void take_parameters(char *target, struct meta_service_request *request)
{
    char *rest = strchr(target, '?'), *one;
    if (rest == NULL)
        return;
    *rest++ = '\0';
    while ((one = strsep(&rest, "&")) != NULL) {
        char *value = strchr(one, '=');
        if (value != NULL)
            *value++ = '\0';
        else
            value = one + strlen(one);
        decode_text(one);
        decode_text(value);
        meta_service_add_parameter(request, one, value);
    }
}

/* ---- answers */

static void send_answer(struct play_metad *m, struct play_call *c,
                        const struct meta_service_answer *answer, const struct base_text *body)
{
    BASE_ASSERT(body->error == 0);
    play_metad_judge_answer(m, c, answer, answer->watch != NULL ? NULL : base_text_str(body));
    if (answer->watch != NULL) {
        play_call_set_data(c, answer->watch);
        play_call_stream(c);
    } else {
        play_call_answer(c, answer->status, answer->content_type, base_text_str(body),
                         body->length);
    }
}

static void answer_later(void *token, const struct meta_service_answer *answer,
                         const struct base_text *body)
{
    struct play_call *c = token;
    send_answer(play_call_server(c), c, answer, body);
}

static bool is_gone(void *token)
{
    return play_call_is_gone(token);
}

static void wake_stream(void *token)
{
    ((struct play_metad *)play_call_server(token))->effects++;
    play_call_pump(token);
}

static void handle_request(void *user, struct play_call *c)
{
    struct play_metad *m = user;
    struct meta_service_answer answer;
    char target[TARGET_BYTES], authorization[HTTP_TOKEN_BYTES + 16];
    struct meta_service_request request = {.method = play_call_method(c),
                                           .content_type = "application/json",
                                           .wall_ms = play_host_wall_ms(m->host),
                                           .who = play_call_client(c),
                                           .shown.local =
                                               strcmp(play_call_client(c), "office") == 0,
                                           .token = c};
    play_metad_note_asked(m, c);
    (void)snprintf(target, sizeof target, "%s", play_call_target(c));
    take_parameters(target, &request);
    decode_text(target);
    request.path = target;
    request.body = play_call_body(c, &request.body_bytes);
    if (play_call_token(c) != NULL) {
        (void)snprintf(authorization, sizeof authorization, "Bearer %s", play_call_token(c));
        request.shown.authorization = authorization;
    }
    base_text_reset(&m->body);
    meta_service_handle(&m->service, &request, play_host_now_ns(m->host), &m->body, &answer);
    if (answer.status != META_SERVICE_LATER)
        send_answer(m, c, &answer, &m->body);
    advance_service(m);
}

static void pump_stream(void *user, struct play_call *c)
{
    const struct play_metad *m = user;
    const char *bytes;
    size_t length = 0;
    int status = 0;
    while ((status = meta_watch_next(play_call_data(c), play_host_now_ns(m->host), &bytes,
                                     &length)) == 0 &&
           length > 0)
        play_call_send(c, bytes, length);
    if (status == 0)
        return;
    meta_watch_free(play_call_data(c));
    play_call_finish(c);
}

static void leave_stream(void *user, struct play_call *c)
{
    (void)user;
    meta_watch_free(play_call_data(c));
}

/* ---- the loop */

static void do_tick(struct play_metad *m)
{
    const uint64_t now_ns = play_host_now_ns(m->host);
    meta_service_tick(&m->service, now_ns, play_host_wall_ms(m->host));
    if (m->service.responders != NULL)
        meta_responders_tick(m->service.responders, now_ns);
    meta_service_advance(&m->service, now_ns);
}

static uint64_t find_due_ns(const struct play_metad *m)
{
    const struct meta_responders *r = m->service.responders;
    const uint64_t due_ns = meta_service_due(&m->service),
                   responders_ns = r != NULL ? meta_responders_due_ns(r) : UINT64_MAX;
    return due_ns < responders_ns ? due_ns : responders_ns;
}

static void run_tick(void *user)
{
    struct play_metad *m = user;
    const uint64_t now_ns = play_host_now_ns(m->host);
    m->tick_due_ns = UINT64_MAX;
    if (now_ns < find_due_ns(m))
        return;
    m->ticked_ns = now_ns;
    do_tick(m);
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void on_turned(void *user)
{
    struct play_metad *m = user;
    if (!m->ready || m->told_to_stop)
        return;
    const uint64_t due_ns = later_of(find_due_ns(m), m->ticked_ns + META_TICK_NS);
    if (due_ns == m->tick_due_ns)
        return;
    m->tick_due_ns = due_ns;
    if (due_ns == UINT64_MAX)
        play_event_cancel(&m->tick);
    else
        play_event_at(&m->tick, play_host_due(m->host, due_ns));
}

/* As of an agent (agent_process.c). */
static void look_at_tick(struct play_metad *m)
{
    const uint64_t due_ns = find_due_ns(m), did = m->effects + play_provider_submitted();
    if (due_ns != UINT64_MAX && m->tick_due_ns > later_of(due_ns, m->ticked_ns + META_TICK_NS))
        play_violation(m->process->name, "something is due before its next tick");
    if (due_ns <= play_host_now_ns(m->host))
        return;
    do_tick(m);
    if (m->effects + play_provider_submitted() != did)
        play_violation(m->process->name, "it had something to do, and nothing was due");
}

void play_metad_look_at_rest(struct play_metad *m)
{
    if (!m->ready || m->told_to_stop || !m->inbox.waits || m->inbox.first != NULL ||
        m->process->owner.paused_until_ns >= play_now_ns())
        return;
    struct play_process *before = play_process_enter(m->process);
    play_metad_judge_table(m);
    look_at_tick(m);
    play_process_leave(before);
}

static void run_control(void *user)
{
    struct play_metad *m = user;
    (void)fab_run(m->endpoint.fab);
    advance_service(m);
}

/* As metaserver/daemon/device.c does, of what devices tell here. */
static void run_events(void *user)
{
    struct play_metad *m = user;
    struct fab_event e;
    while (fab_get_event(m->endpoint.fab, &e)) {
        if (e.type != IBV_EVENT_CQ_ERR)
            continue;
        play_trace(m->process->name, "the device cannot be used any more");
        m->told_to_stop = true;
    }
}

static void run_readers(void *user)
{
    struct play_metad *m = user;
    fab_chan_drain(m->endpoint.chan);
    if (m->service.responders != NULL)
        meta_responders_hear(m->service.responders);
}

static void on_tick(void *user)
{
    struct play_metad *m = user;
    play_inbox_put(&m->inbox, &m->tick_post);
}

void play_metad_device_ready(struct play_metad *m, int fd)
{
    if (m->endpoint.fab != NULL && fd == fab_ctl_fd(m->endpoint.fab))
        play_inbox_put(&m->inbox, &m->control_post);
    if (m->endpoint.fab != NULL && fd == fab_event_fd(m->endpoint.fab))
        play_inbox_put(&m->inbox, &m->event_post);
    if (m->endpoint.chan != NULL && fd == m->endpoint.chan->fd)
        play_inbox_put(&m->inbox, &m->readers_post);
}

/* ---- its start and end */

static int start_metad(struct play_metad *m, struct base_errbuf *err)
{
    int status = meta_config_read(NULL, &m->config, err);
    BASE_ASSERT(status == 0);
    memcpy(m->config.gid, m->settings.gid, sizeof m->config.gid);
    m->config.max_nodes = m->settings.max_nodes;
    m->config.max_endpoints = 2 * (uint64_t)m->settings.max_nodes;
    m->config.node_lease_ns = m->settings.node_lease_ns;
    m->config.events = 256;
    m->config.max_names = NAMES;
    base_text_init(&m->body, ANSWER_MAX);
    (void)snprintf(m->config.data_dir, sizeof m->config.data_dir, "%s", OS_DISK);
    status = open_store(m, err);
    if (status == 0)
        status = meta_table_endpoint_init(
            &m->endpoint, &m->config, play_metad_names_offset(m) + play_metad_names_bytes(m), err);
    m->endpoint.names_offset = play_metad_names_offset(m);
    if (status == 0)
        status = play_metad_make_core(m, err);
    m->service.answer = answer_later;
    m->service.gone = is_gone;
    m->service.wake = wake_stream;
    if (status == 0)
        status = meta_service_load(&m->service, play_host_now_ns(m->host), err);
    if (status != 0)
        return status;
    play_kept_compare(play_metad_keeps_in(m), play_metad_find_stored, m);
    begin_hearing(m);
    return 0;
}

static void stop_responders(struct play_metad *m)
{
    meta_responders_stop(m->service.responders);
    while (!meta_responders_stopped(m->service.responders))
        if (fab_run(m->endpoint.fab) == 0)
            fab_wait(m->endpoint.fab);
}

static void stop_metad(struct play_metad *m)
{
    struct meta_service *s = &m->service;
    play_event_cancel(&m->tick);
    meta_service_stop(s, play_host_now_ns(m->host));
    while (m->ready && !meta_service_is_stopped(s))
        (void)play_inbox_step(&m->inbox, PLAY_NEVER);
    if (s->responders != NULL)
        stop_responders(m);
    if (m->ready) {
        meta_queries_stop(s);
        meta_service_advance(s, play_host_now_ns(m->host));
        for (struct meta_watch *w; (w = play_server_stream(&m->server)) != NULL;)
            meta_watch_free(w);
        play_server_end(&m->server);
    }
    m->ready = false;
    close_store(m);
    base_text_fini(&m->body);
    meta_responders_free(s->responders);
    meta_names_free(s->names);
    meta_directory_free(s->directory);
    meta_resources_free(s->resources);
    meta_liveness_free(s->liveness);
    meta_table_endpoint_fini(&m->endpoint);
}

static void run_metad(void *user)
{
    struct play_metad *m = user;
    const int status = start_metad(m, &m->why);
    m->failed = status != 0;
    if (status == 0) {
        m->ready = true;
        play_server_begin(&m->server);
        on_turned(m);
        play_trace(m->process->name, "ready, %u nodes known",
                   meta_directory_count(m->service.directory).nodes);
    } else {
        play_trace(m->process->name, "cannot begin: %s", m->why.text);
    }
    while (status == 0 && !m->told_to_stop)
        (void)play_inbox_step(&m->inbox, PLAY_NEVER);
    stop_metad(m);
    play_trace(m->process->name, "ended");
}

static void on_killed(struct play_process *process, void *user)
{
    struct play_metad *m = user;
    (void)process;
    play_metad_judge_end(m);
    if (m->ready)
        play_server_end(&m->server);
    if (m->service.store != NULL)
        crash_store(m);
    if (m->endpoint.fab != NULL)
        sim_device_crash(m->endpoint.fab);
}

static void on_stop(void *user)
{
    struct play_metad *m = user;
    m->told_to_stop = true;
}

struct play_metad *play_metad_start(struct play_host *host,
                                    const struct play_metad_settings *settings, uint64_t seed)
{
    static uint64_t lives;
    struct play_metad *m = calloc(1, sizeof *m);
    BASE_ASSERT(m != NULL);
    m->life = ++lives;
    m->process = play_process_new(host, "metad", seed, run_metad, m);
    BASE_ASSERT(m->process != NULL);
    m->process->killed = on_killed;
    m->world.ops = &METAD_WORLD_OPS;
    m->service.world = &m->world;
    m->host = host;
    m->settings = *settings;
    m->tick = (struct play_event){.happen = on_tick, .user = m, .owner = &m->process->owner};
    m->tick_post = (struct play_post){.run = run_tick, .user = m};
    m->control_post = (struct play_post){.run = run_control, .user = m};
    m->event_post = (struct play_post){.run = run_events, .user = m};
    m->readers_post = (struct play_post){.run = run_readers, .user = m};
    m->stop_post = (struct play_post){.run = on_stop, .user = m};
    m->server = (struct play_server){.authority = m->settings.authority,
                                     .host = host,
                                     .inbox = &m->inbox,
                                     .asked = handle_request,
                                     .pumped = pump_stream,
                                     .left = leave_stream,
                                     .user = m};
    play_inbox_init(&m->inbox, m->process);
    m->inbox.turned = on_turned;
    m->inbox.user = m;
    m->tick_due_ns = UINT64_MAX;
    return m;
}

void play_metad_stop(struct play_metad *m)
{
    play_inbox_put(&m->inbox, &m->stop_post);
}

void play_metad_kill(struct play_metad *m)
{
    play_process_kill(m->process);
    free(m);
}
