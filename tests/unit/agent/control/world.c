/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

#include "../../check_main.h"

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
    while (*at != NULL)
        at = &(*at)->next;
    task->next = NULL;
    *at = task;
}

static const struct world_ops TEST_WORLD_OPS = {
    .now_ns = tell_now,
    .wall_ms = tell_wall,
    .random = draw_random,
    .alarm = set_alarm,
    .run = begin_task,
};

void test_world_init(struct test_world *w)
{
    *w = (struct test_world){.world.ops = &TEST_WORLD_OPS,
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
