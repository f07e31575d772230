/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_change.h"
#include "admin_handlers.h"
#include "agent_looks.h"
#include "agent_query.h"
#include "clock_watch.h"
#include "connection.h"
#include "device_events.h"
#include "follow.h"
#include "leases.h"
#include "bounds.h"
#include "pools.h"
#include "life.h"
#include "register.h"
#include "sessions.h"
#include "superseded.h"
#include "windows.h"
#include "base/assert.h"
#include "base/clock.h"
#include "cluster.h"
#include "calls.h"
#include "ledger.h"
#include "control/attach.h"
#include "os.h"
#include "os_calls.h"
#include "moves.h"
#include "random.h"
#include "trace.h"

enum { PLAY_TICK_MS = 200 }; /* ticks are no less apart */

/* ---- the loop */

static void run_control(void *user)
{
    const struct play_agent *a = user;
    agent_run_fabric(a->agent);
}

static void run_events(void *user)
{
    const struct play_agent *a = user;
    agent_device_events(a->agent);
}

static void run_timers(void *user)
{
    struct play_agent *a = user;
    world_timers_run(&a->world);
}

static void on_turned(void *user)
{
    const struct play_agent *a = user;
    agent_turned(a->agent);
}

static void on_alarm(void *user)
{
    struct play_agent *a = user;
    play_inbox_put(&a->inbox, &a->alarm_post);
}

void play_agent_device_ready(struct play_agent *a, int fd)
{
    if (a->agent == NULL || a->agent->fab == NULL)
        return;
    if (fd == fab_ctl_fd(a->agent->fab))
        play_inbox_put(&a->inbox, &a->control_post);
    else if (fd == fab_event_fd(a->agent->fab))
        play_inbox_put(&a->inbox, &a->event_post);
    else if (!play_agent_lane_ready(a, fd))
        (void)play_agent_watch_ready(a, fd);
}

/* ---- its start */

static int configure_agent(const struct play_agent *a, struct agent_config *c,
                           struct base_errbuf *err)
{
    const struct play_agent_settings *s = &a->settings;
    const int status = agent_config_read(NULL, c, err);
    if (status != 0)
        return status;
    (void)snprintf(c->node, sizeof c->node, "%s", s->node);
    (void)snprintf(c->state_dir, sizeof c->state_dir, "%s", OS_DISK);
    memcpy(c->gid, s->gid, sizeof c->gid);
    (void)snprintf(c->transport, sizeof c->transport, "%s", s->transport);
    c->lanes = play_cluster_lanes();
    if (s->connections != 0)
        c->connections = s->connections;
    if (s->connections_per_peer != 0)
        c->connections_per_peer = s->connections_per_peer;
    if (s->responders != 0)
        c->responders = s->responders;
    c->messages = s->receives != 0;
    c->messages_near = !s->by_device;
    if (c->messages)
        c->receives = s->receives;
    c->metaservers = s->metaservers;
    memcpy(c->metaserver, s->metaserver, sizeof s->metaserver);
    memcpy(c->tenant, s->tenant, sizeof s->tenant);
    c->tenants = s->tenants;
    for (uint32_t i = 0; i < c->tenants; i++)
        c->tenant[i].id = agent_tenant_id(c->tenant[i].name);
    c->arena_bytes = s->arena_bytes;
    c->sessions_ahead = c->arenas_ahead = s->workers;
    c->max_sessions = 4 * (uint64_t)s->workers + 8;
    c->max_peers = 1024;
    c->max_mrs = 1024;
    c->sq_slots = 64;
    c->cq_slots = 128;
    c->max_vqps = c->max_inflight = 64;
    c->regions_ahead = 0;
    c->window = s->window;
    c->queue_pairs_ahead = s->queue_pairs_ahead;
    return 0;
}

/* Nothing else runs the loop yet. */
static int start_pools(struct play_agent *p, struct base_errbuf *err)
{
    struct agent *a = p->agent;
    const struct agent_pool_config own = agent_follow_read(a);
    agent_attach_init(a);
    int status = agent_pools_start(a, &own, err);
    while (status == 0 && agent_pools_are_starting(a) && !a->device_lost)
        (void)play_inbox_step(&p->inbox, PLAY_NEVER);
    if (status == 0 && a->device_lost)
        return base_err(err, -EIO, "the device was removed or broke");
    return status == 0 ? agent_pools_check(a, err) : status;
}

