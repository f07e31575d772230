/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a running agent (control/world.h): its libuv loop, the host's clocks and random
 * numbers, its state directory, and curl. Control thread. */
#ifndef DAEMON_LOOP_WORLD_H
#define DAEMON_LOOP_WORLD_H

#include <uv.h>

#include "attach_socket.h"
#include "control/world.h"
#include "emptier.h"
#include "tasks.h"

struct agent;

struct loop_world {
    struct world world; /* the first member */
    struct agent *agent;
    uv_loop_t loop;
    uv_timer_t alarm;
    bool ended; /* the loop is closed, but for its memory */
    struct tasks tasks;
    struct emptier emptier;
    struct attach_sockets sockets;
    struct http_server *admin;
    uv_poll_t admin_poll;
    struct http_client *http; /* NULL: calls are refused with -ECANCELED */
    uv_poll_t http_poll;
    struct http_tls *tls; /* of its calls; as long as there is `http` */
    uv_timer_t tls_timer;
    /* main.c */
    uv_poll_t control_poll, events_poll; /* of the fabric */
    uv_prepare_t turned;                 /* something has happened, and it waits again */
    uv_timer_t notify;                   /* the supervisor hears next */
    uint64_t notified_ns;
    uv_poll_t rings;  /* one has lost its memory (ring_guard.h) */
    uv_poll_t told;   /* to end (stop_watch.h) */
    uv_poll_t hangup; /* to read the settings anew */
    int hangup_fd;    /* where that is told */
};

static inline struct loop_world *loop_world_of(struct world *w)
{
    return (struct loop_world *)w;
}

/* The agent's configuration is there, and this is its world from now on. `tasks` is all zero:
 * agentd_tasks_start() comes before the first task, agentd_tasks_stop() in the end. 0, or -errno of
 * the loop. */
int agentd_loop_world_init(struct loop_world *w, struct agent *a);
/* Closes all that the loop has, the alarm too: no timer fires any more, and nothing is watched. */
void agentd_loop_world_end(struct loop_world *w);
/* Then: the loop itself. */
void agentd_loop_world_fini(struct loop_world *w);

#endif
