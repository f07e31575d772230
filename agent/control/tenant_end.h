/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants that end. Control thread. */
#ifndef CONTROL_TENANT_END_H
#define CONTROL_TENANT_END_H

#include <stdint.h>

struct agent;

/* Now and then: tenants that nobody says any more, and of which nothing is left in any pool. */
void agent_tenants_tick(struct agent *a);
uint64_t agent_tenants_due_ns(const struct agent *a);

#endif