static void begin_serving(struct play_agent *p)
{
    struct agent *a = p->agent;
    agent_follow_load(a);
    agent_windows_apply(a);
    play_agent_listen(p);
    agent_admin_init(a);
    a->registering = true;
    for (struct pool *pool = agent_pools_next(a, NULL); pool != NULL;
         pool = agent_pools_next(a, pool))
        agent_registrations_start(pool);
    agent_follow_start(a);
    agent_turned(a);
}

static int start_agent(struct play_agent *p, struct base_errbuf *err)
{
    struct agent *a = p->agent;
    a->started_ns = world_now_ns(a->world);
    int status =
        play_agent_take_incarnation(p, agent_superseded_least_incarnation(a->min_incarnation), err);
    if (status == 0)
        status = agentd_fabric_open(a, err);
    if (status == 0)
        status = agent_leases_start(a);
    if (status != 0)
        return status;
    agent_address_init(a);
    agent_clock_watch_init(a);
    agent_begin_ticks(a);
    agent_tenants_init(&a->tenants, &a->config);
    status = start_pools(p, err);
    if (status == 0)
        begin_serving(p);
    return status;
}

/* ---- its end */

/* The lane says why before the sockets close. */
static void wait_until_told(const struct play_agent *p)
{
    const struct agent *a = p->agent;
    const uint64_t end_ns = play_now_ns() + TOLD_MS * BASE_NS_PER_MS;
    for (struct pool *pool = agent_pools_next(a, NULL); pool != NULL;
         pool = agent_pools_next(a, pool))
        for (uint64_t i = 0; pool->sessions != NULL && i < a->config.max_sessions; i++)
            while (pool->sessions[i].stage == STAGE_ENDING &&
                   atomic_load(&pool->sessions[i].rings.ro->ended) == 0 && play_now_ns() < end_ns)
                play_process_sleep(100 * BASE_NS_PER_US);
}

static bool begins_anew(const struct agent *a)
{
    return a->superseded_by != 0 && !a->terminated && !a->device_lost;
}

static uint32_t why_sessions_end(const struct agent *a)
{
    return a->device_lost   ? SCHEMA_REASON_DEVICE_LOST
           : begins_anew(a) ? SCHEMA_REASON_RESTARTED
                            : SCHEMA_REASON_DRAIN;
}

/* Each object that it has made, in whichever of its pools' lives, is destroyed again. A device that
 * has some left cannot be closed, which an agent would log; it crashes instead. */
static void judge_device(struct play_agent *p)
{
    struct fab *fab = p->agent->fab;
    if (fab == NULL || sim_device_objects(fab) == 0)
        return;
    play_violation(p->process->name, "%u objects of its device are left when it ends",
                   sim_device_objects(fab));
    sim_device_crash(fab);
    p->agent->fab = NULL;
}

static void stop_agent(struct play_agent *p)
{
    struct agent *a = p->agent;
    const uint64_t end_ns = play_now_ns() + GRACE_MS * BASE_NS_PER_MS;
    a->stopping = true;
    for (struct pool *pool = agent_pools_next(a, NULL); pool != NULL;
         pool = agent_pools_next(a, pool))
        pool->stopping = true;
    agent_pools_end_sessions(a, why_sessions_end(a));
    wait_until_told(p);
    play_agent_unlisten(p);
    agent_attach_close_all(a);
    agent_follow_stop(a);
    agent_registrations_leave(a, GRACE_MS);
    while (a->unregistering > 0 && play_inbox_step(&p->inbox, end_ns)) {
    }
    play_calls_end(&p->inbox, true);
    agent_query_stop(a);
    agent_publications_stop(a);
    agent_admin_fini(a);
    agent_end_ticks(a);
    p->ending = true;
    play_event_cancel(&p->alarm);
    while (p->sockets != NULL)
        (void)play_inbox_step(&p->inbox, PLAY_NEVER);
    play_agent_finish_tasks(p);
    agent_follow_fini(a);
    agent_pools_stop(a);
    judge_device(p);
    agentd_fabric_close(a);
}

