/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes that workers ask for, which metaservers answer. Control thread.
 *
 * Workers' names go to a metaserver as the agent's own requests do: under its token, which has
 * bounds there. So they have a budget of their own, of which each tenant has an equal part: what
 * one tenant's workers ask for takes neither another's part nor the agent's renewals and answers.
 * Answers are kept for a moment, for the tenant that asked alone: what another one asks for shows
 * neither in what is said nor in how long that takes. */
#ifndef CONTROL_NAMES_H
#define CONTROL_NAMES_H

#include <stdint.h>

#include "control/tenants.h"

struct agent;
struct names_question;

enum {
    /* Out at a time, of all tenants, half of it reserved (agent/reserve.h): metaservers take 64
     * requests at a time under one token. */
    NAMES_OUT = 32,
    /* That are begun in a second: a quarter of what a metaserver takes under one token, by
     * default. A tenant that was quiet may begin a second's at once. */
    NAMES_PER_S = 500,
    /* Answers that are kept, of one tenant, and for how long: a node that comes or moves is known
     * by its name a second later at most. */
    NAMES_KEPT = 16,
    NAMES_KEPT_MS = 1000,
    NAMES_ACCOUNTS = 2 * AGENT_TENANT_SLOTS
};

/* What metaservers said of a name: that there is no such node, or its endpoint in one pool. */
struct names_answer {
    char name[64];
    uint64_t until_ns;
    int status;
    uint16_t pool;
    uint8_t gid[16];
};

/* What one tenant has asked for. It is that of the tenant's id, and not of its place: whoever gets
 * the place next begins anew, and a tenant that goes and comes again has what it had. When nothing
 * of it is out and its budget is whole it says nothing any more, and another one may take it. */
struct names_account {
    uint32_t tenant; /* its id */
    uint32_t out;
    uint64_t whole_ns; /* when its budget of a second is whole again */
    struct names_answer kept[NAMES_KEPT];
};

struct names {
    struct names_account account[NAMES_ACCOUNTS];
    struct names_question *first; /* that are put: one for each tenant, pool and name */
};

typedef void names_done(void *user, int status, const uint8_t gid[16], uint16_t pool);

/* Asks the metaservers for a node by name, or waits for the answer to who asks them for it already,
 * for a worker of that tenant (its index + 1). done() once, later or before this returns: 0, the
 * gid and the pool; or -ENOENT; -EAGAIN: the tenant has asked for too many names, or a metaserver
 * says so of this agent; -EHOSTUNREACH: none could be asked. */
void agent_names_resolve(struct agent *a, uint32_t tenant, uint16_t pool, const char *name,
                         names_done *done, void *user);

#endif
