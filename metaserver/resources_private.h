/* SPDX-License-Identifier: Apache-2.0 */
/* Between resources.c and what is about one kind alone. */
#ifndef METASERVER_RESOURCES_PRIVATE_H
#define METASERVER_RESOURCES_PRIVATE_H

#include "metaserver/resources.h"

/* The i-th of a kind, by name. */
const struct kedge_setting *kedge_settings_at(const struct kedge_settings *s,
                                              enum kedge_setting_kind kind, uint32_t i);

/* Whether a token is right by itself, but for its name. Puts its GIDs in order. 0; or -EINVAL and
 * *fault. */
int kedge_token_validate(struct kedge_setting *setting, struct kedge_fault *fault);
/* But for revisions. */
bool kedge_token_same(const struct kedge_setting *a, const struct kedge_setting *b);
/* Whether it may be there beside the others, in the place of what is there of its name. 0; -ENOENT:
 * its tenant is not there; -ENOSPC: that has as many as it may; and *fault. */
int kedge_token_check(const struct kedge_settings *s, const struct kedge_setting *to,
                      struct kedge_fault *fault);
/* One of a tenant, or NULL. */
const struct kedge_setting *kedge_token_of(const struct kedge_settings *s, const char *tenant);

/* The same of what is said of a node, and of a pool. */
int kedge_node_validate(struct kedge_setting *setting, struct kedge_fault *fault);
bool kedge_node_same(const struct kedge_setting *a, const struct kedge_setting *b);
int kedge_pool_validate(struct kedge_setting *setting, struct kedge_fault *fault);
bool kedge_pool_same(const struct kedge_setting *a, const struct kedge_setting *b);
/* Whether it may be there beside the other pools, in the place of what is there of its name, and
 * with which number. 0 and *id; -EPERM: it had another number; -EEXIST: another pool has it, or one
 * of its tenants; and *fault, with the place of a tenant in `to`. */
int kedge_pool_check(const struct kedge_settings *s, const struct kedge_setting *to, uint16_t *id,
                     struct kedge_fault *fault);

#endif
