/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the attach socket, which attach.c and admit.c share. The control thread's. */
#ifndef CONTROL_CONNECTION_H
#define CONTROL_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "control/attach.h"
#include "control/tenant_queue.h"
#include "control/unread.h"
#include "control/waiting.h"
#include "control/sockets.h"
#include "schema/control.h"

struct agent;
struct pool;

struct connection {
    struct agent *agent;
    struct world_socket *socket; /* NULL: it is closed */
    struct attach_peer peer;
    struct pool *pool;           /* attached: that its session is of */
    struct world_timer deadline; /* to attach by; held: to be answered at */
    bool watched, closing, attached, resolving, publishing;
    bool ended;   /* by us: nothing that it sends is heard any more */
    bool held;    /* its token was wrong */
    bool dirty;   /* descriptors were sent there: it may be closing for long */
    bool lingers; /* closing, when its worker has read what it was sent, or closed its end */
    struct unread_item unread;
    uint32_t tenant, session;
    uint64_t second, messages; /* flood: the present second and what came in it */
    uint32_t channels;         /* that it has asked for, in all */
    uint32_t arena_tag, resolve_tag, held_tag, publish_tag;
    uint32_t publish_vkey;
    struct waiter waiting; /* in agent->waiting: until it is attached, and while it is dirty */
    struct tenant_queue_item turn; /* waits for a session: in its pool's queue */
    uint32_t queued_tag;           /* of its ATTACH */
    uint64_t queued_ns;            /* since when; 0: it never was */
    uint64_t asked_ns;             /* its ATTACH was read */
    uint32_t wait_ms;              /* for so long at most */
    bool counted;                  /* agent_connection_note() */
    struct connection *next, **at; /* of agent->connections; at: what points to it there */
};

/* admit.c. After what makes it one of its tenant's, with a session or waiting for one, or no
 * more. */
void agent_connection_note(struct connection *c);

/* attach.c. Fills in the header of message, and sends it with what is lent (or NULL): 0 or -errno.
 */
int agent_connection_send(struct connection *c, void *message, uint16_t type, uint32_t size,
                          uint32_t tag, const struct world_lent *lent);
void agent_connection_close(struct connection *c);
/* Of one that lingers: it does so no more. */
void agent_connection_finish(struct connection *c);
/* From now on its deadline is that of who waits. */
void agent_connection_await(struct connection *c);
/* Its answer, and its end. retry_ms: when to ask again, or 0. */
void agent_connection_refuse_for(struct connection *c, uint32_t tag, int status, const char *text,
                                 uint32_t retry_ms);
void agent_connection_refuse(struct connection *c, uint32_t tag, int status, const char *text);
/* Likewise, a second later: so long one guess takes. */
void agent_connection_refuse_token(struct connection *c, uint32_t tag);

/* admit.c. Which share of those that wait a process that connects there belongs to: 0; or -EACCES
 * and a sentence: nobody of its uid can attach, whatever he says. */
int agent_connection_share(const struct agent *a, const struct attach_peer *peer, uint32_t *share,
                           struct base_errbuf *why);
/* An ATTACH: it gets a session, or is refused. */
void agent_connection_attach(struct connection *c, const struct schema_control_attach *m);

/* attach_unread.c. Whether a worker of that tenant may be sent descriptors: 0; or -EAGAIN and a
 * sentence. */
int agent_unread_check(struct agent *a, uint32_t tenant, struct base_errbuf *why);
/* It was sent so many. */
void agent_unread_sent(struct connection *c, uint32_t count);
/* What it was sent descriptors by has failed: whether because the kernel lets us send no more to
 * anybody; then the sentence says so. */
bool agent_unread_failed(struct agent *a, int status, struct base_errbuf *why);

/* As worker_events.h says. */
void agent_attach_serve(struct pool *p);
void agent_attach_failed(struct pool *p, int status);
void agent_attach_end_tenant(struct pool *p, uint32_t tenant);

/* It has waited for wait_ms: refused, and told when to come again. */
void agent_connection_waited(struct connection *c);
/* It ends while it waits. */
void agent_connection_leave_queue(struct connection *c);

/* Before the first pool: hears from then on what becomes of sessions (worker_events.h). */
void agent_attach_init(struct agent *a);
/* admit.c. The pool goes, and who waits with it. */
void agent_attach_give_up(struct pool *p);

/* Now and then: looks at what is unread. */
void agent_unread_tick(struct agent *a);
uint64_t agent_unread_due_ns(const struct agent *a);

#endif
