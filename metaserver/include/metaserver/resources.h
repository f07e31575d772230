/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set: tenants, windows, tokens, nodes and pools, and the trail of who changed what
 * and who revoked which leases.
 *
 * No I/O, no clock, no threads. A change is planned (which changes nothing), written to the store
 * by the caller, then applied, which cannot fail. Every change has the next revision; revisions are
 * never used twice, also across restarts. Invariants: no uid belongs to two tenants, no window
 * and no token names a tenant that is not there, no two pools have one number or one tenant, and
 * the trail holds the newest changes without a gap. */
#ifndef METASERVER_RESOURCES_H
#define METASERVER_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/violation.h"
#include "metaserver/labels.h"

enum {
    KEDGE_SETTING_NAME_BYTES = 64, /* with the NUL */
    KEDGE_SETTING_WHO_BYTES = 80,  /* "token " and a name fit */
    KEDGE_TENANT_NAME_MAX = 31,    /* characters: an agent keeps no more */
    KEDGE_TENANT_UIDS = 32,        /* ranges of one tenant */
    KEDGE_TENANTS_MAX = 64,        /* as many as an agent has room for */
    KEDGE_WINDOWS_MAX = 256,
    KEDGE_TOKENS_MAX = 32768, /* one for each of as many nodes as there are by default, and more */
    KEDGE_TOKEN_GIDS = 16,    /* as many endpoints as a node has */
    KEDGE_TOKEN_HASH_BYTES = 32,
    KEDGE_TENANT_TOKENS = 16, /* of workers, with one tenant: an agent keeps no more */
    KEDGE_WORKER_TOKENS_MAX = KEDGE_TENANTS_MAX * KEDGE_TENANT_TOKENS,
    KEDGE_NODE_SETTINGS_MAX = 16384, /* nodes of which anything is set */
    KEDGE_REASON_CHARS = 127,        /* why a node is cordoned */
    KEDGE_POOLS_MAX = 64,
    KEDGE_POOL_NAME_MAX = 31,
    KEDGE_POOL_AHEAD_MAX = 1024, /* of sessions, arenas and queue pairs; as the agent's settings */
    KEDGE_POOL_DCIS_MAX = 32,
    KEDGE_POOL_CONNECTIONS_MAX = 8192,
    KEDGE_POOL_RESPONDERS_MAX = 65536,
    KEDGE_POOL_TENANTS = KEDGE_TENANTS_MAX, /* of one pool */
    KEDGE_POOL_LEASE_MIN_MS = 10,
    KEDGE_POOL_LEASE_MAX_MS = 3600000,
    KEDGE_SETTING_TAGS = 8,   /* that an If-Match may list */
    KEDGE_HELD_ID_BYTES = 48, /* of what an agent keeps: a lease, a worker */
};
#define KEDGE_SETTING_NUMBER_MAX ((uint64_t)1 << 53) /* what every JSON reader holds exactly */
#define KEDGE_TENANT_MEMORY_MIN  65536               /* bytes; less is no arena */
#define KEDGE_GRACE_MAX_MS       (KEDGE_SETTING_NUMBER_MAX / 1000000)

/* Those that others refer to come first: so they are restored. Leases are no setting: agents keep
 * them, and the trail alone has their revocations. */
enum kedge_setting_kind {
    KEDGE_TENANT,
    KEDGE_WINDOW,
    KEDGE_TOKEN,
    KEDGE_NODE,
    KEDGE_POOL,
    KEDGE_SETTING_KINDS,
    KEDGE_LEASE = KEDGE_SETTING_KINDS,
    KEDGE_TRAIL_KINDS
};

/* Both included. */
struct kedge_uid_range {
    uint32_t first, last;
};

/* Numbers are bounds; 0: none of its own. */
struct kedge_tenant {
    uint32_t uid_count;
    struct kedge_uid_range uids[KEDGE_TENANT_UIDS]; /* ascending, apart */
    uint64_t sessions, vqps, mrs, memory_bytes;
    uint64_t window_bytes, window_ops; /* in flight */
    uint64_t control_ops_per_s;
};

