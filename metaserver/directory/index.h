/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers kept in the order of the keys that they stand for: what is found by name and listed in
 * order. One thread. The array is fixed; finding halves it, inserting shifts its tail. */
#ifndef METASERVER_INDEX_H
#define METASERVER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

/* <0, 0, >0: how what item stands for compares with key. */
typedef int meta_index_compare(const void *user, uint32_t item, const void *key);

struct meta_index {
    uint32_t *items; /* capacity of them, sorted; owned by whoever made the struct */
    uint32_t count;
    meta_index_compare *compare;
    const void *user;
};

/* Where key is (*found), or where it would be inserted. */
uint32_t meta_index_find(const struct meta_index *index, const void *key, bool *found);
/* There must be room. */
void meta_index_insert(struct meta_index *index, uint32_t at, uint32_t item);
void meta_index_remove(struct meta_index *index, uint32_t at);

#endif
