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
    AGENT_WINDOWS = RESOURCE_WINDOWS_MAX + AGENT_TENANTS,
    AGENT_WINDOW_GIDS = RESOURCE_GIDS_MAX, /* as many endpoints as a node has */
    AGENT_DESTINATIONS = 256,              /* with windows of their own: LANE_MAX_DESTINATIONS */
    AGENT_ID = RESOURCE_NODE_NAME_MAX + 1, /* of a node or a window, with the NUL */
    AGENT_POOLS = RESOURCE_POOLS_MAX,
    AGENT_REASON = RESOURCE_TEXT_MAX + 1, /* with the NUL; more is cut off */
    AGENT_SETTINGS_BYTES = 1 << 20        /* of a document */
};

struct agent_window_config {
    enum resource_window_scope scope;
    char tenant[AGENT_NAME]; /* "" unless that is the scope */
    struct agent_limits most;
    char name[AGENT_ID]; /* "": a tenant's own numbers */
    /* DESTINATION: */
    bool one;              /* it is for the destinations below alone */
    char node[AGENT_ID];   /* whose endpoints they are; "": one was named itself */
    char pool[AGENT_NAME]; /* as seen from this pool; "": from each */
    uint32_t gids;         /* 0: no such node is registered */
    uint8_t gid[AGENT_WINDOW_GIDS][16];
};

/* A destination that has a window of its own. */
struct agent_destination {
    uint8_t gid[16];
    struct agent_limits most;
};

/* What is said of this node. */
struct agent_node_config {
    bool cordoned, draining;
    /* Draining: how long workers have to end by themselves; RESOURCE_UNSAID: for ever. */
    uint64_t grace_ms;
    char reason[AGENT_REASON];
    char zone[64]; /* the label of that name; "": it has none */
};

/* A pool that the node has. The agent's own is among them if it is to be tuned. */
struct agent_pool_config {
    char name[AGENT_NAME];
    struct pool_numbers numbers; /* what is left out the agent's own file says; but `number`, which
                                  * metaservers of old leave out, who know of the agents' own pools
                                  * alone, and `grace_ms`: its workers are never ended */
};

struct agent_desired {
    uint64_t revision; /* 0: none */
    struct agent_node_config node;
    uint32_t pools;
    struct agent_pool_config pool[AGENT_POOLS];
    uint32_t other_pools; /* that the node has not, of which name, number and grace are said */
    struct agent_pool_config other_pool[AGENT_POOLS];
    uint32_t tenants, windows;
    struct agent_tenant_config tenant[AGENT_TENANTS]; /* with the narrowest of their windows */
    struct agent_window_config window[AGENT_WINDOWS]; /* of tenants too: their own first */
};

/* 0 and *out; -EINVAL and a sentence that names the field. Fields that are not known are passed
 * over: a newer metaserver may say more. A bound of 0 becomes the largest number. No two pools have
 * one name or one id. A tenant's pool need not be among them. */
int agent_desired_decode(const char *text, size_t length, struct agent_desired *out,
                         struct base_errbuf *why);

/* What is said of the pool of that name: all unsaid if nothing is. */
struct agent_pool_config agent_desired_pool(const struct agent_desired *s, const char *name);
/* How many lanes it is to have: of the agent's own pool its file says that. */
uint32_t agent_desired_lanes(const struct agent_pool_config *p);

/* The narrowest of all windows of a scope (and tenant); of those for destinations, the ones for
 * each. */
struct agent_limits agent_desired_window(const struct agent_desired *s,
                                         enum resource_window_scope scope, const char *tenant);
/* What holds for single destinations as seen from a pool: each once, with the narrowest of all
 * windows for it. Returns how many; *left is how many more there are than have room. */
uint32_t agent_desired_destinations(const struct agent_window_config *windows, uint32_t count,
                                    const char *pool,
                                    struct agent_destination out[AGENT_DESTINATIONS],
                                    uint32_t *left);

#endif
