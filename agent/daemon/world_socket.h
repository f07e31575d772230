/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's socket, as attach_socket.c and attach_cost.c know it. Control thread. */
#ifndef DAEMON_WORLD_SOCKET_H
#define DAEMON_WORLD_SOCKET_H

#include "attach_socket.h"

struct world_socket {
    struct listener *at;
    struct connection *c; /* the core's; NULL: it wanted none */
    int fd, pidfd;
    struct closing end; /* .uid: who connected */
    struct socket_end apart_end;
    uv_poll_t poll, process;
    uv_timer_t anchor; /* never set: whatever is closed is so by the loop, and not before it runs */
    int handles;       /* that are not closed yet; 0 until it is watched */
    bool muted, closing;
    bool unwatched; /* its handles but the anchor are closed, or are being */
    bool dirty;     /* descriptors were sent there */
    bool costly;    /* what is hung on its other end makes calls long: the core is to hear so */
    bool apart;     /* so it is ended beside the control thread */
    bool rests;     /* of what comes in nothing is read for a while, but that it has ended */
    struct world_socket *next_costly, *next_resting;
};

/* ---- attach_cost.c: who makes calls on his sockets long, and what becomes of him */

/* Before one listens. 0; or -errno and a sentence. */
int agentd_attach_cost_init(struct attach_sockets *of, struct base_errbuf *err);
/* A call on that socket has begun at since_ns (base_clock_thread_ns()) and is over. */
void agentd_attach_cost_charge(struct world_socket *s, uint64_t since_ns);
/* Whether nothing is to be done for it on this thread: who connected has had too much of it. */
bool agentd_attach_cost_rests(const struct world_socket *s);
/* That is so, and it is readable: it is read when that is over. */
void agentd_attach_cost_rest(struct world_socket *s);
/* It is no more. */
void agentd_attach_cost_forget(struct world_socket *s);
/* In each turn of the loop: the core hears of those that are costly. */
void agentd_attach_cost_turn(struct attach_sockets *of);
/* Nobody listens any more. */
void agentd_attach_cost_stop(struct attach_sockets *of);

/* attach_socket.c: what comes in there is taken again. */
void agentd_socket_read_on(struct world_socket *s);

#endif
