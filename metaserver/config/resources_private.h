/* SPDX-License-Identifier: Apache-2.0 */
/* Between resources.c and what is about one kind alone. */
#ifndef METASERVER_RESOURCES_PRIVATE_H
#define METASERVER_RESOURCES_PRIVATE_H

#include "metaserver/resources.h"

/* Whether all of a kind's numbers are right by themselves. 0; or -EINVAL and *violation. */
int meta_numbers_validate(enum meta_resource_kind kind, const void *numbers,
                          struct meta_violation *violation);

/* The i-th of a kind, by name. */
const struct meta_resource *meta_resources_at(const struct meta_resources *s,
                                              enum meta_resource_kind kind, uint32_t i);

/* One allocation, which free() frees. 0 or -ENOMEM. */
int meta_foreign_copy(const struct meta_foreign_entry *entry, struct meta_foreign_entry **out);

/* Whether a token is right by itself, but for its name. Puts its GIDs in order. 0; or -EINVAL and
 * *violation. */
int meta_token_validate(struct meta_resource *resource, struct meta_violation *violation);
/* Whether it may be there beside the others, in the place of what is there of its name. 0; -ENOENT:
 * its tenant is not there; -ENOSPC: that has as many as it may; and *violation. */
int meta_token_check(const struct meta_resources *s, const struct meta_resource *to,
                     struct meta_violation *violation);
/* One of a tenant, or NULL. */
const struct meta_resource *meta_token_of(const struct meta_resources *s, const char *tenant);

/* The same of what is said of a node, and of a pool. */
int meta_node_spec_validate(struct meta_resource *resource, struct meta_violation *violation);
int meta_pool_validate(struct meta_resource *resource, struct meta_violation *violation);
/* Whether it may be there beside the other pools, in the place of what is there of its name, and
 * with which number. 0 and *id; -EPERM: it had another number; -EEXIST: another pool has it, or one
 * of its tenants; and *violation, with the place of a tenant in `to`. */
int meta_pool_check(const struct meta_resources *s, const struct meta_resource *to,
                    uint64_t *number, struct meta_violation *violation);

#endif