enum kedge_window_scope { KEDGE_WINDOW_DEVICE, KEDGE_WINDOW_DESTINATION, KEDGE_WINDOW_TENANT };

/* What may be in flight; 0: no bound. Of destinations, one alone may be named: a node, which need
 * not be known, or a GID; and the pool in which it is a destination. */
struct kedge_window {
    enum kedge_window_scope scope;
    char tenant[KEDGE_SETTING_NAME_BYTES]; /* "" unless that is the scope */
    char node[KEDGE_SETTING_NAME_BYTES];   /* "": none */
    uint8_t gid[16];                       /* zero: none */
    char pool[KEDGE_POOL_NAME_MAX + 1];    /* "": whatever pool */
    uint64_t bytes, ops;
};

/* What the bearer of a token may do: access.h. Each of the first three may all that the one before
 * may; an agent may what its node needs, and nothing else; a worker nothing here: it shows its
 * token to the agent where it attaches. */
enum kedge_scope {
    KEDGE_SCOPE_READER,
    KEDGE_SCOPE_OPERATOR,
    KEDGE_SCOPE_ADMIN,
    KEDGE_SCOPE_AGENT,
    KEDGE_SCOPE_WORKER
};

struct kedge_token {
    enum kedge_scope scope;
    char node[KEDGE_SETTING_NAME_BYTES]; /* of an agent: its node, and the GIDs that it may say are
                                          * that node's; else "" and none */
    char tenant[KEDGE_TENANT_NAME_MAX + 1]; /* of a worker: whose it is; else "" */
    uint32_t gid_count;
    uint8_t gids[KEDGE_TOKEN_GIDS][16];
    uint64_t expires_ms;                  /* since 1970; 0: never */
    uint8_t hash[KEDGE_TOKEN_HASH_BYTES]; /* SHA-256 of its secret: in the store and here alone */
};

/* What an operator says of a node, apart from what its agent registers: it need not be registered.
 * Cordoned: its agent takes no new workers. Draining: cordoned, and those that it has go; by
 * themselves, or when grace_ms is over (0: it never is). */
struct kedge_node {
    struct kedge_labels labels;
    bool cordoned, draining; /* not draining alone */
    uint64_t grace_ms;
    char reason[KEDGE_REASON_CHARS + 1]; /* for workers that are refused; "" unless cordoned */
};

/* Numbers of a pool. */
enum kedge_pool_number {
    KEDGE_POOL_SESSIONS_AHEAD, /* kept ready at least */
    KEDGE_POOL_ARENAS_AHEAD,
    KEDGE_POOL_AHEAD_MOST, /* of each, however many workers come */
    KEDGE_POOL_DCIS,
    KEDGE_POOL_SPARES,
    KEDGE_POOL_QUEUE_PAIRS_AHEAD,
    KEDGE_POOL_CONNECTIONS,
    KEDGE_POOL_RESPONDERS,
    KEDGE_POOL_SERVICE_LEVEL, /* unsaid: the device's, as the next ones */
    KEDGE_POOL_TRAFFIC_CLASS,
    KEDGE_POOL_FLOW_LABEL,
    KEDGE_POOL_UDP_SOURCE_PORT,
    KEDGE_POOL_PKEY_INDEX,
    KEDGE_POOL_MTU,
    KEDGE_POOL_NUMBERS
};
#define KEDGE_POOL_UNSAID UINT32_MAX /* each node's own settings say it */

#define KEDGE_POOL_NEVER UINT64_MAX

/* A pool of the nodes with all of these labels. */
struct kedge_pool {
    struct kedge_labels nodes;
    uint16_t id; /* its `number` in records and handshakes, which stays; 0: not said yet */
    uint32_t number[KEDGE_POOL_NUMBERS];
    uint64_t lease_ms; /* of its regions; 0: not said */
    uint64_t grace_ms; /* once it goes from a node, its workers there have this long; or
                        * KEDGE_POOL_NEVER: they may finish */
    uint32_t tenant_count;
    /* Whose workers get it; by name. They need not be there. */
    char tenants[KEDGE_POOL_TENANTS][KEDGE_TENANT_NAME_MAX + 1];
};

