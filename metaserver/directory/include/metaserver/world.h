/* SPDX-License-Identifier: Apache-2.0 */
/* The world, as a metaserver's cores see it (directory/, config/, api/): the one header by which
 * they reach anything but memory and the fabric's interface. The daemon implements it
 * (daemon/loop_world.c); tests and a simulation implement it too.
 *
 * Most of what a core does is given its time, by who calls it; what it needs of the world itself is
 * here. A core runs on one thread, the fabric's control thread. Nothing blocks. */
#ifndef METASERVER_WORLD_H
#define METASERVER_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "metaserver/store_job.h"

struct meta_world;

/* All on the core's thread. */
struct meta_world_ops {
    /* Milliseconds since 1970, which operators and tokens' ends are told in. May jump. */
    uint64_t (*wall_ms)(struct meta_world *w);
    /* Unpredictable bytes. 0 or -errno. */
    int (*random)(struct meta_world *w, void *bytes, size_t n);
    /* Says it to whoever runs the metaserver: as base_log_v(). */
    void (*log)(struct meta_world *w, enum base_log_level level, const char *event,
                const char *format, va_list args);
    /* Has the store carry out a transaction. The job, and what it points to, is the world's until
     * job->done(), which is called by the world's own loop, never from inside this. What is
     * submitted together may be carried out in any order. */
    void (*submit)(struct meta_world *w, struct meta_store_job *job);
};

/* The first member of an implementation. */
struct meta_world {
    const struct meta_world_ops *ops;
};

static inline uint64_t meta_world_wall_ms(struct meta_world *w)
{
    return w->ops->wall_ms(w);
}

static inline int meta_world_random(struct meta_world *w, void *bytes, size_t n)
{
    return w->ops->random(w, bytes, n);
}

static inline void meta_world_submit(struct meta_world *w, struct meta_store_job *job)
{
    w->ops->submit(w, job);
}

/* As base_log(). */
void meta_world_log(struct meta_world *w, enum base_log_level level, const char *event,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
