/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a running agent (control/world.h): its libuv loop, the host's clocks and random
 * numbers, and curl. Control thread. */
#ifndef DAEMON_LOOP_WORLD_H
#define DAEMON_LOOP_WORLD_H

#include <uv.h>

#include "attach_socket.h"
#include "control/world.h"
#include "tasks.h"

struct loop_world {
    struct world world; /* the first member */
    uv_timer_t alarm;
    struct http_client *const *http; /* NULL there: calls are refused with -ECANCELED */
    struct tasks tasks;
    struct attach_sockets sockets;
};

static inline struct loop_world *loop_world_of(struct world *w)
{
    return (struct loop_world *)w;
}

/* `a` hears what workers do; `loop` is begun; `http` is looked at with each call, and stays where
 * it is. `tasks` is all zero: tasks_start() comes before the first task, tasks_stop() in the end.
 * Whoever ends the loop closes the alarm with all other handles (uv_walk()): then no timer fires.
 */
void loop_world_init(struct loop_world *w, struct agent *a, uv_loop_t *loop,
                     struct http_client *const *http);

#endif