/* ---- its life */

static int serve_agent(struct play_agent *p)
{
    p->ending = p->told_to_stop = false;
    p->moves_seen = 0;
    play_ledger_new_life(p->host->number);
    p->looks = play_agent_looks_new();
    BASE_ASSERT(p->looks != NULL);
    const int status = start_agent(p, &p->why);
    p->ready = status == 0;
    if (status == 0)
        play_trace(p->process->name, "ready, incarnation %u", p->agent->incarnation);
    else
        play_trace(p->process->name, "cannot begin: %s", p->why.text);
    while (status == 0 && !p->told_to_stop) {
        (void)play_inbox_step(&p->inbox, PLAY_NEVER);
        play_agent_look(p->looks, p->agent, p->process->name);
        play_move_sessions(p->agent, &p->random, &p->moves_seen);
    }
    p->ready = false;
    play_agent_looks_free(p->looks);
    p->looks = NULL;
    stop_agent(p);
    return status;
}

/* Once more whenever a metaserver knew a later incarnation. */
static void run_agent(void *user)
{
    struct play_agent *p = user;
    struct agent *a = p->agent = os_calloc(1, sizeof *a);
    BASE_ASSERT(a != NULL);
    int status = configure_agent(p, &a->config, &p->why);
    BASE_ASSERT(status == 0);
    a->world = &p->world;
    status = serve_agent(p);
    while (status == 0 && begins_anew(a)) {
        /* One whose former life had begun above a later one may begin as that, where it does not
         * know of it. */
        if (a->superseded_by == a->incarnation && !p->unknowing)
            play_violation(p->process->name,
                           "it is taken for another process of its incarnation %u", a->incarnation);
        struct agent *next = os_calloc(1, sizeof *next);
        BASE_ASSERT(next != NULL);
        agent_life_begin_anew(next, a);
        p->unknowing = false;
        os_free(a);
        a = p->agent = next;
        status = serve_agent(p);
    }
    p->failed = status != 0;
    os_free(a);
    p->agent = NULL;
    play_trace(p->process->name, "ended");
}

static void on_killed(struct play_process *process, void *user)
{
    struct play_agent *p = user;
    struct fab *fab = p->agent != NULL ? p->agent->fab : NULL;
    (void)process;
    play_agent_unlisten(p);
    play_calls_end(&p->inbox, false);
    play_agent_drop_sockets(p);
    play_agent_forget_tasks(p);
    play_agent_forget_lanes(p);
    play_agent_forget_channels(p);
    play_agent_stop_watching(p);
    if (fab != NULL)
        sim_device_crash(fab);
}

static void on_stop(void *user)
{
    struct play_agent *a = user;
    if (a->agent != NULL)
        a->agent->terminated = true;
    a->told_to_stop = true;
}

struct play_agent *play_agent_start(struct play_host *host,
                                    const struct play_agent_settings *settings, uint64_t seed)
{
    struct play_agent *a = calloc(1, sizeof *a);
    BASE_ASSERT(a != NULL);
    a->process = play_process_new(host, "agentd", seed, run_agent, a);
    BASE_ASSERT(a->process != NULL);
    a->process->killed = on_killed;
    a->world = (struct world){.ops = &PLAY_WORLD_OPS,
                              .sockets = &PLAY_SOCKET_OPS,
                              .lanes = &PLAY_LANE_OPS,
                              .admin = &PLAY_ADMIN_OPS,
                              .log = &PLAY_LOG_OPS,
                              .page_bytes = 4096,
                              .tick_ns = PLAY_TICK_MS * BASE_NS_PER_MS,
                              .keeps_whole = true};
    a->host = host;
    a->settings = *settings;
    a->random = play_random_of(seed, a->process->name, play_now_ns() + 1);
    a->alarm = (struct play_event){.happen = on_alarm, .user = a, .owner = &a->process->owner};
    a->alarm_post = (struct play_post){.run = run_timers, .user = a};
    a->control_post = (struct play_post){.run = run_control, .user = a};
    a->event_post = (struct play_post){.run = run_events, .user = a};
    a->stop_post = (struct play_post){.run = on_stop, .user = a};
    play_inbox_init(&a->inbox, a->process);
    a->inbox.turned = on_turned;
    a->inbox.user = a;
    play_agent_path(host, a->path, sizeof a->path);
    return a;
}