/* Leases of a worker of a node that were taken back. Whose node is the name of it. */
struct kedge_revocation {
    char id[KEDGE_HELD_ID_BYTES]; /* of the lease, or of the worker, as the agent has it */
    bool worker;                  /* all of that worker's */
    bool force;
};

struct kedge_setting {
    enum kedge_setting_kind kind;
    char name[KEDGE_SETTING_NAME_BYTES];
    uint64_t revision; /* of its last change */
    union {
        struct kedge_tenant tenant;
        struct kedge_window window;
        struct kedge_token token;
        struct kedge_node node;
        struct kedge_pool pool;
        struct kedge_revocation revocation;
    };
};

/* One entry of the trail. Tokens in it have no hash. */
struct kedge_setting_change {
    uint64_t revision; /* 0: there is nothing to change */
    uint64_t time_ms;  /* since 1970 */
    char who[KEDGE_SETTING_WHO_BYTES];
    enum kedge_setting_kind kind;
    char name[KEDGE_SETTING_NAME_BYTES];
    bool had, has; /* whether there was one, whether there is one now */
    struct kedge_setting from, to;
};

/* What a client believes to be there. */
struct kedge_setting_match {
    bool absent; /* nothing (If-None-Match: *) */
    bool any;    /* something (If-Match: *) */
    bool listed; /* one of these revisions (If-Match); none at all matches nothing */
    uint32_t count;
    uint64_t revision[KEDGE_SETTING_TAGS];
};

struct kedge_settings;

/* A setting that is borrowed from a struct kedge_settings has memory behind it for its own kind
 * alone (a token's takes a seventh of a pool's): this copies it, an assignment does not. */
void kedge_setting_copy(struct kedge_setting *to, const struct kedge_setting *from);

/* trail: changes that are kept, at least 1. NULL: no memory. */
struct kedge_settings *kedge_settings_new(uint32_t trail);
void kedge_settings_free(struct kedge_settings *s); /* NULL is allowed */

/* "tenant", "device": literals. */
const char *kedge_setting_kind_name(enum kedge_setting_kind kind);
const char *kedge_window_scope_name(enum kedge_window_scope scope);
const char *kedge_scope_name(enum kedge_scope scope);
const char *kedge_pool_number_name(enum kedge_pool_number number); /* "sessions_ahead" */
/* 0 or -EINVAL. */
int kedge_setting_kind_parse(const char *name, enum kedge_setting_kind *out);
int kedge_window_scope_parse(const char *name, enum kedge_window_scope *out);
int kedge_scope_parse(const char *name, enum kedge_scope *out);

/* Whether a window is of the destination with one GID. */
bool kedge_window_has_gid(const struct kedge_window *w);

/* [a-z0-9][a-z0-9.-]*, of 1 to max characters. */
bool kedge_setting_is_name(const char *name, uint32_t max);
/* How many those of a kind may have. */
uint32_t kedge_setting_name_max(enum kedge_setting_kind kind);

/* The least and the most that a number of a pool may be. */
void kedge_pool_number_bounds(enum kedge_pool_number number, uint32_t *min, uint32_t *max);

/* The number of a pool for which none is said: a hash of its name, from 2 to 65535, the same at
 * every metaserver. 2 + CRC-32C(name) mod 65534. */
uint16_t kedge_pool_id(const char *name);
/* That number, or the next one that no pool has: for pools of a store that is older than numbers.
 */
uint16_t kedge_pool_free_id(const struct kedge_settings *s, const char *name);
/* The pool that has that tenant in its list, or NULL. Borrowed. */
const struct kedge_setting *kedge_settings_pool_of(const struct kedge_settings *s,
                                                   const char *tenant);

/* What is in force of a node: its setting, or the one of a node of which nothing is set. Borrowed.
 */
