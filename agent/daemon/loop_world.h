/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a running agent (control/world.h): its libuv loop, the host's clocks and random
 * numbers, its state directory, and curl. Control thread. */
#ifndef DAEMON_LOOP_WORLD_H
#define DAEMON_LOOP_WORLD_H

#include <uv.h>

#include "attach_socket.h"
#include "control/world.h"
#include "tasks.h"

struct agent;

struct loop_world {
    struct world world; /* the first member */
    struct agent *agent;
    uv_timer_t alarm;
    bool ended; /* the loop is closed, but for its memory */
    struct tasks tasks;
    struct attach_sockets sockets;
    struct http_server *admin;
    uv_poll_t admin_poll;
};

static inline struct loop_world *loop_world_of(struct world *w)
{
    return (struct loop_world *)w;
}

/* The agent's loop is begun; its configuration is there. `tasks` is all zero: tasks_start() comes
 * before the first task, tasks_stop() in the end. */
void loop_world_init(struct loop_world *w, struct agent *a);
/* Closes all that the loop has, the alarm too: no timer fires any more, and nothing is watched. */
void loop_world_end(struct loop_world *w);

#endif
