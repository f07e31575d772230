/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's MR table, which peers READ: its memory, its registration and its end. Control thread.
 */
#ifndef DAEMON_MR_TABLE_H
#define DAEMON_MR_TABLE_H

#include <stdint.h>

struct agent_table;
struct fab_ctl;
struct pool;

/* The first one, as a part of a series (fabric/series.h) that makes the pool's device objects. */
int agentd_mr_table_make(void *pool, uint32_t over, struct fab_ctl *ctl);
/* WORLD_DEVICE_TABLE. */
int agentd_mr_table_begin(struct pool *p);
/* It goes, if there is one, with its memory. */
void agentd_mr_table_retire(struct pool *p, struct agent_table *table);

#endif
