/* SPDX-License-Identifier: Apache-2.0 */
#include "loop_world.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

static uint64_t read_wall_ms(struct meta_world *w)
{
    (void)w;
    return base_clock_wall_ms();
}

static int draw_random(struct meta_world *w, void *bytes, size_t n)
{
    (void)w;
    return base_random_bytes(bytes, n);
}

static void write_log(struct meta_world *w, enum base_log_level level, const char *event,
                      const char *format, va_list args)
{
    (void)w;
    base_log_v(level, event, format, args);
}

static void submit_job(struct meta_world *w, struct meta_store_job *job)
{
    struct meta_loop_world *l = (struct meta_loop_world *)w;
    if (l->order != NULL)
        meta_store_order_add(l->order, job);
    meta_store_worker_submit(l->worker, job);
}

void meta_loop_world_init(struct meta_loop_world *w)
{
    static const struct meta_world_ops ops = {read_wall_ms, draw_random, write_log, submit_job};
    *w = (struct meta_loop_world){.base.ops = &ops};
}
