/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/http/client.h"
#include "base/random.h"
#include "control/lanes.h"
#include "control/world.h"
#include "control/world_log.h"
#include "device_objects.h"
#include "due.h"
#include "fabric/provider.h"
#include "follow.h"
#include "pool.h"
#include "query_streams.h"
#include "register.h"

enum { TASKS = 4 };

struct host {
    struct world world; /* the first member */
    const struct host_config *config;
    struct http_client *http;
    uint64_t alarm_ns;
    struct base_prng prng;
    struct world_task *task[TASKS];
    uint32_t tasks;
    uint32_t puts, settings;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops fab_ops;
    struct fab_pd pd;
    struct fab_dct dct;
    struct fab_mr mr;
    struct agent_table table;
    struct fab_ah ah[AGENT_METASERVERS];
    struct fab_ctl *resolving[AGENT_METASERVERS];
    uint32_t resolvings, ahs;
    uint64_t lane[8]; /* nobody looks into it */
};

/* No lane runs: what is asked of it is as of one that has nothing to do. The linker puts this in
 * the place of the lane's own. */
uint64_t __wrap_lane_lookups_failed(const struct lane *lane);
uint64_t __wrap_lane_lookups_failed(const struct lane *lane)
{
    (void)lane;
    return 0;
}

bool __wrap_lane_window(const struct lane *lane, enum lane_window_scope scope, uint32_t number,
                        struct lane_window *out);
bool __wrap_lane_window(const struct lane *lane, enum lane_window_scope scope, uint32_t number,
                        struct lane_window *out)
{
    (void)lane, (void)scope, (void)number;
    memset(out, 0, sizeof *out);
    return true;
}

static struct host *host_of(struct world *w)
{
    return (struct host *)w;
}

/* ---- its world */

static uint64_t tell_now(struct world *w)
{
    (void)w;
    return base_clock_ns();
}

static uint64_t tell_wall(struct world *w)
{
    (void)w;
    return base_clock_wall_ms();
}

static int draw_random(struct world *w, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)base_prng_next(&host_of(w)->prng);
    return 0;
}

static void set_alarm(struct world *w, uint64_t due_ns)
{
    host_of(w)->alarm_ns = due_ns;
}

static int begin_call(struct world *w, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct host *h = host_of(w);
    struct http_call c = *call;
    c.tls = h->config->tls;
    c.token_file = h->config->token_file;
    const size_t length = strlen(call->url), id_length = strlen(h->agent.config.node);
    h->puts += call->method != NULL && strcmp(call->method, "PUT") == 0 && length > id_length &&
               strcmp(call->url + length - id_length, h->agent.config.node) == 0;
    return http_client_call(h->http, &c, done, user, id);
}

static int cancel_call(struct world *w, uint64_t id)
{
    return http_client_cancel(host_of(w)->http, id);
}

static bool has_token(struct world *w, const uint8_t gid[16], struct base_errbuf *why)
{
    (void)w, (void)gid, (void)why;
    return true;
}

static bool is_token_private(struct world *w, struct base_errbuf *why)
{
    (void)w, (void)why;
    return true;
}

static int load_nothing(struct world *w, const char *name, void *bytes, size_t capacity,
                        size_t *length)
{
    (void)w, (void)name, (void)bytes, (void)capacity, (void)length;
    return -ENOENT;
}

/* What it keeps on its disk is not the matter here: it is kept at the next tick. */
static void begin_task(struct world *w, struct world_task *task)
{
    struct host *h = host_of(w);
    BASE_ASSERT(h->tasks < TASKS);
    h->settings += task->work == WORLD_SAVE_STATE;
    h->task[h->tasks++] = task;
}

static void run_here(struct world *w, struct world_task *task)
{
    (void)w;
    task->status = 0;
}

static uint64_t tell_memory(struct world *w, bool *of_group)
{
    (void)w;
    *of_group = false;
    return UINT64_MAX;
}

static void stop_world(struct world *w)
{
    (void)w;
}

static void tell_lane(struct world *w, struct world_lane *l, const struct lane_command *command)
{
    (void)w, (void)l, (void)command;
}

/* What is wrong; and all of it, if that is wanted. */
static void write_log(struct world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    if (level <= BASE_LOG_ERROR || getenv("KEDGE_AGENTS_LOG") != NULL)
        fprintf(stderr, "%s: %s %s\n", host_of(w)->agent.config.node, event, line);
}

static uint64_t count_dropped(struct world *w)
{
    (void)w;
    return 0;
}

static const struct world_log_ops LOG_OPS = {.write = write_log, .dropped = count_dropped};
static const struct world_lane_ops LANE_OPS = {.command = tell_lane};
static const struct world_ops WORLD_OPS = {
    .now_ns = tell_now,
    .wall_ms = tell_wall,
    .random = draw_random,
    .alarm = set_alarm,
    .call = begin_call,
    .cancel = cancel_call,
    .has_token = has_token,
    .token_is_private = is_token_private,
    .load = load_nothing,
    .run = begin_task,
    .run_here = run_here,
    .memory_most = tell_memory,
    .stop = stop_world,
};

