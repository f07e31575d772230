/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address_change.h"
#include "admin_handlers.h"
#include "admin_http.h"
#include "agent.h"
#include "agent_query.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "bounds.h"
#include "clock_watch.h"
#include "connection.h"
#include "device.h"
#include "follow.h"
#include "incarnation.h"
#include "leases.h"
#include "life.h"
#include "loop_events.h"
#include "loop_world.h"
#include "metaserver_client.h"
#include "pools.h"
#include "publications.h"
#include "register.h"
#include "sessions.h"
#include "superseded.h"
#include "windows.h"

int agentd_fail_start(const char *sentence)
{
    base_log_fail("kedge-agentd", sentence);
    return EXIT_FAILURE;
}

int agentd_fail_for_good(const char *sentence)
{
    (void)agentd_fail_start(sentence);
    return 2;
}

/* That it goes on: after the loop has run for what is made before anybody listens. */
static int check_begun(const struct agent *a, struct base_errbuf *err)
{
    if (a->terminated)
        return -ECANCELED;
    return a->device_lost ? base_err(err, -EIO,
                                     "the device was removed or broke while the agent began: see "
                                     "the log")
                          : 0;
}

/* Nothing else runs the loop yet: that the device is lost meanwhile, or that the agent is told to
 * end, ends this, and not the loop that comes later. */
static int start_pools(struct loop_world *w, struct base_errbuf *err)
{
    struct agent *a = w->agent;
    const struct agent_pool_config own = agent_follow_read(a);
    agent_attach_init(a);
    int status = agent_pools_start(a, &own, err);
    while (status == 0 && agent_pools_are_starting(a) && !a->device_lost && !a->terminated)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    if (status == 0)
        status = check_begun(a, err);
    return status == 0 ? agent_pools_check(a, err) : status;
}

static int take_incarnation(struct agent *a, struct base_errbuf *err)
{
    uint32_t incarnation = 0;
    bool lost = false;
    const int status = agentd_incarnation_next(
        a->config.state_dir, base_clock_wall_s(),
        agent_superseded_least_incarnation(a->min_incarnation), &incarnation, &lost, err);
    if (lost)
        base_log(BASE_LOG_WARN, "the saved incarnation made no sense", "incarnation=%u",
                 incarnation);
    if (status == 0)
        agent_life_begin(a, incarnation);
    return status;
}

/* And what only has to be looked at from then on. */
static int open_fabric(struct agent *a, struct base_errbuf *err)
{
    int status = agentd_fabric_open(a, err);
    if (status == 0 && (status = agent_leases_start(a)) != 0)
        return base_err(err, status, "there are no random numbers: %s", strerror(-status));
    if (status != 0)
        return status;
    agent_address_init(a);
    agent_clock_watch_init(a);
    agent_tenants_init(&a->tenants, &a->config);
    agent_admin_init(a);
    return 0;
}

/* Nobody listens yet. A pool that fails, or whose device takes long, is not waited for. */
static int await_pools(struct loop_world *w, struct base_errbuf *err)
{
    const struct agent *a = w->agent;
    while (agent_pools_any_pending(a) && !a->device_lost && !a->terminated)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    return check_begun(a, err);
}

/* What metaservers said last is in force before any worker comes, and the file's hold whatever they
 * said. */
static int open_sockets(struct loop_world *w, struct base_errbuf *err)
{
    struct agent *a = w->agent;
    agent_follow_load(a);
    agent_windows_apply(a);
    int status = await_pools(w, err);
    if (status == 0)
        status = agentd_listeners_open(&w->sockets, &a->config, err);
    return status == 0 ? agentd_admin_listen(w, err) : status;
}

static void begin_registering(struct agent *a)
{
    a->registering = true;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_registrations_start(p);
    agent_follow_start(a);
}

