/* SPDX-License-Identifier: Apache-2.0 */
#include "loop_world.h"

#include <errno.h>

#include "base/clock.h"
#include "base/random.h"

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

static int begin_call(struct world *w, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct http_client *http = *loop_world_of(w)->http;
    return http != NULL ? http_client_call(http, call, done, user, id) : -ECANCELED;
}

static int cancel_call(struct world *w, uint64_t id)
{
    struct http_client *http = *loop_world_of(w)->http;
    return http != NULL ? http_client_cancel(http, id) : -ENOENT;
}

static void begin_task(struct world *w, struct world_task *t)
{
    tasks_submit(&loop_world_of(w)->tasks, t);
}

static void do_task(struct world *w, struct world_task *t)
{
    (void)w;
    t->status = TASK_RUNS[t->work](t);
}

static const struct world_ops LOOP_WORLD_OPS = {
    .now_ns = read_clock,
    .wall_ms = read_wall_clock,
    .random = draw_random,
    .alarm = set_alarm,
    .call = begin_call,
    .cancel = cancel_call,
    .run = begin_task,
    .run_here = do_task,
    .reply = socket_send,
    .shut = socket_shut,
    .mute = socket_mute,
    .close = socket_close,
};

void loop_world_init(struct loop_world *w, struct agent *a, uv_loop_t *loop,
                     struct http_client *const *http)
{
    *w = (struct loop_world){
        .world.ops = &LOOP_WORLD_OPS, .http = http, .sockets = {.agent = a, .loop = loop}};
    (void)uv_timer_init(loop, &w->alarm);
    w->alarm.data = &w->world;
}
