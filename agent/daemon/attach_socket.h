/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets where workers attach: the world's half of control/attach.h. It accepts, receives,
 * watches over sockets and processes, sends and closes; what any of it means is the core's.
 *
 * All on the control thread. */
#ifndef DAEMON_ATTACH_SOCKET_H
#define DAEMON_ATTACH_SOCKET_H

#include <uv.h>

#include "base/log.h"
#include "closer.h"
#include "control/attach.h"
#include "control/config.h"
#include "control/sockets.h"
#include "control/strangers.h"
#include "bounds.h"
#include "socket_costs.h"
#include "socket_ender.h"

struct attach_sockets;

/* ---- listen.c: a socket for all, and one of each tenant that has its own */

struct listener {
    struct attach_sockets *of;
    bool refuses_fds; /* the kernel does: nobody sends descriptors there */
    uint32_t tenant;  /* whose it is: its index + 1; 0: for all */
    char path[AGENT_SOCKET_PATH];
    mode_t mode;
    int fd;
    int file;           /* in its directory, where another one may be by now */
    struct closing end; /* of the socket itself: who waits there has sent something, perhaps */
    uint32_t closing;   /* refused connections that came there and are not closed yet */
    bool waits;         /* accepts none until the closer has closed some */
    bool listed;        /* there was somebody whom the kernel was told to refuse */
    uv_poll_t poll;
    uv_timer_t again;
};

/* 0; or -errno and a sentence. */
int agentd_listeners_open(struct attach_sockets *of, const struct agent_config *config,
                          struct base_errbuf *err);
/* With all connections. */
void agentd_listeners_close(struct attach_sockets *of);
/* The closer has closed one that came there. */
void agentd_listener_go_on(struct listener *l);
/* As many of nobody's connections that came there wait to be closed as may: it accepts no more. */
bool agentd_listener_is_full(const struct listener *l);
/* Of attach_sockets.closer: the kernel is told whom it refuses. */
void agentd_listeners_refuse(struct closer *r);
/* Likewise whom the core keeps out of the socket for all. */
void agentd_listeners_keep_out(struct attach_sockets *of, const uid_t *uids, uint32_t count);
/* Likewise who rests (socket_costs.h). */
void agentd_listeners_rest(struct attach_sockets *of);

/* ---- attach_socket.c */

/* Memory for one more, or NULL: to be had before it is accepted, since one to which descriptors
 * were sent cannot just be closed. */
struct world_socket *agentd_socket_new(struct listener *at);
/* Takes s, and fd, which has connected there. */
void agentd_socket_accept(struct world_socket *s, int fd);
extern const struct world_socket_ops SOCKET_OPS;

/* ---- all of it */

enum { TURN_MESSAGES = 8 /* of a tenant (agent_attach_owner()), in a turn of the loop */ };

struct attach_sockets {
    struct agent *agent; /* that is told */
    uv_loop_t *loop;
    struct closer closer;
    uid_t kept_out[STRANGERS_KNOWN]; /* from the socket for all */
    uint32_t kept_out_count;
    bool lists_failed; /* that has been said */
    struct listener listener[1 + AGENT_TENANTS];
    uint32_t listeners;
    struct base_log_limit limit;
    struct socket_costs costs;
    struct world_socket *costly;  /* that the core is to hear of in the next turn */
    struct world_socket *resting; /* that are readable, and not read */
    bool cost_news;               /* somebody rests from now on */
    uv_timer_t cost_look;
    struct socket_ender ender;
    uv_prepare_t turn_begins;
    uint64_t turn;
    struct {
        uint64_t turn;     /* the last one in which a message was taken */
        uint32_t messages; /* that were taken in that turn */
    } of[ATTACH_OWNERS];
};

#endif
