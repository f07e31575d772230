/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions as this metaserver knows them from the store, and the table that agents READ
 * them in. One thread. Nothing grows: all memory is taken in meta_names_new().
 *
 * Invariant: the table holds the names whose owners live, as far as was said when each was put or
 * at the last sweep; of the others the store may not know yet that they are nobody's. */
#ifndef METASERVER_NAMES_H
#define METASERVER_NAMES_H

#include "metaserver/store.h"
#include "schema/table.h"

#define META_NAMES_MAX       65536 /* that there can be at most */
#define META_NAMES_OF_TENANT 256   /* that a tenant can have of which nothing is said */
#define META_NAMES_OF_NODE   1024  /* that one node can have, and half of all there can be */

struct meta_names;

/* Whether the owner of a name lives; dead: whether it never will again, so that nobody has the
 * name any more. */
enum meta_name_life { META_NAME_LIVE, META_NAME_AWAY, META_NAME_DEAD };

/* For max names, 1..META_NAMES_MAX. memory: zeroed, schema_name_table_bytes() of the homes of as
 * many (schema_table_log2_slots()), borrowed until free. NULL: no memory. */
struct meta_names *meta_names_new(uint32_t max, void *memory, uint64_t seed, uint64_t generation);
void meta_names_free(struct meta_names *n);
/* Borrowed. */
const struct schema_table_desc *meta_names_table(const struct meta_names *n);
uint32_t meta_names_count(const struct meta_names *n);
uint32_t meta_names_max(const struct meta_names *n);
/* Grows whenever one is put, changed, removed, shown or hidden. */
uint64_t meta_names_version(const struct meta_names *n);
/* In all its spaces: for its own workers and for others'. */
uint32_t meta_names_of_tenant(const struct meta_names *n, const char *tenant);
uint32_t meta_names_of_node(const struct meta_names *n, const char *node);

/* Whether there is room for one that is not there yet, in the table too. 0 or -ENOSPC. */
int meta_names_check(const struct meta_names *n, const struct meta_store_name *name);
/* As the store has it from now on; shown in the table, or not. 0; -ENOSPC: it is not known here;
 * -EXFULL: it is, but its span of the table has no room to show it. -EINVAL: what it grants is no
 * token. */
int meta_names_put(struct meta_names *n, const struct meta_store_name *name, bool shown);
/* If it is the name's (`node` "": whosever it is). */
void meta_names_remove(struct meta_names *n, const struct meta_store_name *name);
/* All that are not put between these two are removed by the second: those that stay are found
 * meanwhile. */
void meta_names_begin_load(struct meta_names *n);
void meta_names_end_load(struct meta_names *n);
/* NULL: there is none. Borrowed until the next change. */
const struct meta_store_name *meta_names_find(const struct meta_names *n, const char *tenant,
                                              const char *name);
/* The first one behind that ("", "": of all). */
const struct meta_store_name *meta_names_after(const struct meta_names *n, const char *tenant,
                                               const char *name);
/* Likewise, of those of that node alone. */
const struct meta_store_name *meta_names_after_of_node(const struct meta_names *n, const char *node,
                                                       const char *tenant, const char *name);

/* Asks of each name how its owner is, and shows it or does not. Up to META_STORE_NAMES_MAX whose
 * owners are dead are copied to dead (NULL: none are): how many. */
uint32_t meta_names_sweep(struct meta_names *n,
                          enum meta_name_life (*life)(void *user,
                                                      const struct meta_store_name *name),
                          void *user, struct meta_store_name *dead);

#endif
