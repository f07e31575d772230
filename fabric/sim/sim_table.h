/* SPDX-License-Identifier: Apache-2.0 */
/* A table of pointers by a number: open addressing, which grows. Zeroed is empty. */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include <stdint.h>

struct sim_table {
    struct sim_slot *slot; /* `room` of them, a power of two */
    uint32_t room, count;
};

/* NULL: nothing is there. */
void *sim_table_get(const struct sim_table *t, uint64_t key);
/* value is not NULL; what was there is replaced. Dies without memory, of which a simulation has
 * none to spare. */
void sim_table_put(struct sim_table *t, uint64_t key, void *value);
void sim_table_drop(struct sim_table *t, uint64_t key);
/* Calls it with each value, in no order that means anything. */
void sim_table_each(const struct sim_table *t, void (*act)(void *value));
void sim_table_fini(struct sim_table *t);

#endif
