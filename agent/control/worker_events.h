/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions and arenas report of the workers that wait for them or have them. attach.c hears
 * it; sessions.c and arenas.c know no more of connections than this. Control thread. */
#ifndef CONTROL_WORKER_EVENTS_H
#define CONTROL_WORKER_EVENTS_H

#include <stdint.h>

struct arena;
struct connection;
struct pool;

struct worker_events {
    /* Sessions or arenas are there: the workers that wait for them have their turns. */
    void (*ready)(struct pool *p);
    /* One could not be made: the worker whose turn it is hears why. */
    void (*failed)(struct pool *p, int status);
    /* A tenant (its index + 1) is not there any more, and its workers wait no longer. */
    void (*tenant_ended)(struct pool *p, uint32_t tenant);
    /* The answer to a worker that asked for one more arena. */
    void (*arena)(struct connection *c, int status, const struct arena *arena, uint32_t number);
    /* We are ending the session: nothing that its worker sends is heard any more. */
    void (*ending)(struct connection *c);
    /* We have ended it: the worker is told, and closes its socket when it is done with what it got.
     */
    void (*ended)(struct connection *c);
    /* The worker has had its time to do that. */
    void (*let_go)(struct connection *c);
};

#endif
