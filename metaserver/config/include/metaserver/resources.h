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

#include "metaserver/resource.h"

/* An entry of the trail that this version cannot read, since a newer one wrote it: as the store has
 * it. before and after: JSON objects without a line's end, or NULL. */
struct meta_foreign_entry {
    const char *kind, *name, *before, *after;
};

/* One entry of the trail. Tokens in it have no hash. */
struct meta_resource_change {
    uint64_t revision; /* 0: there is nothing to change */
    uint64_t time_ms;  /* since 1970 */
    char who[META_RESOURCE_WHO_BYTES];
    enum meta_resource_kind kind;
    char name[META_RESOURCE_NAME_BYTES];
    bool had, has; /* whether there was one, whether there is one now */
    struct meta_resource from, to;
    /* Or else, and then neither was nor is there one that is known; NULL: there is no such. The
     * trail owns its entries' own. */
    struct meta_foreign_entry *foreign;
};

/* What a client believes to be there. */
struct meta_resource_match {
    bool absent; /* nothing (If-None-Match: *) */
    bool any;    /* something (If-Match: *) */
    bool listed; /* one of these revisions (If-Match); none at all matches nothing */
    uint32_t count;
    uint64_t revision[META_RESOURCE_TAGS];
};

struct meta_resources;

/* trail: changes that are kept, at least 1. NULL: no memory. */
struct meta_resources *meta_resources_new(uint32_t trail);
void meta_resources_free(struct meta_resources *s); /* NULL is allowed */
/* Of meta_resources_new(). */
uint32_t meta_resources_trail_size(const struct meta_resources *s);

/* The number of a pool for which none is said: a hash of its name, from 2 to 65535, the same at
 * every metaserver. 2 + CRC-32C(name) mod 65534. */
uint16_t meta_pool_id(const char *name);
/* That number, or the next one that no pool has: for pools of a store that is older than numbers.
 */
uint16_t meta_pool_free_id(const struct meta_resources *s, const char *name);
/* The pool that has that tenant in its list, or NULL. Borrowed. */
const struct meta_resource *meta_resources_pool_of(const struct meta_resources *s,
                                                   const char *tenant);

/* What is in force of a node: its spec, or the one of a node of which nothing is set. Borrowed.
 */
const struct resource_node *meta_resources_node_spec(const struct meta_resources *s,
                                                     const char *id);

/* Workers' tokens of all tenants, by name: how many, and which. Borrowed. */
uint32_t meta_resources_worker_tokens(const struct meta_resources *s,
                                      const struct meta_resource *out[META_WORKER_TOKENS_MAX]);

/* What it takes to have `to` (whose revision is ignored), and why not: 0 and *out, of which the
 * caller fills time_ms and who; -EINVAL as above; -EREMCHG: what is there does not match; -EEXIST:
 * another tenant has one of its uids, another pool its number or one of its tenants; -EPERM: a
 * pool's number stays; -ENOENT: its tenant is not there; -ENOSPC: too many, or too many of its
 * tenant. A pool for which no
 * number is said gets or keeps its own. */
int meta_resources_plan_put(const struct meta_resources *s, const struct meta_resource *to,
                            const struct meta_resource_match *match,
                            struct meta_resource_change *out, struct meta_violation *violation);
/* Likewise to be rid of one. -EREMCHG; -ENOENT; -EBUSY: a window or a token refers to it. */
int meta_resources_plan_remove(const struct meta_resources *s, enum meta_resource_kind kind,
                               const char *name, const struct meta_resource_match *match,
                               struct meta_resource_change *out, struct meta_violation *violation);
/* The entry of a revocation on that node: no resource changes. */
void meta_resources_plan_revocation(const struct meta_resources *s, const char *node,
                                    const struct meta_revocation *revocation,
                                    struct meta_resource_change *out);
/* Carries out the last plan, if it is to change something. The trail keeps no hash of a token. */
void meta_resources_apply(struct meta_resources *s, const struct meta_resource_change *change);
/* No secret belongs to that token, which is there, any more; until it is set anew. */
void meta_resources_void_token(struct meta_resources *s, const char *name);
/* What of the trail goes when a change comes: every revision up to this one; 0: none. */
uint64_t meta_resources_forgets(const struct meta_resources *s);

/* At start: what the store knows; tenants before windows and tokens. 0, or as a plan fails. */
int meta_resources_restore(struct meta_resources *s, const struct meta_resource *resource,
                           struct meta_violation *violation);
/* And the trail, oldest first; of a foreign entry it keeps a copy. 0; -EINVAL: its revision does
 * not follow the one before; -ENOMEM. */
int meta_resources_restore_change(struct meta_resources *s,
                                  const struct meta_resource_change *change);

/* Of the last change; 0: there was none yet. */
uint64_t meta_resources_revision(const struct meta_resources *s);
uint32_t meta_resources_count(const struct meta_resources *s, enum meta_resource_kind kind);
/* All are borrowed until the next change. NULL: there is none. */
const struct meta_resource *meta_resources_find(const struct meta_resources *s,
                                                enum meta_resource_kind kind, const char *name);
/* The first one whose name is greater than `after` ("" for the first). */
const struct meta_resource *meta_resources_after(const struct meta_resources *s,
                                                 enum meta_resource_kind kind, const char *after);
/* The first change of the trail above `revision`. */
const struct meta_resource_change *meta_resources_change_after(const struct meta_resources *s,
                                                               uint64_t revision);
/* Whether every change above `revision` is in the trail. */
bool meta_resources_trail_has(const struct meta_resources *s, uint64_t revision);

/* What one store holds, read at two times. */
enum meta_resources_relation {
    META_RESOURCES_SAME,
    META_RESOURCES_CONTINUES, /* `is` has come from `was` by changes */
    META_RESOURCES_FORKED,    /* it has not: the store was put back, and may have gone on since */
};
enum meta_resources_relation meta_resources_compare(const struct meta_resources *was,
                                                    const struct meta_resources *is);

#endif
