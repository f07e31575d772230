/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the attach socket, which attach.c and admit.c share. The control thread's. */
#ifndef CONTROL_CONNECTION_H
#define CONTROL_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "control/waiting.h"
#include "base/fds.h"
#include "schema/control.h"

struct agent;
struct listener;
struct pool;

struct connection {
    struct agent *agent;
    struct listener *at;
    struct pool *pool; /* attached: that its session is of */
    int fd, pidfd;
    uv_poll_t poll, process;
    uv_timer_t deadline; /* to attach by; held: to be answered at */
    int handles;         /* that are not closed yet; 0 until it is watched */
    bool closing, attached, resolving;
    bool ended;              /* by us: nothing that it sends is heard any more */
    bool held;               /* its token was wrong */
    bool dirty, with_closer; /* descriptors were sent there; it is being closed */
    struct base_peer_process peer;
    uint32_t tenant, session;
    uint64_t second, messages; /* flood: the present second and what came in it */
    uint32_t arena_tag, resolve_tag, held_tag;
    struct waiter waiting; /* in agent->waiting: until it is attached, and while it is dirty */
    bool queued;           /* for a session, in its pool's queue */
    uint32_t queued_tag;   /* of its ATTACH */
    uint64_t queued_ns;    /* since when; 0: it never was */
    struct connection *next_queued;
    struct connection *next;
};

/* attach.c. Fills in the header of message, and sends it: 0 or -errno. */
int connection_send(int fd, void *message, uint16_t type, uint32_t size, uint32_t tag,
                    const int *fds, unsigned count);
/* From now on its deadline is that of who waits. */
void connection_await(struct connection *c);
/* Its answer, and its end. retry_ms: when to ask again, or 0. */
void connection_refuse_for(struct connection *c, uint32_t tag, int status, const char *text,
                           uint32_t retry_ms);
void connection_refuse(struct connection *c, uint32_t tag, int status, const char *text);
/* Likewise, a second later: so long one guess takes. */
void connection_refuse_token(struct connection *c, uint32_t tag);

/* admit.c. Which share of those that wait a process that connects there belongs to: 0; or -EACCES
 * and a sentence: nobody of its uid can attach, whatever he says. */
int connection_share(const struct listener *at, uid_t uid, uint32_t *share,
                     struct base_errbuf *why);
/* An ATTACH: it gets a session, or is refused. */
void connection_attach(struct connection *c, const struct schema_control_attach *m);

/* It has waited for WAIT_MS: refused, and told when to come again. */
void connection_waited(struct connection *c);
/* It ends while it waits. */
void connection_leave_queue(struct connection *c);

#endif
