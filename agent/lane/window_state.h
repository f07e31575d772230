/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of a window. Private to agent/lane, and the lane thread's; others may read
 * what is _Atomic. What is done with it is in schedule/ (schedule/window.h has the rules); the
 * layers below see whether somebody waits there, and give it back. */
#ifndef LANE_WINDOW_STATE_H
#define LANE_WINDOW_STATE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/assert.h"
#include "schedule/fair_queue.h"

#define WINDOW_GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)
#define WINDOW_PUT(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

#define WINDOW_ADD(field, n) WINDOW_PUT(field, WINDOW_GET(field) + (uint64_t)(n))

/* A tenant at a window. */
struct tenant_turn {
    struct turn turn;
    struct fair_queue vqps;
};

struct window {
    _Alignas(64) _Atomic uint64_t bytes; /* in flight */
    _Atomic uint64_t ops;
    /* What goes up to here goes without another look: the least of limit and high-water mark; 0
     * while somebody waits. */
    uint64_t pass_bytes, pass_ops;
    _Atomic uint64_t waiting;     /* VQPs */
    uint64_t done_work, done_ops; /* that have left it: what was served, and requests */
    /* -- seldom used from here on */
    _Atomic uint64_t limit_bytes, limit_ops; /* that are set; 0: none */
    _Atomic uint64_t found_ops;              /* that were found beside them; 0: none */
    _Atomic uint64_t most_bytes, most_ops;   /* in flight so far */
    _Atomic uint64_t waits, waited_ns;       /* requests that waited here, and for how long */
    _Atomic uint64_t gid[2];                 /* a destination's; 0: it is not in use */
    uint8_t scope;                           /* enum lane_window_scope */
    uint8_t due;                             /* in the lane's list */
    uint8_t search;  /* the place + 1 where its size is found; 0: it is not (window_find.h) */
    uint32_t within; /* a tenant's: of what is in it, what waits at another */
    STAILQ_ENTRY(window) by_due;
    struct fair_queue turns;    /* of tenants */
    struct tenant_turn *tenant; /* one for each; a tenant's own window has one alone; NULL: a
                                 * destination's at which nobody waits */
};

/* Nothing is in it. */
static inline void window_close(struct window *n)
{
    BASE_ASSERT(WINDOW_GET(n->ops) == 0 && WINDOW_GET(n->waiting) == 0);
    WINDOW_PUT(n->gid[0], 0);
    WINDOW_PUT(n->gid[1], 0);
}

#endif
