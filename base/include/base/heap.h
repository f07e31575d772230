/* SPDX-License-Identifier: Apache-2.0 */
/* What comes first of many: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan: "The pairing
 * heap", Algorithmica 1986). It needs no memory of its own: the nodes are embedded in what they
 * stand for, and stay where they are while they are in a heap. Adding is O(1), taking out O(log n)
 * on the average; neither recurses.
 *
 * One thread at a time. Two nodes of one heap with the same key have different orders, so that the
 * same calls always give the same first. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdint.h>

/* Zeroed to begin with. */
struct base_heap_node {
    uint64_t key;   /* the least comes first */
    uint64_t order; /* of those with the same key the least of these comes first */
    struct base_heap_node *child, *next,
        *prev; /* private. prev: the elder sibling, or the parent */
};

/* Zeroed is an empty one. */
struct base_heap {
    struct base_heap_node *first; /* NULL: there is none */
};

/* n is in no heap. Its key and order stay as they are until it is taken out. */
void base_heap_add(struct base_heap *heap, struct base_heap_node *n);
/* n is in this one. */
void base_heap_take_out(struct base_heap *heap, struct base_heap_node *n);

#endif
