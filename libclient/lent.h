/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that a region has beside its own, for workers of other tenants (publish.c): each is a
 * region as any other for the agent, and ends before the worker's region does, or with it. */
#ifndef LIBCLIENT_LENT_H
#define LIBCLIENT_LENT_H

#include "internal.h"

/* Of a lease that a region has for workers of another tenant (kedge_publish_for()). */
struct client_lent {
    struct kedge_mr *of; /* whose name, and for whom, this is */
    char name[KEDGE_NAME_MAX + 1], tenant[SCHEMA_NAME_TENANT_MAX + 1];
};

/* One more lease of a region, with a key of its own (region.c). Takes lent, unless it fails. */
int client_lend(struct kedge_mr *of, struct client_lent *lent, struct kedge_mr **out);
/* After it is in no list. */
void client_free_mr(struct kedge_mr *mr);
/* Whether it may be a tenant's: 0, or an error that is said. */
int client_check_tenant(const char *tenant);

#endif
