/* SPDX-License-Identifier: Apache-2.0 */
/* Ends sockets beside the control thread: those to which each call takes long, since their worker
 * has hung so much on its end (socket_costs.h). A thread tells the worker why, shuts the socket
 * down and closes it, one after the other. The thread begins with the first one.
 *
 * Control thread, all of these. */
#ifndef DAEMON_SOCKET_ENDER_H
#define DAEMON_SOCKET_ENDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "wake.h"

struct socket_end {
    int fd;
    bool keeps; /* it is not to be closed where descriptors are left there */
    bool dirty; /* out: they are, and it is not closed */
    void (*ended)(struct socket_end *e);
    struct socket_end *next;
};

struct socket_ender {
    pthread_t thread;
    bool runs, stop;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct wake wake;
    struct socket_end *first, *last, *done; /* under the lock */
};

/* 0; or -errno and a sentence. */
int agentd_socket_ender_init(struct socket_ender *r, uv_loop_t *loop, struct base_errbuf *err);
/* Its loop ends: what the thread has done from now on stop() tells. */
void agentd_socket_ender_close(struct socket_ender *r);
/* Takes it and its fd: 0, and ended() is called from the loop when the thread is done with it. Or
 * -errno: there is no thread, and it is the caller's still. */
int agentd_socket_ender_take(struct socket_ender *r, struct socket_end *e);
/* After its loop: what waits is ended too, and ended() called. Also if *r is all 0. */
void agentd_socket_ender_stop(struct socket_ender *r);

#endif
