/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <string.h>

#include "base/assert.h"

uint32_t meta_index_find(const struct meta_index *index, const void *key, bool *found)
{
    uint32_t low = 0, high = index->count;
    *found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = index->compare(index->user, index->items[middle], key);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void meta_index_insert(struct meta_index *index, uint32_t at, uint32_t item)
{
    BASE_ASSERT(at <= index->count);
    memmove(&index->items[at + 1], &index->items[at], (index->count - at) * sizeof index->items[0]);
    index->items[at] = item;
    index->count++;
}

void meta_index_remove(struct meta_index *index, uint32_t at)
{
    BASE_ASSERT(at < index->count);
    index->count--;
    memmove(&index->items[at], &index->items[at + 1], (index->count - at) * sizeof index->items[0]);
}
