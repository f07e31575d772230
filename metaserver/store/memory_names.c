/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "memory_private.h"

/* The place of a name, or where it belongs. */
static uint32_t place_of_name(const struct memory *s, const struct meta_store_name *name,
                              bool *found)
{
    uint32_t low = 0, high = s->name_count;
    *found = false;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const int order = meta_store_name_order(&s->names[middle], name);
        *found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_alive(const struct memory *s, const struct meta_store_name *name)
{
    const struct meta_store_node *node = meta_memory_find(s, name->node);
    return node != NULL && !node->expired && node->incarnation <= name->incarnation;
}

int meta_memory_check_name(const struct memory *s, const struct meta_store_name *name,
                           struct base_errbuf *err)
{
    bool found;
    const uint32_t at = place_of_name(s, name, &found);
    const struct meta_store_name *known = found ? &s->names[at] : NULL;
    return meta_store_name_check(name, is_alive(s, name), known, found && is_alive(s, known), err);
}

void meta_memory_put_name(struct memory *s, const struct meta_store_name *name)
{
    bool found;
    const uint32_t at = place_of_name(s, name, &found);
    if (!found) {
        s->names = realloc(s->names, (s->name_count + 1) * sizeof s->names[0]);
        BASE_ASSERT(s->names != NULL);
        memmove(&s->names[at + 1], &s->names[at], (s->name_count - at) * sizeof s->names[0]);
        s->name_count++;
    }
    s->names[at] = *name;
}

void meta_memory_withdraw(struct memory *s, const struct meta_store_name *name)
{
    bool found;
    const uint32_t at = place_of_name(s, name, &found);
    if (!found || !meta_store_name_equals(&s->names[at], name))
        return;
    s->name_count--;
    memmove(&s->names[at], &s->names[at + 1], (s->name_count - at) * sizeof s->names[0]);
}

int meta_memory_load_names(const struct memory *s, const struct meta_store_visitor *visitor)
{
    int status = 0;
    for (uint32_t i = 0; visitor->name != NULL && i < s->name_count && status == 0; i++)
        status = visitor->name(visitor->user, &s->names[i]);
    return status;
}
