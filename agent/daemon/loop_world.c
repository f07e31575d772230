/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "admin_http.h"
#include "agent.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "bounds.h"
#include "control/world_log.h"
#include "fd_watch.h"
#include "lane_thread.h"
#include "loop_world.h"
#include "start_check.h"
#include "state_file.h"

static uint64_t read_clock(struct world *w)
{
    (void)w;
    return base_clock_ns();
}

static uint64_t read_wall_clock(struct world *w)
{
    (void)w;
    return base_clock_wall_ms();
}

static uint64_t ns_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void read_clocks(struct world *w, struct world_clocks *out)
{
    (void)w;
    out->before_ns = ns_of(CLOCK_MONOTONIC);
    out->raw_ns = ns_of(CLOCK_MONOTONIC_RAW);
    out->after_ns = ns_of(CLOCK_MONOTONIC);
}

static int draw_random(struct world *w, void *bytes, size_t n)
{
    (void)w;
    return base_random_bytes(bytes, n);
}

static void on_alarm(uv_timer_t *timer)
{
    world_timers_run(timer->data);
}

/* libuv counts in milliseconds of its own clock, which may stand still where ours goes on: a timer
 * that fires too early for its core sets the alarm anew. */
static void set_alarm(struct world *w, uint64_t due_ns)
{
    struct loop_world *l = loop_world_of(w);
    const uint64_t now_ns = base_clock_ns();
    if (uv_is_closing((uv_handle_t *)&l->alarm))
        return;
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(&l->alarm);
        return;
    }
    uv_update_time(l->alarm.loop);
    (void)uv_timer_start(
        &l->alarm, on_alarm,
        due_ns > now_ns ? (due_ns - now_ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS : 0, 0);
}

/* ---- descriptors of the fabric's */

struct loop_watch {
    uv_poll_t poll; /* data: what is watched */
};

static void on_readable(uv_poll_t *poll, int status, int events)
{
    const struct world_watch *watch = poll->data;
    (void)status, (void)events;
    watch->ready(watch->user);
}

static int begin_watch(struct world *w, struct world_watch *watch, int fd, struct base_errbuf *err)
{
    struct loop_watch *l = calloc(1, sizeof *l);
    if (l == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    l->poll.data = watch;
    const int status = agentd_fd_watch(&loop_world_of(w)->loop, &l->poll, fd, on_readable, err);
    if (status == 0)
        watch->of_world = l;
    else
        free(l);
    return status;
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle);
}

static void end_watch(struct world *w, struct world_watch *watch)
{
    struct loop_watch *l = watch->of_world;
    if (loop_world_of(w)->ended)
        free(l);
    else
        uv_close((uv_handle_t *)&l->poll, on_watch_closed);
}

/* ---- metaservers */

static int begin_call(struct world *w, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    const struct loop_world *l = loop_world_of(w);
    struct http_call secured = *call;
    secured.tls = l->tls;
    secured.allow_plain_token = l->agent->config.allow_plain_tokens;
    return l->http != NULL ? http_client_call(l->http, &secured, done, user, id) : -ECANCELED;
}

static int cancel_call(struct world *w, uint64_t id)
{
    struct http_client *http = loop_world_of(w)->http;
    return http != NULL ? http_client_cancel(http, id) : -ENOENT;
}

static bool has_token(struct world *w, const uint8_t gid[16], struct base_errbuf *why)
{
    return agentd_start_check_token(&loop_world_of(w)->agent->config, gid, why);
}

static bool is_token_private(struct world *w, struct base_errbuf *why)
{
    return agentd_start_check_privacy(&loop_world_of(w)->agent->config, why);
}

/* ---- work, the state directory and the host */

static int open_state(const struct loop_world *l)
{
    const int dir = open(l->agent->config.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 ? dir : -errno;
}

static int load_document(struct world *w, const char *name, void *bytes, size_t capacity,
                         size_t *length)
{
    const int dir = open_state(loop_world_of(w));
    if (dir < 0)
        return dir;
    const int status = agentd_state_file_read(dir, name, bytes, capacity, length);
    close(dir);
    return status;
}

static uint64_t read_memory_most(struct world *w, bool *of_group)
{
    (void)w;
    return base_memory_most(of_group);
}

static void write_log(struct world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    (void)w;
    base_log_v(level, event, format, args);
}

static uint64_t count_dropped(struct world *w)
{
    (void)w;
    return base_log_dropped();
}

static const struct world_log_ops LOOP_LOG_OPS = {.write = write_log, .dropped = count_dropped};

static void stop_loop(struct world *w)
{
    uv_stop(&loop_world_of(w)->loop);
}

static void begin_task(struct world *w, struct world_task *t)
{
    agentd_tasks_submit(&loop_world_of(w)->tasks, t);
}

static void do_task(struct world *w, struct world_task *t)
{
    t->status = TASK_RUNS[t->work](t);
    if (t->left.count > 0) /* nobody waits for that */
        agentd_emptier_take(&loop_world_of(w)->emptier, t->tenant, &t->left, NULL, NULL);
}

static const struct world_ops LOOP_WORLD_OPS = {
    .now_ns = read_clock,
    .wall_ms = read_wall_clock,
    .clocks = read_clocks,
    .random = draw_random,
    .alarm = set_alarm,
    .watch = begin_watch,
    .unwatch = end_watch,
    .call = begin_call,
    .cancel = cancel_call,
    .has_token = has_token,
    .token_is_private = is_token_private,
    .load = load_document,
    .run = begin_task,
    .run_here = do_task,
    .memory_most = read_memory_most,
    .stop = stop_loop,
};

int agentd_loop_world_init(struct loop_world *w, struct agent *a)
{
    struct base_errbuf why; /* which the log says later */
    *w = (struct loop_world){.world = {.ops = &LOOP_WORLD_OPS,
                                       .sockets = &SOCKET_OPS,
                                       .lanes = &LANE_OPS,
                                       .admin = &ADMIN_OPS,
                                       .log = &LOOP_LOG_OPS,
                                       .page_bytes = (size_t)sysconf(_SC_PAGESIZE),
                                       .tick_ns = TICK_MS * BASE_NS_PER_MS,
                                       .keeps_whole = agentd_start_check_holes(&why)},
                             .agent = a,
                             .sockets = {.agent = a, .loop = &w->loop}};
    const int status = uv_loop_init(&w->loop);
    if (status != 0)
        return status;
    (void)uv_timer_init(&w->loop, &w->alarm);
    w->alarm.data = &w->world;
    a->world = &w->world;
    return 0;
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void agentd_loop_world_end(struct loop_world *w)
{
    uv_walk(&w->loop, close_handle, NULL);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    w->ended = true;
}

void agentd_loop_world_fini(struct loop_world *w)
{
    (void)uv_loop_close(&w->loop);
}
