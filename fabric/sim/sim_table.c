/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_table.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/hash.h"

enum { LEAST_ROOM = 16 };

struct sim_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

static uint32_t home_of(const struct sim_table *t, uint64_t key)
{
    return (uint32_t)base_hash_u64(key, 1) & (t->room - 1);
}

/* Where the key is, or the free slot at which looking for it ends. */
static uint32_t find_slot(const struct sim_table *t, uint64_t key)
{
    uint32_t i = home_of(t, key);
    while (t->slot[i].value != NULL && t->slot[i].key != key)
        i = (i + 1) & (t->room - 1);
    return i;
}

void *sim_table_get(const struct sim_table *t, uint64_t key)
{
    return t->room != 0 ? t->slot[find_slot(t, key)].value : NULL;
}

static void grow_table(struct sim_table *t)
{
    struct sim_table larger = {.room = t->room != 0 ? 2 * t->room : LEAST_ROOM};
    larger.slot = calloc(larger.room, sizeof larger.slot[0]);
    BASE_ASSERT(larger.slot != NULL);
    for (uint32_t i = 0; i < t->room; i++)
        if (t->slot[i].value != NULL)
            larger.slot[find_slot(&larger, t->slot[i].key)] = t->slot[i];
    larger.count = t->count;
    free(t->slot);
    *t = larger;
}

void sim_table_put(struct sim_table *t, uint64_t key, void *value)
{
    if (2 * (t->count + 1) > t->room)
        grow_table(t);
    struct sim_slot *s = &t->slot[find_slot(t, key)];
    t->count += s->value == NULL;
    *s = (struct sim_slot){.key = key, .value = value};
}

/* Those behind it that it stood in the way of move up. */
void sim_table_drop(struct sim_table *t, uint64_t key)
{
    if (t->room == 0)
        return;
    uint32_t hole = find_slot(t, key);
    if (t->slot[hole].value == NULL)
        return;
    t->count--;
    for (uint32_t i = (hole + 1) & (t->room - 1); t->slot[i].value != NULL;
         i = (i + 1) & (t->room - 1)) {
        const uint32_t home = home_of(t, t->slot[i].key);
        if (((i - home) & (t->room - 1)) < ((i - hole) & (t->room - 1)))
            continue;
        t->slot[hole] = t->slot[i];
        hole = i;
    }
    t->slot[hole].value = NULL;
}

void sim_table_each(const struct sim_table *t, void (*act)(void *value))
{
    for (uint32_t i = 0; i < t->room; i++)
        if (t->slot[i].value != NULL)
            act(t->slot[i].value);
}

void sim_table_fini(struct sim_table *t)
{
    free(t->slot);
    *t = (struct sim_table){.slot = NULL};
}
