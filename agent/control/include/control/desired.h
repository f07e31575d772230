/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers say that operators have set for this node: the document of
 * GET /v1/nodes/{id}/configuration (schema/openapi.yaml), decoded. No I/O. Any thread. */
#ifndef CONTROL_DESIRED_H
#define CONTROL_DESIRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/config.h"
#include "schema/resources.h"

enum {
    /* As metaservers have; and each tenant's own numbers. */
    AGENTD_WINDOWS = RESOURCE_WINDOWS_MAX + AGENTD_TENANTS,
    AGENTD_WINDOW_GIDS = RESOURCE_GIDS_MAX, /* as many endpoints as a node has */
    AGENTD_DESTINATIONS = 256,              /* with windows of their own: LANE_MAX_DESTINATIONS */
    AGENTD_ID = RESOURCE_NODE_NAME_MAX + 1, /* of a node or a window, with the NUL */
    AGENTD_POOLS = RESOURCE_POOLS_MAX,
    AGENTD_REASON = RESOURCE_TEXT_MAX + 1, /* with the NUL; more is cut off */
    AGENTD_SETTINGS_BYTES = 1 << 20        /* of a document */
};

struct agentd_window {
    enum resource_window_scope scope;
    char tenant[AGENTD_NAME]; /* "" unless that is the scope */
    struct agentd_limits most;
    char name[AGENTD_ID]; /* "": a tenant's own numbers */
    /* DESTINATION: */
    bool one;               /* it is for the destinations below alone */
    char node[AGENTD_ID];   /* whose endpoints they are; "": one was named itself */
    char pool[AGENTD_NAME]; /* as seen from this pool; "": from each */
    uint32_t gids;          /* 0: no such node is registered */
    uint8_t gid[AGENTD_WINDOW_GIDS][16];
};

/* A destination that has a window of its own. */
struct agentd_destination {
    uint8_t gid[16];
    struct agentd_limits most;
};

/* What is said of this node. */
struct agentd_node {
    bool cordoned, draining;
    /* Draining: how long workers have to end by themselves; RESOURCE_UNSAID: for ever. */
    uint64_t grace_ms;
    char reason[AGENTD_REASON];
};

/* A pool that the node has. The agent's own is among them if it is to be tuned. */
struct agentd_pool {
    char name[AGENTD_NAME];
    struct pool_numbers numbers; /* what is left out the agent's own file says; but `number`, which
                                  * metaservers of old leave out, who know of the agents' own pools
                                  * alone, and `grace_ms`: its workers are never ended */
};

struct agentd_desired {
    uint64_t revision; /* 0: none */
    struct agentd_node node;
    uint32_t pools;
    struct agentd_pool pool[AGENTD_POOLS];
    uint32_t other_pools; /* that the node has not, of which name, number and grace are said */
    struct agentd_pool other_pool[AGENTD_POOLS];
    uint32_t tenants, windows;
    struct agentd_tenant_config tenant[AGENTD_TENANTS]; /* with the narrowest of their windows */
    struct agentd_window window[AGENTD_WINDOWS];        /* of tenants too: their own first */
};

/* 0 and *out; -EINVAL and a sentence that names the field. Fields that are not known are passed
 * over: a newer metaserver may say more. A bound of 0 becomes the largest number. No two pools have
 * one name or one id. A tenant's pool need not be among them. */
int agentd_desired_decode(const char *text, size_t length, struct agentd_desired *out,
                          struct base_errbuf *why);

/* What is said of the pool of that name: all unsaid if nothing is. */
struct agentd_pool agentd_desired_pool(const struct agentd_desired *s, const char *name);

/* The narrowest of all windows of a scope (and tenant); of those for destinations, the ones for
 * each. */
struct agentd_limits agentd_desired_window(const struct agentd_desired *s,
                                           enum resource_window_scope scope, const char *tenant);
/* What holds for single destinations as seen from a pool: each once, with the narrowest of all
 * windows for it. Returns how many; *left is how many more there are than have room. */
uint32_t agentd_desired_destinations(const struct agentd_window *windows, uint32_t count,
                                     const char *pool,
                                     struct agentd_destination out[AGENTD_DESTINATIONS],
                                     uint32_t *left);

#endif