/* Each needs those before it. Whatever has been begun when one fails is stop_agent()'s. */
static int start_agent(struct loop_world *w, struct process *process, struct base_errbuf *err)
{
    struct agent *a = w->agent;
    int status = take_incarnation(a, err);
    if (status == 0)
        status = agentd_closer_start(&w->sockets.closer, err);
    agentd_stop_watch_step(&process->watch, (struct stop_step){.during = "opening the device"});
    if (status == 0)
        status = open_fabric(a, err);
    agentd_stop_watch_step(
        &process->watch,
        (struct stop_step){.during = "making what the agent lends", .fab = a->fab});
    if (status == 0)
        status = agentd_emptier_start(&w->emptier, err);
    if (status == 0)
        status = agentd_tasks_start(&w->tasks, TASK_RUNS, &w->emptier, &w->loop, err);
    if (status == 0)
        status = agentd_loop_events_watch(w, process, err);
    if (status == 0)
        status = start_pools(w, err);
    if (status == 0)
        status = agentd_metaserver_client_start(w, err);
    if (status == 0)
        status = open_sockets(w, err);
    if (status == 0 && a->config_path != NULL)
        status = agentd_loop_events_watch_hangup(w, err);
    if (status == 0)
        begin_registering(a);
    return status;
}

static bool begins_anew(const struct agent *a)
{
    return a->superseded_by != 0 && !a->terminated;
}

static uint32_t why_sessions_end(const struct agent *a)
{
    return a->device_lost   ? SCHEMA_REASON_DEVICE_LOST
           : begins_anew(a) ? SCHEMA_REASON_RESTARTED
                            : SCHEMA_REASON_DRAIN;
}

/* The lane says why before the sockets close: a worker believes what it sees first. */
static void wait_until_told(const struct agent *a)
{
    const uint64_t end = base_clock_ns() + TOLD_MS * BASE_NS_PER_MS;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint64_t i = 0; p->sessions != NULL && i < a->config.max_sessions; i++)
            while (p->sessions[i].stage == STAGE_ENDING &&
                   atomic_load(&p->sessions[i].rings.ro->ended) == 0 && base_clock_ns() < end)
                usleep(100);
}

/* Before anything that takes time: nobody comes any more, and all hear why. */
static void send_workers_away(struct loop_world *w)
{
    struct agent *a = w->agent;
    a->stopping = true;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        p->stopping = true;
    agent_pools_end_sessions(a, why_sessions_end(a));
    wait_until_told(a);
    agentd_listeners_close(&w->sockets);
}

/* While metaservers can be called. */
static void leave_metaservers(struct loop_world *w)
{
    agent_follow_stop(w->agent);
    agent_registrations_leave(w->agent, GRACE_MS);
    agentd_metaserver_client_await_leaving(w, GRACE_MS);
    agentd_metaserver_client_stop(w);
    agent_query_stop(w->agent);
    agent_publications_stop(w->agent);
}

/* Gives back what start_agent() has begun, however far that came: each is left alone that was not.
 * In the reverse order, but that workers come first, and that pools have to stay until the threads
 * are gone that work for them. False: of the device something is left, and only a new process gets
 * rid of that. */
static bool stop_agent(struct loop_world *w, struct stop_watch *watch)
{
    struct agent *a = w->agent;
    agentd_stop_watch_begin(watch);
    agentd_stop_watch_step(watch, (struct stop_step){.during = "telling workers", .fab = a->fab});
    send_workers_away(w);
    agentd_stop_watch_step(watch,
                           (struct stop_step){.during = "telling metaservers", .fab = a->fab});
    leave_metaservers(w);
    agentd_admin_stop(w);
    agent_end_ticks(a);
    agentd_loop_world_end(w);
    agentd_emptier_stop(&w->emptier);
    agentd_stop_watch_step(watch,
                           (struct stop_step){.during = "making and freeing memory, and writing "
                                                        "state_dir",
                                              .closer = &w->sockets.closer});
    agentd_tasks_stop(&w->tasks);
    agentd_loop_world_fini(w);
    agentd_stop_watch_step(watch, (struct stop_step){.during = "giving back what the device has",
                                                     .fab = a->fab,
                                                     .closer = &w->sockets.closer});
    agent_pools_stop(a);
    agentd_stop_watch_step(watch, (struct stop_step){.during = "closing the device"});
    agent_follow_fini(a);
    agent_admin_fini(a);
    const bool closed = agentd_fabric_close(a);
    agentd_socket_ender_stop(&w->sockets.ender);
    agentd_closer_stop(&w->sockets.closer);
    agentd_stop_watch_end(watch);
    return closed;
}