/* ---- its device */

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    struct host *h = (struct host *)((char *)fab - offsetof(struct host, fab));
    BASE_ASSERT(h->resolvings < AGENT_METASERVERS);
    h->resolving[h->resolvings++] = ctl;
}

static int run_fab(struct fab *fab)
{
    (void)fab;
    return 0;
}

static void end_resolving(struct host *h)
{
    while (h->resolvings > 0) {
        struct fab_ctl *ctl = h->resolving[--h->resolvings];
        if (ctl->kind == FAB_CREATE_AH)
            ctl->ah.x = &h->ah[h->ahs++ % AGENT_METASERVERS];
        ctl->status = 0;
        ctl->done(ctl);
    }
}

static void make_device(struct host *h, uint32_t number)
{
    struct agent_device *d = &h->pool.device;
    const uint32_t low = htonl(number + 1);
    h->fab_ops = (struct fab_ops){.submit = submit, .run = run_fab};
    h->fab.ops = &h->fab_ops;
    h->fab.caps.gid[0] = 0xfd;
    h->fab.caps.gid[1] = 0xb;
    memcpy(&h->fab.caps.gid[12], &low, sizeof low);
    h->fab.caps.mtu = IBV_MTU_4096;
    h->pd = (struct fab_pd){.fab = &h->fab};
    h->dct.dctn = 7;
    h->dct.dc_key = base_prng_next(&h->prng);
    h->mr = (struct fab_mr){.addr = 4096, .rkey = 5};
    h->table.mr = &h->mr;
    d->fab = &h->fab;
    d->pd = d->system_pd = &h->pd;
    d->dct = &h->dct;
    d->table = &h->table;
    d->mr_log2 = 10;
}

/* ---- all of it */

struct host *host_new(const struct host_config *config, uint32_t number, struct base_errbuf *err)
{
    struct host *h = calloc(1, sizeof *h);
    if (h == NULL || config->urls > AGENT_METASERVERS) {
        base_err(err, -ENOMEM, "no memory for an agent, or too many metaservers");
        free(h);
        return NULL;
    }
    int status = http_client_new(&h->http);
    if (status != 0) {
        base_err(err, status, "an agent's HTTP client cannot begin: %s", strerror(-status));
        free(h);
        return NULL;
    }
    h->config = config;
    h->alarm_ns = UINT64_MAX;
    h->world = (struct world){.ops = &WORLD_OPS, .lanes = &LANE_OPS, .log = &LOG_OPS};
    base_prng_seed(&h->prng, 0x5eed0000 + number);
    struct agent *a = &h->agent;
    a->world = h->pool.world = &h->world;
    a->fab = &h->fab;
    a->incarnation = h->pool.incarnation = (uint32_t)(base_clock_wall_ms() / 1000);
    a->pools[0] = &h->pool;
    a->config.metaservers = config->urls;
    snprintf(a->config.node, sizeof a->config.node, "storm-%u", number);
    snprintf(h->pool.name, sizeof h->pool.name, "default");
    h->pool.agent = a;
    h->pool.config = &a->config;
    h->pool.number = 1;
    h->pool.lane = (struct lane *)h->lane;
    for (uint32_t i = 0; i < config->urls; i++) {
        snprintf(a->config.metaserver[i], AGENT_TEXT, "%s", config->url[i]);
        h->pool.registration[i].lane.number = i;
    }
    make_device(h, number);
    agent_registrations_start(&h->pool);
    agent_follow_start(a);
    return h;
}

void host_free(struct host *h)
{
    if (h == NULL)
        return;
    http_client_free(h->http);
    free(h);
}

int host_fd(const struct host *h)
{
    return http_client_fd(h->http);
}

void host_run(struct host *h)
{
    http_client_run(h->http);
    end_resolving(h);
}

void host_tick(struct host *h)
{
    const uint64_t now = base_clock_ns();
    if (h->alarm_ns <= now)
        world_timers_run(&h->world);
    for (; h->tasks > 0; h->task[h->tasks]->done(h->task[h->tasks]->user)) {
        h->tasks--;
        h->task[h->tasks]->status = 0;
    }
    if (agent_follow_due_ns(&h->agent) <= now)
        agent_follow_tick(&h->agent);
    if (agent_query_streams_due_ns(&h->agent) <= now)
        agent_query_streams_tick(&h->agent);
}

uint64_t host_due_ns(const struct host *h)
{
    uint64_t due_ns = h->tasks > 0 ? DUE_NOW : h->alarm_ns;
    due_ns = due_first(due_ns, agent_follow_due_ns(&h->agent));
    return due_first(due_ns, agent_query_streams_due_ns(&h->agent));
}

bool host_is_registered(const struct host *h, uint32_t metaserver)
{
    const struct registration *r = &h->pool.registration[metaserver];
    return r->state == REGISTRATION_DONE && r->quiet[0] == '\0';
}

bool host_follows(const struct host *h)
{
    return h->agent.follow.call != 0 && h->settings > 0;
}

uint32_t host_puts(const struct host *h)
{
    return h->puts;
}
