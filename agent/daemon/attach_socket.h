/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets where workers attach: the world's half of control/attach.h. It accepts, receives,
 * watches over sockets and processes, sends and closes; what any of it means is the core's.
 *
 * All on the control thread, but for the threads of closer.c. */
#ifndef DAEMON_ATTACH_SOCKET_H
#define DAEMON_ATTACH_SOCKET_H

#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

#include "base/fds.h"
#include "base/log.h"
#include "control/attach.h"
#include "control/config.h"
#include "control/sockets.h"
#include "limits.h"
#include "wake.h"

struct attach_sockets;

/* ---- listen.c: a socket for all, and one of each tenant that has its own */

struct listener {
    struct attach_sockets *of;
    bool refuses_fds; /* the kernel does: nobody sends descriptors there */
    uint32_t tenant;  /* whose it is: its index + 1; 0: for all */
    char path[AGENTD_SOCKET_PATH];
    int fd;
    uint32_t closing; /* refused connections that came there and wait for the closer */
    bool waits;       /* accepts none until the closer has closed some */
    uv_poll_t poll;
    uv_timer_t again;
};

/* 0; or -errno and a sentence. */
int listeners_open(struct attach_sockets *of, const struct agentd_config *config,
                   struct base_errbuf *err);
/* With all connections. */
void listeners_close(struct attach_sockets *of);
/* The closer has closed one that came there. */
void listener_go_on(struct listener *l);

/* ---- attach_socket.c */

/* Takes fd, which has connected there. */
void socket_accept(struct listener *at, int fd);
/* The closer has closed it. */
void socket_closed(struct world_socket *s);
extern const struct world_socket_ops SOCKET_OPS;

/* ---- closer.c: closes on threads of its own what may take long to close */

struct closing;
struct closer {
    pthread_t thread[CLOSERS];
    uint32_t threads; /* the control thread's */
    _Atomic uint32_t begun_threads;
    pthread_mutex_t lock;
    pthread_cond_t more;
    sem_t begun;
    struct wake news;
    struct closing *first, *last, *closed; /* under the lock, as are these: */
    uint32_t idle, queued;
    bool busy[CLOSERS]; /* a thread, that closes what is of: */
    uid_t uid[CLOSERS];
    bool stop;
    int status; /* of the first thread's beginning */
};

int closer_start(struct closer *r, uv_loop_t *loop, struct base_errbuf *err);
/* Shuts a connection down. Whether descriptors are left there, so that it is for the closer; what
 * else was sent is read, or the worker would hear of that and not of what it was told. */
bool closer_is_needed(const struct listener *at, int fd);
/* Takes fd, where uid connected: socket_closed(s) follows; of NULL, nothing. -ENOMEM: it is still
 * the caller's. */
int closer_take(struct listener *at, int fd, uid_t uid, struct world_socket *s);
/* As many of nobody's connections that came there wait to be closed as may: it accepts no more. */
bool closer_is_full(const struct listener *at);
/* When the loop has ended: what is left is closed. */
void closer_stop(struct closer *r);

/* ---- all of it */

struct attach_sockets {
    struct agent *agent; /* that is told */
    uv_loop_t *loop;
    struct closer closer;
    struct listener listener[1 + AGENTD_TENANTS];
    uint32_t listeners;
    struct base_log_limit limit;
};

#endif
