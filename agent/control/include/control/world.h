/* SPDX-License-Identifier: Apache-2.0 */
/* The world, as a control core sees it: the one header by which anything but memory and the
 * fabric's interface is reached from agent/control. The daemon implements it (daemon/world.c) with
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

struct world;
struct world_socket; /* a worker's, which has connected: the world's */
struct fab_mem;
struct lane_memory;
struct schema_session_ro;
struct schema_session_rw;

/* A session's memory: what it shares with its worker, and what its lane keeps of it. */
struct world_rings {
    uint32_t sq_slots, cq_slots, max_vqps, max_inflight, max_mrs, max_grants; /* wanted */
    struct schema_session_rw *rw; /* NULL, as the next two: it is not made */
    struct schema_session_ro *ro;
    struct lane_memory *memory;
    int rw_fd, ro_fd, doorbell; /* the world's own */
};

/* The table of peers that all workers of a pool read; one page or more, zeroed when it is made. */
struct world_peers {
    void *table;
    uint64_t bytes;
    int fd; /* the world's own */
};

/* What a worker is lent with a message, in the order of schema/control.h. NULL: not that. */
struct world_lent {
    const struct world_rings *rings;
    const struct world_peers *peers;
    const struct fab_mem *arena;
};

/* A timer, embedded in what it is for. All zero is one that is not set. It must be cleared before
 * its memory goes. */
struct world_timer {
    void (*fired)(void *user); /* the timer is not set any more, and may be set again */
    void *user;
    uint64_t due_ns; /* private from here on */
    uint64_t serial;
    struct world_timer *child, *next, *prev;
    bool set;
};

/* What takes long and asks nobody: beside the control thread, on which done() is called then. */
struct world_task {
    enum world_work {
        WORLD_MAKE_RINGS,
        WORLD_UNMAKE_RINGS,
        WORLD_MAKE_ARENA,
        WORLD_ZERO_ARENA,
        WORLD_FREE_ARENA,
        WORLD_SAVE_STATE,
        WORLD_RECLAIM_MEMORY, /* what the allocator keeps of what was freed */
        WORLD_WORKS
    } work;
    union { /* what it is done to, the task's until then */
        struct world_rings *rings;
        struct world_arena {
            struct fab_mem *memory;
            uint64_t bytes; /* MAKE: how many, */
            bool huge;      /* and whether of huge pages, if there are some */
        } arena;
        struct world_state {
            const char *directory, *name; /* a file, replaced whole */
            const char *text;
            size_t length;
        } state;
    };
    int status;               /* in done(): 0 or -errno; of UNMAKE, FREE and RECLAIM 0 */
    void (*done)(void *user); /* the task is its owner's again */
    void *user;
    struct world_task *next; /* private */
};

/* All on the control thread. */
struct world_ops {
    /* Of the clock that leases are counted by (base/clock.h): grows, also while the machine is
     * suspended. */
    uint64_t (*now_ns)(struct world *w);
    /* Milliseconds since 1970, which operators and tokens' ends are told in. May jump. */
    uint64_t (*wall_ms)(struct world *w);
    /* Unpredictable bytes. 0 or -errno. */
    int (*random)(struct world *w, void *bytes, size_t n);
    /* world_timers_run() is to be called at that time, or soon after; UINT64_MAX: no timer is set.
     * The last call counts. */
    void (*alarm)(struct world *w, uint64_t due_ns);
    /* As http_client_call() and http_client_cancel(). */
    int (*call)(struct world *w, const struct http_call *call, http_done done, void *user,
                uint64_t *id);
    int (*cancel)(struct world *w, uint64_t id);
    /* Begins a task, which stays until its done(). Tasks begin in the order of these calls. */
    void (*run)(struct world *w, struct world_task *t);
    /* Blocks: does one on this thread, without its done(). For a pool's end alone. */
    void (*run_here)(struct world *w, struct world_task *t);
    /* Sends a whole message, with what is lent (or NULL). 0; or -errno: it cannot be, now or ever.
     */
    int (*reply)(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                 const struct world_lent *lent);
    /* Its worker sees that no more comes. */
    void (*shut)(struct world *w, struct world_socket *s);
    /* Nothing of it is reported any more but attach_closed(). */
    void (*mute)(struct world *w, struct world_socket *s);
    /* Once: attach_closed() follows. True: that may take long, since descriptors were sent there.
     */
    bool (*close)(struct world *w, struct world_socket *s);
};

/* The first member of an implementation. */
struct world {
    const struct world_ops *ops;
    struct world_timer *timers; /* private: those that are set, the earliest first */
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

static inline int world_reply(struct world *w, struct world_socket *s, const void *message,
                              size_t bytes, const struct world_lent *lent)
{
    return w->ops->reply(w, s, message, bytes, lent);
}

static inline void world_shut(struct world *w, struct world_socket *s)
{
    w->ops->shut(w, s);
}

static inline void world_mute(struct world *w, struct world_socket *s)
{
    w->ops->mute(w, s);
}

static inline bool world_close(struct world *w, struct world_socket *s)
{
    return w->ops->close(w, s);
}

/* timers.c. Fires once, at that time or soon after; one that is set already is set anew. */
void world_timer_at(struct world *w, struct world_timer *t, uint64_t due_ns);
void world_timer_after(struct world *w, struct world_timer *t, uint64_t ns);
/* Nothing if it is not set. */
void world_timer_clear(struct world *w, struct world_timer *t);
/* UINT64_MAX: it is not set. */
uint64_t world_timer_due_ns(const struct world_timer *t);
/* For the world: fires all that are due, in the order of their times and then of their setting.
 * What is set meanwhile fires in another run at the earliest. */
void world_timers_run(struct world *w);

#endif
