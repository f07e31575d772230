/* SPDX-License-Identifier: Apache-2.0 */
#include "loop_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "device_events.h"
#include "fd_watch.h"
#include "loop_world.h"
#include "metaserver_client.h"
#include "ring_guard.h"
#include "serve.h"
#include "windows.h"

enum { NOTIFY_AGAIN_MS = 100 }; /* what the supervisor had no room for */

static void on_control(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    agent_run_fabric(poll->data);
}

static void on_device_events(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    agent_device_events(poll->data);
}

static void on_rings(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
    agentd_ring_guard_report();
}

static void on_notify(uv_timer_t *timer)
{
    struct loop_world *w = timer->data;
    w->notified_ns = base_clock_ns();
    base_notify_tick(w->notified_ns);
}

/* Set anew before the loop waits, whatever has happened: what was said, or not taken, counts. */
static void set_notify(struct loop_world *w)
{
    const uint64_t now_ns = base_clock_ns(),
                   least_ns = w->notified_ns + NOTIFY_AGAIN_MS * BASE_NS_PER_MS;
    uint64_t due_ns = base_notify_due_ns();
    if (due_ns == UINT64_MAX)
        return;
    due_ns = due_ns > least_ns ? due_ns : least_ns;
    (void)uv_timer_start(&w->notify, on_notify,
                         due_ns > now_ns ? (due_ns - now_ns) / BASE_NS_PER_MS + 1 : 0, 0);
}

static void on_turned(uv_prepare_t *prepare)
{
    struct loop_world *w = prepare->data;
    agent_turned(w->agent);
    set_notify(w);
}

/* It stays readable, so that it is watched no more. */
static void on_told(uv_poll_t *poll, int status, int events)
{
    struct agent *a = poll->data;
    (void)status, (void)events;
    (void)uv_poll_stop(poll);
    base_log(BASE_LOG_INFO, "stopping", "signal=%d", agentd_stop_watch_told());
    a->terminated = true;
    world_stop(a->world);
}

void agentd_tell_ready(const struct agent *a)
{
    char gid[BASE_GID_TEXT], status[BASE_NOTIFY_TEXT];
    snprintf(status, sizeof status, "node %.200s, gid %s", a->config.node,
             base_gid_format(a->fab->caps.gid, gid));
    base_notify_ready(status);
}

static void reload_config(struct agent *a)
{
    struct base_errbuf err = {"out of memory"};
    struct agent_config *fresh = malloc(sizeof *fresh);
    int status = fresh != NULL ? agent_config_read(a->config_path, fresh, &err) : -ENOMEM;
    if (status == 0)
        status = agent_windows_reload(a, fresh, &err);
    if (status != 0)
        base_log(BASE_LOG_ERROR, "the settings stay as they were", "why=\"%s\"", err.text);
    free(fresh);
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    struct loop_world *w = loop_world_of(((struct agent *)poll->data)->world);
    struct signalfd_siginfo info;
    (void)status, (void)events;
    if (read(w->hangup_fd, &info, sizeof info) != sizeof info)
        return;
    base_notify_reloading();
    reload_config(poll->data);
    agentd_metaserver_tls_look(w);
    agentd_tell_ready(poll->data);
}

int agentd_loop_events_watch(struct loop_world *w, const struct process *process,
                             struct base_errbuf *err)
{
    struct agent *a = w->agent;
    w->control_poll.data = w->events_poll.data = w->told.data = w->hangup.data = w->rings.data = a;
    w->turned.data = w->notify.data = w;
    w->hangup_fd = process->hangup_fd;
    int status = agentd_fd_watch(&w->loop, &w->control_poll, fab_ctl_fd(a->fab), on_control, err);
    if (status == 0)
        status =
            agentd_fd_watch(&w->loop, &w->events_poll, fab_event_fd(a->fab), on_device_events, err);
    if (status == 0)
        status = agentd_fd_watch(&w->loop, &w->told, process->watch.told_fd, on_told, err);
    if (status == 0 && agentd_ring_guard_fd() >= 0)
        status = agentd_fd_watch(&w->loop, &w->rings, agentd_ring_guard_fd(), on_rings, err);
    if (status != 0)
        return status;
    (void)uv_timer_init(&w->loop, &w->notify);
    (void)uv_prepare_init(&w->loop, &w->turned);
    (void)uv_prepare_start(&w->turned, on_turned);
    agent_begin_ticks(a);
    return 0;
}

int agentd_loop_events_watch_hangup(struct loop_world *w, struct base_errbuf *err)
{
    return agentd_fd_watch(&w->loop, &w->hangup, w->hangup_fd, on_hangup, err);
}
