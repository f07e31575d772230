/* SPDX-License-Identifier: Apache-2.0 */
/* One thing that operators set, or an entry of the trail: what it is made of, and whether it is
 * right by itself. Beside which others it may be is resources.h's. Any thread. */
#ifndef METASERVER_RESOURCE_H
#define METASERVER_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/violation.h"
#include "schema/resources.h"

enum {
    META_RESOURCE_NAME_BYTES = 64, /* with the NUL */
    META_RESOURCE_WHO_BYTES = 80,  /* "token " and a name fit */
    META_TOKENS_MAX = 32768, /* one for each of as many nodes as there are by default, and more */
    META_TOKEN_HASH_BYTES = 32,
    META_TENANT_TOKENS = 16, /* of workers, with one tenant: an agent keeps no more */
    META_WORKER_TOKENS_MAX = RESOURCE_TENANTS_MAX * META_TENANT_TOKENS,
    META_NODE_SPECS_MAX = 16384, /* nodes of which anything is set */
    META_RESOURCE_TAGS = 8,      /* that an If-Match may list */
    META_PROXY_ID_BYTES = 48,    /* of what an agent keeps: a lease, a worker */
};

/* Those that others refer to come first: so they are restored. Leases and
 * restores are no resources: the trail alone has them. */
enum meta_resource_kind {
    META_TENANT = RESOURCE_TENANT,
    META_WINDOW = RESOURCE_WINDOW,
    META_TOKEN = RESOURCE_TOKEN,
    META_NODE = RESOURCE_NODE,
    META_POOL = RESOURCE_POOL,
    META_RESOURCE_KINDS = RESOURCE_KINDS,
    META_LEASE = META_RESOURCE_KINDS,
    META_RESTORE,
    META_TRAIL_KINDS,
    META_UNKNOWN = META_TRAIL_KINDS /* of a foreign entry of the trail */
};

/* What the bearer of a token may do: access.h. The hash is in the store and here alone. */
struct meta_token {
    union {
        struct resource_token said;
        struct {
            RESOURCE_OTHERS(TOKEN_FIELDS)
        };
    };
    uint8_t hash[META_TOKEN_HASH_BYTES]; /* SHA-256 of its secret */
};

enum { META_REVOCATION_FAILED_BYTES = 32 };

/* Leases of a worker of a node that its agent is asked to take back; or what it did not do of that.
 * Whose node is the name of it. */
struct meta_revocation {
    char id[META_PROXY_ID_BYTES]; /* of the lease, or of the worker, as the agent has it */
    bool worker;                  /* all of that worker's */
    bool force;
    char failed[META_REVOCATION_FAILED_BYTES]; /* a problem's name, [a-z-]; "": it is asked now */
};

/* The store was put back to what a backup holds. */
struct meta_restore {
    uint64_t revision; /* the backup's last; 0: it has none */
    bool settled;      /* or: names of regions are settled since what has that revision */
};

struct meta_resource {
    enum meta_resource_kind kind;
    char name[META_RESOURCE_NAME_BYTES];
    uint64_t revision; /* of its last change */
    union {            /* each begins with the kind's struct of schema/resources.h */
        struct resource_tenant tenant;
        struct resource_window window;
        struct meta_token token;
        struct resource_node node;
        struct resource_pool pool;
        struct meta_revocation revocation;
        struct meta_restore restore;
    };
};

/* "tenant": a literal. */
const char *meta_resource_kind_name(enum meta_resource_kind kind);
/* 0 or -EINVAL. */
int meta_resource_kind_parse(const char *name, enum meta_resource_kind *out);

/* Whether a window is of the destination with one GID. */
bool meta_window_has_gid(const struct resource_window *w);

/* [a-z0-9][a-z0-9.-]*, of 1 to max characters. */
bool meta_resource_is_name(const char *name, uint32_t max);
/* How many those of a kind may have. */
uint32_t meta_resource_name_max(enum meta_resource_kind kind);

/* Whether it has expired at that time, since 1970. */
bool meta_token_is_over(const struct meta_token *t, uint64_t wall_ms);
/* Whether no secret belongs to it: its hash is all zero. */
bool meta_token_is_bare(const struct meta_token *t);

/* Whether a resource is right by itself. Puts a tenant's uids, a token's GIDs and a pool's tenants
 * in order. 0; or -EINVAL and *violation. */
int meta_resource_validate(struct meta_resource *resource, struct meta_violation *violation);

/* Whether it can be the id of a worker or a lease: agents alone know which there are. */
bool meta_proxy_is_id(const char *id);

#endif