/* What the device owes still may come into the memory of this agent, which the next life would use
 * for its own. That begins in another process then, above what superseded this one. */
static int leave_to_supervisor(const struct agent *a)
{
    struct base_errbuf err = {""};
    uint32_t incarnation;
    bool lost;
    (void)agentd_incarnation_next(a->config.state_dir, base_clock_wall_s(),
                                  agent_superseded_least_incarnation(a->superseded_by),
                                  &incarnation, &lost, &err);
    return agentd_fail_start(
        "it cannot begin anew in this process, since the device did not give back "
        "all that it had: see the log; it does so when the supervisor restarts it");
}

static int serve_agent(struct agent *a, struct process *process)
{
    struct base_errbuf err = {""};
    char gid[BASE_GID_TEXT];
    struct loop_world world, *w = &world;
    int status = agentd_loop_world_init(w, a);
    if (status != 0) {
        (void)base_err(&err, status, "nothing can be waited for: %s%s", uv_strerror(status),
                       status == -EMFILE ? " (raise LimitNOFILE)" : "");
        return agentd_fail_start(err.text);
    }
    w->sockets.closer = (struct closer){
        .process = &process->closers, .loop = &w->loop, .refuse = agentd_listeners_refuse};
    w->emptier =
        (struct emptier){.process = &process->emptiers, .loop = &w->loop, .tenants = &a->tenants};
    agent_registrations_look_at_token(a);
    a->started_ns = base_clock_ns();
    status = start_agent(w, process, &err);
    if (status == 0) {
        agentd_stop_watch_step(&process->watch,
                               (struct stop_step){.during = "serving", .fab = a->fab});
        printf("kedge-agentd: ready, node %s, gid %s\n", a->config.node,
               base_gid_format(a->fab->caps.gid, gid));
        fflush(stdout);
        base_log(BASE_LOG_INFO, "ready", "node=%s gid=%s incarnation=%u socket=\"%s\"",
                 a->config.node, gid, a->incarnation, a->config.socket);
        agentd_tell_ready(a);
        (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    }
    if (begins_anew(a)) {
        base_notify_status("beginning anew: a metaserver knew a later incarnation");
    } else {
        if (a->device_lost)
            base_notify_status("the device is gone or broken: it ends with a failure");
        base_notify_stopping();
    }
    const bool closed = stop_agent(w, &process->watch);
    if (agentd_stop_watch_told() != 0 && (status == 0 || status == -ECANCELED))
        return EXIT_SUCCESS;
    if (status == 0 && a->device_lost)
        return agentd_fail_start(
            "the device is gone or broken: see the log; it begins anew when the supervisor "
            "restarts it");
    if (status == 0 && !closed && begins_anew(a))
        return leave_to_supervisor(a);
    /* EDOM: what is set does not go with this device (world_device()). */
    return status == 0       ? EXIT_SUCCESS
           : status == -EDOM ? agentd_fail_for_good(err.text)
                             : agentd_fail_start(err.text);
}

int agentd_serve(struct agent *a, struct process *process)
{
    struct base_errbuf err = {""};
    int lock;
    if (agentd_state_lock(a->config.state_dir, process->closers.pid != 0 ? ENDED_MS : 0, &lock,
                          &err) != 0)
        return agentd_fail_start(err.text);
    int status = serve_agent(a, process);
    while (status == EXIT_SUCCESS && begins_anew(a) && agentd_stop_watch_told() == 0) {
        const struct agent before = *a;
        agent_life_begin_anew(a, &before);
        status = serve_agent(a, process);
    }
    close(lock);
    return status;
}