const struct kedge_node *kedge_settings_node(const struct kedge_settings *s, const char *id);

/* Workers' tokens of all tenants, by name: how many, and which. Borrowed. */
uint32_t kedge_settings_worker_tokens(const struct kedge_settings *s,
                                      const struct kedge_setting *out[KEDGE_WORKER_TOKENS_MAX]);

/* Whether it has expired at that time, since 1970. */
bool kedge_token_is_over(const struct kedge_token *t, uint64_t wall_ms);
/* Whether no secret belongs to it: its hash is all zero. */
bool kedge_token_is_bare(const struct kedge_token *t);

/* Whether a setting is right by itself. Puts a tenant's uids, a token's GIDs and a pool's tenants
 * in order. 0; or -EINVAL and *fault. */
int kedge_setting_validate(struct kedge_setting *setting, struct kedge_fault *fault);

/* What it takes to have `to` (whose revision is ignored), and why not: 0 and *out, of which the
 * caller fills time_ms and who; -EINVAL as above; -EREMCHG: what is there does not match; -EEXIST:
 * another tenant has one of its uids, another pool its number or one of its tenants; -EPERM: a
 * pool's number stays; -ENOENT: its tenant is not there; -ENOSPC: too many, or too many of its
 * tenant. A pool for which no
 * number is said gets or keeps its own. */
int kedge_settings_plan_put(const struct kedge_settings *s, const struct kedge_setting *to,
                            const struct kedge_setting_match *match,
                            struct kedge_setting_change *out, struct kedge_fault *fault);
/* Likewise to be rid of one. -EREMCHG; -ENOENT; -EBUSY: a window or a token refers to it. */
int kedge_settings_plan_remove(const struct kedge_settings *s, enum kedge_setting_kind kind,
                               const char *name, const struct kedge_setting_match *match,
                               struct kedge_setting_change *out, struct kedge_fault *fault);
/* The entry of a revocation on that node: no setting changes. */
void kedge_settings_plan_revocation(const struct kedge_settings *s, const char *node,
                                    const struct kedge_revocation *revocation,
                                    struct kedge_setting_change *out);
/* Whether it can be the id of a worker or a lease: agents alone know which there are. */
bool kedge_held_is_id(const char *id);
/* Carries out the last plan, if it is to change something. The trail keeps no hash of a token. */
void kedge_settings_apply(struct kedge_settings *s, const struct kedge_setting_change *change);
/* What of the trail goes when `change` comes: every revision up to this one; 0: none. */
uint64_t kedge_settings_forgets(const struct kedge_settings *s,
                                const struct kedge_setting_change *change);

/* At start: what the store knows; tenants before windows and tokens. 0, or as a plan fails. */
int kedge_settings_restore(struct kedge_settings *s, const struct kedge_setting *setting,
                           struct kedge_fault *fault);
/* And the trail, oldest first. 0; -EINVAL: its revision does not follow the one before. */
int kedge_settings_restore_change(struct kedge_settings *s,
                                  const struct kedge_setting_change *change);

/* Of the last change; 0: there was none yet. */
uint64_t kedge_settings_revision(const struct kedge_settings *s);
uint32_t kedge_settings_count(const struct kedge_settings *s, enum kedge_setting_kind kind);
/* All are borrowed until the next change. NULL: there is none. */
const struct kedge_setting *kedge_settings_find(const struct kedge_settings *s,
                                                enum kedge_setting_kind kind, const char *name);
/* The first one whose name is greater than `after` ("" for the first). */
const struct kedge_setting *kedge_settings_after(const struct kedge_settings *s,
                                                 enum kedge_setting_kind kind, const char *after);
/* The first change of the trail above `revision`. */
const struct kedge_setting_change *kedge_settings_change_after(const struct kedge_settings *s,
                                                               uint64_t revision);
/* Whether every change above `revision` is in the trail. */
bool kedge_settings_trail_has(const struct kedge_settings *s, uint64_t revision);

#endif
