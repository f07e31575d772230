/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes that workers ask for, which metaservers answer. Control thread.
 *
 * Workers' names go to a metaserver as the agent's own requests do: under its token, which has
 * bounds there. So they have a budget of their own, of which each tenant has an equal part: what
 * one tenant's workers ask for takes neither another's part nor the agent's renewals and answers.
 */
#ifndef CONTROL_NAMES_H
#define CONTROL_NAMES_H

#include <stdint.h>

#include "control/tenants.h"

struct agent;

enum {
    /* Out at a time, of all tenants, half of it reserved (agent/reserve.h): metaservers take 64
     * requests at a time under one token. */
    NAMES_OUT = 32,
    /* That are begun in a second: a quarter of what a metaserver takes under one token, by
     * default. A tenant that was quiet may begin a second's at once. */
    NAMES_PER_S = 500
};

struct names {
    uint32_t out, out_of[AGENTD_TENANT_SLOTS];
    uint64_t whole_ns[AGENTD_TENANT_SLOTS]; /* when a tenant's budget of a second is whole again */
};

typedef void names_done(void *user, int status, const uint8_t gid[16], uint16_t pool);

/* Asks the metaservers for a node by name, for a worker of that tenant (its index + 1). done()
 * once, later or before this returns: 0, the gid and the pool; or -ENOENT; -EAGAIN: the tenant has
 * asked for too many names, or a metaserver says so of this agent; -EHOSTUNREACH: none could be
 * asked. */
void names_resolve(struct agent *a, uint32_t tenant, uint16_t pool, const char *name,
                   names_done *done, void *user);

#endif
