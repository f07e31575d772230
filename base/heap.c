/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_before(const struct base_heap_node *a, const struct base_heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* Two heaps, each a root without siblings, become one. NULL is an empty one. */
static struct base_heap_node *merge_two(struct base_heap_node *a, struct base_heap_node *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (is_before(b, a)) {
        struct base_heap_node *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* Siblings become one heap: in pairs from the left, then the pairs from the right. */
static struct base_heap_node *merge_siblings(struct base_heap_node *n)
{
    struct base_heap_node *pairs = NULL, *all = NULL;
    while (n != NULL) {
        struct base_heap_node *a = n, *b = n->next;
        n = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL)
            b->next = b->prev = NULL;
        a = merge_two(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct base_heap_node *a = pairs;
        pairs = a->next;
        a->next = NULL;
        all = merge_two(all, a);
    }
    return all;
}

void base_heap_add(struct base_heap *heap, struct base_heap_node *n)
{
    heap->first = merge_two(heap->first, n);
}

void base_heap_take_out(struct base_heap *heap, struct base_heap_node *n)
{
    struct base_heap_node *rest = merge_siblings(n->child);
    n->child = NULL;
    if (n == heap->first) {
        heap->first = rest;
        return;
    }
    if (n->prev->child == n)
        n->prev->child = n->next;
    else
        n->prev->next = n->next;
    if (n->next != NULL)
        n->next->prev = n->prev;
    n->next = n->prev = NULL;
    heap->first = merge_two(heap->first, rest);
}
