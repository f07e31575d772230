/* SPDX-License-Identifier: Apache-2.0 */
#include "control/world_log.h"
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"

static struct test_world *test_world(struct world *w)
{
    return (struct test_world *)w;
}

static uint64_t tell_now(struct world *w)
{
    return test_world(w)->now_ns;
}

static uint64_t tell_wall(struct world *w)
{
    return test_world(w)->wall_ms;
}

/* No clock differs from another. */
static void read_clocks(struct world *w, struct world_clocks *out)
{
    const uint64_t now = test_world(w)->now_ns;
    *out = (struct world_clocks){.before_ns = now, .raw_ns = now, .after_ns = now};
}

/* splitmix64 */
static uint64_t next_random(struct test_world *t)
{
    uint64_t z = t->random += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int draw_random(struct world *w, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)next_random(test_world(w));
    return 0;
}

static void set_alarm(struct world *w, uint64_t due_ns)
{
    test_world(w)->alarm_ns = due_ns;
}

static void begin_task(struct world *w, struct world_task *task)
{
    struct world_task **at = &test_world(w)->tasks;
    if (task->work == WORLD_KEEP_INCARNATIONS) {
        ck_assert_ptr_null(test_world(w)->keeping);
        test_world(w)->keeping = task;
        return;
    }
    while (*at != NULL)
        at = &(*at)->next;
    task->next = NULL;
    *at = task;
}

/* Whatever it was, it is done. */
static void run_here(struct world *w, struct world_task *task)
{
    task->status = 0;
    test_world(w)->ran_here = *task;
}

static int begin_call(struct world *w, const struct http_call *call, http_done done, void *user,
                      uint64_t *id)
{
    struct test_world *t = test_world(w);
    ck_assert_uint_lt(t->calls, TEST_CALLS);
    struct test_call *c = &t->call[t->calls++];
    *c = (struct test_call){
        .done = done, .on_line = call->on_line, .user = user, .timeout_ms = call->timeout_ms};
    snprintf(c->method, sizeof c->method, "%s", call->method != NULL ? call->method : "GET");
    snprintf(c->url, sizeof c->url, "%s", call->url);
    if (id != NULL)
        *id = t->calls;
    return 0;
}