void play_agent_stop(struct play_agent *a)
{
    play_inbox_put(&a->inbox, &a->stop_post);
}

void play_agent_kill(struct play_agent *a)
{
    play_process_kill(a->process);
    play_agent_looks_free(a->looks);
    free(a);
}

/* ---- what is due */

/* Whatever has to be looked at says so (due.h): a tick before its time finds nothing to do. */
static void look_at_tick(struct play_agent *a)
{
    struct agent *of = a->agent;
    struct play_process *before = play_process_enter(a->process);
    const uint64_t now_ns = play_host_now_ns(a->host), due_ns = agent_due_ns(of),
                   least_ns = of->ticked_ns + a->world.tick_ns, did = play_agent_effects(a);
    if (due_ns != UINT64_MAX &&
        world_timer_due_ns(&of->tick) > (due_ns > least_ns ? due_ns : least_ns))
        play_violation(a->process->name, "something is due before its next tick");
    if (due_ns > now_ns)
        agent_tick(of);
    if (due_ns > now_ns && play_agent_effects(a) != did)
        play_violation(a->process->name, "it had something to do, and nothing was due");
    play_process_leave(before);
}

/* As it is between two turns. */
void play_agent_look_at_rest(struct play_agent *a)
{
    if (!a->ready || a->told_to_stop || !a->inbox.waits || a->inbox.first != NULL ||
        a->process->owner.paused_until_ns >= play_now_ns())
        return;
    play_agent_look_at_told(a->looks, a->agent, a->process->name);
    look_at_tick(a);
}

/* ---- what is left */

static const char *find_left(struct pool *p)
{
    static char text[160];
    struct lane_stats n;
    struct lane_window w;
    lane_stats(p->lane, &n);
    (void)lane_window(p->lane, LANE_WINDOW_DEVICE, 0, &w);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (atomic_load(&p->quota[i].vqps) + atomic_load(&p->quota[i].mrs) != 0)
            return "a tenant's quota counts what no worker has";
    if (n.sessions + n.vqps + n.inflight + n.mrs + w.bytes + w.ops + p->count.live +
            p->count.ending ==
        0)
        return NULL;
    (void)snprintf(text, sizeof text,
                   "%llu and %u sessions, %llu VQPs, %llu requests and %llu regions are left; the "
                   "window counts %llu",
                   (unsigned long long)n.sessions, p->count.live + p->count.ending,
                   (unsigned long long)n.vqps, (unsigned long long)n.inflight,
                   (unsigned long long)n.mrs, (unsigned long long)w.ops);
    return text;
}

const char *play_agent_left(struct play_agent *a)
{
    const struct agent *of = a->agent;
    if (!a->ready)
        return NULL;
    for (struct pool *p = agent_pools_next(of, NULL); p != NULL; p = agent_pools_next(of, p)) {
        const char *left = find_left(p);
        if (left != NULL)
            return left;
    }
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (of->tenants.at[i].arena_bytes != 0)
            return "memory of a tenant is counted that has no worker";
    return NULL;
}

void play_agent_path(const struct play_host *host, char *path, size_t size)
{
    (void)snprintf(path, size, "/%s/agent.sock", host->name);
}

/* ---- nobody asks at its admin socket */

static void answer_nobody(struct world *w, struct world_request *r,
                          const struct admin_answer *answer)
{
    (void)w, (void)r, (void)answer;
    BASE_ASSERT(!"there is no admin socket");
}

static void refuse_nobody(struct world *w, struct world_request *r, int errnum, const char *detail)
{
    (void)w, (void)r, (void)errnum, (void)detail;
    BASE_ASSERT(!"there is no admin socket");
}

static bool is_nobody(struct world *w, const struct world_request *r)
{
    (void)w, (void)r;
    return true;
}

const struct world_admin_ops PLAY_ADMIN_OPS = {
    .answer = answer_nobody, .refuse = refuse_nobody, .is_gone = is_nobody};
