/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-agentd: parses, wires and runs. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "address_change.h"
#include "admin_handlers.h"
#include "admin_http.h"
#include "agent.h"
#include "agent_query.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/version.h"
#include "clock_watch.h"
#include "connection.h"
#include "device.h"
#include "device_events.h"
#include "fd_watch.h"
#include "follow.h"
#include "incarnation.h"
#include "leases.h"
#include "life.h"
#include "bounds.h"
#include "loop_world.h"
#include "metaserver_client.h"
#include "pools.h"
#include "probe_main.h"
#include "register.h"
#include "ring_guard.h"
#include "sessions.h"
#include "start_check.h"
#include "stop_watch.h"
#include "superseded.h"
#include "windows.h"

enum { NOTIFY_AGAIN_MS = 100 }; /* what the supervisor had no room for */

/* What stays from one life of the agent to the next. */
struct process {
    struct closer_process closers;
    struct emptier_process emptiers;
    struct stop_watch watch;
    int hangup_fd;
};

static int fail_start(const char *sentence)
{
    fprintf(stderr, "kedge-agentd: %s\n", sentence);
    return EXIT_FAILURE;
}

/* The command line or the settings: to begin again would change nothing. */
static int fail_for_good(const char *sentence)
{
    (void)fail_start(sentence);
    return 2;
}

/* ---- the loop */

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

static void tell_ready(const struct agent *a)
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
    const struct loop_world *w = loop_world_of(((struct agent *)poll->data)->world);
    struct signalfd_siginfo info;
    (void)status, (void)events;
    if (read(w->hangup_fd, &info, sizeof info) != sizeof info)
        return;
    base_notify_reloading();
    reload_config(poll->data);
    tell_ready(poll->data);
}

/* From its first sentence in the log on no signal interrupts it, and none is lost: they are read.
 * Other threads and processes are made later and get none. */
static void hold_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Of SIGHUP. While an agent begins, and while it begins anew, nobody reads it. */
static int open_hangups(int *fd, struct base_errbuf *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd >= 0 ? 0
                    : base_err(err, -errno, "signals cannot be heard: %s (raise LimitNOFILE)",
                               strerror(errno));
}