static int cancel_call(struct world *w, uint64_t id)
{
    struct test_call *c = &test_world(w)->call[id - 1];
    if (c->done == NULL)
        return -ENOENT;
    c->done = NULL;
    return 0;
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

static void stop_world(struct world *w)
{
    test_world(w)->stops++;
}

static void tell_lane(struct world *w, struct world_lane *l, const struct lane_command *command)
{
    (void)l;
    test_world(w)->lane_told(command);
}

/* The test has answered all of it. */
/* Nobody waits in a test. */
static void settle(struct world *w, struct pool *p)
{
    (void)w, (void)p;
    ck_abort_msg("the control thread waits for the device");
}

static uint64_t tell_no_limit(struct world *w)
{
    (void)w;
    return UINT64_MAX;
}

static void write_log(struct world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    ((struct test_world *)w)->said = event;
    base_log_v(level, event, format, args);
}

static uint64_t count_dropped(struct world *w)
{
    (void)w;
    return base_log_dropped();
}

static const struct world_log_ops TEST_LOG_OPS = {.write = write_log, .dropped = count_dropped};

static int take_step(struct world *w, enum world_device_step step, struct pool *p,
                     struct base_errbuf *err)
{
    (void)err;
    test_world(w)->steps[step]++;
    if (test_world(w)->stepped != NULL)
        test_world(w)->stepped(step, p);
    return 0;
}

/* No lane is stepped; but each doorbell is watched by one session, and given up once. */
static int watch_doorbell(struct world *w, struct world_lane *l, uint32_t session,
                          const struct world_rings *rings)
{
    struct test_world *t = test_world(w);
    (void)l;
    ck_assert_uint_lt(session, TEST_DOORBELLS);
    ck_assert_ptr_null(t->heard[session]);
    for (uint32_t i = 0; i < TEST_DOORBELLS; i++)
        ck_assert_ptr_ne(t->heard[i], rings);
    t->heard[session] = rings;
    return 0;
}

static void unwatch_doorbell(struct world *w, struct world_lane *l, const struct world_rings *rings)
{
    struct test_world *t = test_world(w);
    uint32_t i = 0;
    (void)l;
    while (i < TEST_DOORBELLS && t->heard[i] != rings)
        i++;
    ck_assert_msg(i < TEST_DOORBELLS, "a doorbell that is not watched is given up");
    t->heard[i] = NULL;
}

/* It never began, unless the test says so. */
static void stop_lane(struct world *w, struct world_lane *l)
{
    test_world(w)->lanes_stopped += l->of_world != NULL;
    l->of_world = NULL;
}

/* What no test has needed yet is NULL. */
static const struct world_lane_ops TEST_LANE_OPS = {.stop = stop_lane,
                                                    .command = tell_lane,
                                                    .watch = watch_doorbell,
                                                    .unwatch = unwatch_doorbell,
                                                    .device = take_step,
                                                    .settle = settle,
                                                    .lock_limit = tell_no_limit};
static uint64_t read_memory_most(struct world *w, bool *of_group)
{
    const uint64_t most = test_world(w)->memory_most;
    *of_group = false;
    return most != 0 ? most : UINT64_MAX;
}

static const struct world_ops TEST_WORLD_OPS = {
    .now_ns = tell_now,
    .wall_ms = tell_wall,
    .random = draw_random,
    .alarm = set_alarm,
    .clocks = read_clocks,
    .call = begin_call,
    .cancel = cancel_call,
    .has_token = has_token,
    .token_is_private = is_token_private,
    .run = begin_task,
    .run_here = run_here,
    .memory_most = read_memory_most,
    .stop = stop_world,
};

void test_world_init(struct test_world *w)
{
    *w = (struct test_world){
        .world = {.ops = &TEST_WORLD_OPS, .lanes = &TEST_LANE_OPS, .log = &TEST_LOG_OPS},
        .now_ns = 1000000000000, /* it is not its beginning */
        .wall_ms = 1700000000000,
        .alarm_ns = UINT64_MAX};
}

void test_world_advance(struct test_world *w, uint64_t ns)
{
    const uint64_t end_ns = w->now_ns + ns;
    while (w->alarm_ns <= end_ns) {
        const uint64_t step = w->alarm_ns > w->now_ns ? w->alarm_ns - w->now_ns : 0;
        w->now_ns += step;
        w->wall_ms += step / 1000000;
        world_timers_run(&w->world);
    }
    w->wall_ms += (end_ns - w->now_ns) / 1000000;
    w->now_ns = end_ns;
}

void test_world_end_task(struct test_world *w, int status)
{
    struct world_task *task = w->tasks;
    ck_assert_ptr_nonnull(task);
    w->tasks = task->next;
    task->status = status;
    task->done(task->user);
}

void test_world_end_keeping(struct test_world *w, int status)
{
    struct world_task *task = w->keeping;
    ck_assert_ptr_nonnull(task);
    ck_assert_int_eq(task->work, WORLD_KEEP_INCARNATIONS);
    w->keeping = NULL;
    task->status = status;
    task->done(task->user);
}

void test_world_await_call(struct test_world *w, uint32_t calls, const char *method)
{
    for (int ms = 0; w->calls < calls; ms++) {
        ck_assert_int_lt(ms, 30000);
        test_world_advance(w, BASE_NS_PER_MS);
    }
    ck_assert_str_eq(w->call[calls - 1].method, method);
}

void test_world_answer(struct test_world *w, uint32_t call, int status, const char *body)
{
    const struct http_answer answer = {.status = status,
                                       .why = status < 0 ? body : "",
                                       .body = status < 0 ? "" : body,
                                       .body_length = status < 0 ? 0 : strlen(body),
                                       .retry_after_s = w->retry_after_s};
    ck_assert_uint_lt(call, w->calls);
    const http_done done = w->call[call].done;
    ck_assert(done != NULL);
    w->call[call].done = NULL;
    done(w->call[call].user, &answer);
}
