/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back to the host. Control thread. */
#ifndef CONTROL_MEMORY_RECLAIM_H
#define CONTROL_MEMORY_RECLAIM_H

#include <stdint.h>

struct agent;

/* Now and then: once a second, if sessions have left something. */
void agent_memory_reclaim(struct agent *a);
uint64_t agent_memory_reclaim_due_ns(const struct agent *a);

#endif