static int watch_events(struct loop_world *w, const struct process *process,
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

/* ---- starting and stopping */

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
        status = watch_events(w, process, err);
    if (status == 0)
        status = start_pools(w, err);
    if (status == 0)
        status = agentd_metaserver_client_start(w, err);
    if (status == 0)
        status = open_sockets(w, err);
    if (status == 0 && a->config_path != NULL)
        status = agentd_fd_watch(&w->loop, &w->hangup, w->hangup_fd, on_hangup, err);
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
    return fail_start("it cannot begin anew in this process, since the device did not give back "
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
        return fail_start(err.text);
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
        tell_ready(a);
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
        return fail_start(
            "the device is gone or broken: see the log; it begins anew when the supervisor "
            "restarts it");
    if (status == 0 && !closed && begins_anew(a))
        return leave_to_supervisor(a);
    /* EDOM: what is set does not go with this device (world_device()). */
    return status == 0       ? EXIT_SUCCESS
           : status == -EDOM ? fail_for_good(err.text)
                             : fail_start(err.text);
}

/* Once more whenever a metaserver knew a later incarnation: all that carries ours is made anew. */
static int serve_above_others(struct agent *a, struct process *process)
{
    struct base_errbuf err = {""};
    int lock;
    if (agentd_state_lock(a->config.state_dir, process->closers.pid != 0 ? ENDED_MS : 0, &lock,
                          &err) != 0)
        return fail_start(err.text);
    int status = serve_agent(a, process);
    while (status == EXIT_SUCCESS && begins_anew(a) && agentd_stop_watch_told() == 0) {
        const struct agent before = *a;
        agent_life_begin_anew(a, &before);
        status = serve_agent(a, process);
    }
    close(lock);
    return status;
}

static void print_help(void)
{
    printf(
        "usage: kedge-agentd [--config FILE] [--check-config]\n"
        "       kedge-agentd --probe [--config FILE] [--provider NAME] [--device NAME] [-o "
        "text|json]\n"
        "                    [--serve ADDRESS:PORT | --peer HOST:PORT/WORD]\n"
        "\n"
        "Keeps queue pairs and registered memory ready on this host, and lends them to workers.\n"
        "\n"
        "  --config FILE    settings (none: the defaults below)\n"
        "  --check-config   read the settings, say what is wrong, and end\n"
        "  --probe          try the device in all that Kedge does with it, report, and end\n"
        "  --version        print the version and end\n"
        "  --help           print this and end\n"
        "\n"
        "Settings, with their defaults:\n");
    agent_config_help(stdout);
}

/* Tables are large and sparse: huge pages that a kernel makes by itself would fill them (arenas ask
 * for theirs). And most of a session's memory then comes from the kernel and goes back to it,
 * whatever threads made and freed it; memory_reclaim.c trims the rest. */
static void keep_little_memory(void)
{
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
}

/* What the start would find out too, but for what only the device can say. */
static int check_only(const struct agent_config *config)
{
    struct base_errbuf why;
    printf("kedge-agentd: the settings are right\n");
    if (config->token_file[0] == '\0' && config->metaservers > 0)
        printf("kedge-agentd: it would begin, and be let in only by metaservers with access = "
               "open: token_file is not set\n");
    if (!agentd_start_check_token(config, config->gid, &why))
        printf("kedge-agentd: it would begin, and not be let in by metaservers: %s\n", why.text);
    if (!agentd_start_check_privacy(config, &why))
        printf("kedge-agentd: it would begin, but %s\n", why.text);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"check-config", no_argument, NULL, 'k'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    static struct agent agent;
    static struct process process;
    struct base_errbuf err = {""};
    enum base_log_level level = BASE_LOG_INFO;
    const char *path = NULL;
    bool check = false;
    keep_little_memory();
    if (agentd_probe_is_asked_for(argc, argv))
        return agentd_probe_main(argc, argv);
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            path = optarg;
            break;
        case 'k':
            check = true;
            break;
        case 'v':
            printf("kedge-agentd %s\n", base_version_text());
            return EXIT_SUCCESS;
        case 'h':
            print_help();
            return EXIT_SUCCESS;
        default:
            return fail_for_good("see kedge-agentd --help");
        }
    }
    if (optind < argc)
        return fail_for_good("it takes no arguments but its options: see kedge-agentd --help");
    agent.config_path = path;
    if (agent_config_read(path, &agent.config, &err) != 0)
        return fail_for_good(err.text);
    int status = agentd_start_check(&agent.config, &err);
    if (status != 0)
        return status == -EINVAL ? fail_for_good(err.text) : fail_start(err.text);
    if (check)
        return check_only(&agent.config);
    (void)base_log_parse_level(agent.config.log_level, &level);
    base_log_init("kedge-agentd", level);
    signal(SIGPIPE, SIG_IGN);
    agentd_ring_guard_start();
    hold_signals();
    if (agentd_closer_process_start(&process.closers, &err) != 0 ||
        agentd_emptier_process_start(&process.emptiers, &err) != 0 ||
        open_hangups(&process.hangup_fd, &err) != 0 ||
        agentd_stop_watch_init(&process.watch, FAB_STOP_MS, &err) != 0)
        return fail_start(err.text);
    base_notify_init();
    if (!agentd_start_check_holes(&err))
        base_log(BASE_LOG_WARN,
                 "workers can punch holes in memory that they are given, or make huge pages of it, "
                 "and so have lanes wait",
                 "reason=\"%s\"", err.text);
    if (!agentd_start_check_token(&agent.config, agent.config.gid, &err))
        base_log(BASE_LOG_WARN, "there is no token yet", "reason=\"%s\"", err.text);
    return serve_above_others(&agent, &process);
}
