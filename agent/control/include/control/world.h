/* SPDX-License-Identifier: Apache-2.0 */
/* The world, as a control core sees it: by this header, and the parts of the world that have one
 * beside it (sockets.h, lanes.h, admin.h, world_log.h), anything but memory and the fabric's
 * interface is reached from agent/control. The daemon implements it (daemon/loop_world.c) with
 * libuv, curl, files and threads; tests and the simulation implement it with a queue of events.
 *
 * A core runs on one thread, which this calls the control thread. Each operation begins something
 * and returns; what it leads to comes later, from the world's own loop, never from inside the
 * operation. Nothing blocks, but for what says so. */
#ifndef CONTROL_WORLD_H
#define CONTROL_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http/client.h"
#include "control/timer.h"
#include "control/work.h"

struct world;
struct world_admin_ops;
struct world_lane_ops;
struct world_log_ops;
struct world_socket_ops;

/* A descriptor of the fabric's that is watched, embedded in what it is for. All zero is one that is
 * not. */
struct world_watch {
    void (*ready)(void *user); /* it may be read */
    void *user;
    void *of_world; /* the world's own */
};

/* The clock that the kernel steers (CLOCK_MONOTONIC), read before and after one that it does not
 * (CLOCK_MONOTONIC_RAW). */
struct world_clocks {
    uint64_t before_ns, raw_ns, after_ns;
};

/* All on the control thread. */
struct world_ops {
    /* ---- time and chance */

    /* Of the clock that leases are counted by (base/clock.h): grows, also while the machine is
     * suspended. */
    uint64_t (*now_ns)(struct world *w);
    /* Milliseconds since 1970, which operators and tokens' ends are told in. May jump. */
    uint64_t (*wall_ms)(struct world *w);
    void (*clocks)(struct world *w, struct world_clocks *out);
    /* Unpredictable bytes. 0 or -errno. */
    int (*random)(struct world *w, void *bytes, size_t n);
    /* world_timers_run() is to be called at that time, or soon after; UINT64_MAX: no timer is set.
     * The last call counts. */
    void (*alarm)(struct world *w, uint64_t due_ns);
    /* A control descriptor of the fabric's (a number that only the fabric and the world know) is
     * watched until it is not any more. 0; or -errno and a sentence. */
    int (*watch)(struct world *w, struct world_watch *watch, int fd, struct base_errbuf *err);
    void (*unwatch)(struct world *w, struct world_watch *watch);

    /* ---- metaservers */

    /* As http_client_call() and http_client_cancel(). */
    int (*call)(struct world *w, const struct http_call *call, http_done done, void *user,
                uint64_t *id);
    int (*cancel)(struct world *w, uint64_t id);
    /* Whether the file that calls take their token from holds one, if there is to be any; else *why
     * says what makes one for this node and gid. */
    bool (*has_token)(struct world *w, const uint8_t gid[16], struct base_errbuf *why);
    /* Whether only its owner may read it; else *why says what to do. */
    bool (*token_is_private)(struct world *w, struct base_errbuf *why);

    /* ---- work, the state directory and the host */

    /* A document of the state directory: 0, *length and at most `capacity` bytes; -ENOENT; -EFBIG:
     * it is longer; or -errno. Blocks: only before the world's loop runs. */
    int (*load)(struct world *w, const char *name, void *bytes, size_t capacity, size_t *length);
    /* Begins a task, which stays until its done(). Those of one tenant
     * (task->tenant) begin in the order of these calls, those of several in turns; what tenants ask
     * for never keeps the agent's own tasks from beginning. */
    void (*run)(struct world *w, struct world_task *t);
    /* Blocks: does one on this thread, without its done(). For a pool's end, and for the agent's
     * own pool before the world's loop runs. */
    void (*run_here)(struct world *w, struct world_task *t);
    /* The most memory that the agent may have, of its control group or else of the host. */
    uint64_t (*memory_most)(struct world *w, bool *of_group);
    /* The core has nothing to do any more: the world ends its loop. */
    void (*stop)(struct world *w);
};

/* The first member of an implementation. */
struct world {
    const struct world_ops *ops;
    const struct world_socket_ops *sockets; /* control/sockets.h */
    const struct world_lane_ops *lanes;     /* control/lanes.h */
    const struct world_admin_ops *admin;    /* control/admin.h */
    const struct world_log_ops *log;        /* control/world_log.h */
    size_t page_bytes;                      /* of memory */
    uint64_t tick_ns;                       /* ticks (agent.h) are no less apart */
    bool keeps_whole; /* workers punch no holes in memory that they are given, but for huge pages,
                       * and make none of those of it */
    struct base_heap timers; /* private: those that are set, the earliest first */
    uint64_t timer_serial;
};

static inline uint64_t world_now_ns(struct world *w)
{
    return w->ops->now_ns(w);
}

static inline uint64_t world_wall_ms(struct world *w)
{
    return w->ops->wall_ms(w);
}

static inline uint64_t world_wall_s(struct world *w)
{
    return world_wall_ms(w) / 1000;
}

static inline int world_random(struct world *w, void *bytes, size_t n)
{
    return w->ops->random(w, bytes, n);
}

static inline int world_call(struct world *w, const struct http_call *call, http_done done,
                             void *user, uint64_t *id)
{
    return w->ops->call(w, call, done, user, id);
}

static inline int world_cancel(struct world *w, uint64_t id)
{
    return w->ops->cancel(w, id);
}

static inline void world_run(struct world *w, struct world_task *t)
{
    w->ops->run(w, t);
}

static inline void world_run_here(struct world *w, struct world_task *t)
{
    w->ops->run_here(w, t);
}

static inline void world_clocks(struct world *w, struct world_clocks *out)
{
    w->ops->clocks(w, out);
}

static inline int world_watch(struct world *w, struct world_watch *watch, int fd,
                              struct base_errbuf *err)
{
    return w->ops->watch(w, watch, fd, err);
}

static inline bool world_has_token(struct world *w, const uint8_t gid[16], struct base_errbuf *why)
{
    return w->ops->has_token(w, gid, why);
}

static inline bool world_token_is_private(struct world *w, struct base_errbuf *why)
{
    return w->ops->token_is_private(w, why);
}

static inline int world_load(struct world *w, const char *name, void *bytes, size_t capacity,
                             size_t *length)
{
    return w->ops->load(w, name, bytes, capacity, length);
}

static inline uint64_t world_memory_most(struct world *w, bool *of_group)
{
    return w->ops->memory_most(w, of_group);
}

static inline void world_stop(struct world *w)
{
    w->ops->stop(w);
}

/* Nothing if it is not watched. */
static inline void world_unwatch(struct world *w, struct world_watch *watch)
{
    if (watch->of_world != NULL)
        w->ops->unwatch(w, watch);
    watch->of_world = NULL;
}

#endif
