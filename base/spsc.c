/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spsc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, CAPACITY_MAX = 1 << 24, ELEMENT_MAX = 4096 };

/* Indices grow for ever and wrap at 2^32; their difference is the count. */
struct base_spsc {
    /* Constants: read by both. */
    _Alignas(LINE) uint32_t mask;
    uint32_t element_bytes;
    uint8_t *elements;
    /* The producer's line: only it writes here; the consumer reads tail. */
    _Alignas(LINE) _Atomic uint32_t tail;
    uint32_t known_head;
    /* The consumer's line. */
    _Alignas(LINE) _Atomic uint32_t head;
    uint32_t known_tail;
};

int base_spsc_new(uint32_t capacity, uint32_t element_bytes, struct base_spsc **out)
{
    if (capacity == 0 || capacity > CAPACITY_MAX || element_bytes == 0 ||
        element_bytes > ELEMENT_MAX)
        return -EINVAL;
    uint32_t slots = 1;
    while (slots < capacity)
        slots <<= 1;
    struct base_spsc *ring = aligned_alloc(LINE, sizeof *ring);
    if (ring == NULL)
        return -ENOMEM;
    memset(ring, 0, sizeof *ring);
    ring->mask = slots - 1;
    ring->element_bytes = element_bytes;
    size_t bytes = ((size_t)slots * element_bytes + LINE - 1) / LINE * LINE;
    ring->elements = aligned_alloc(LINE, bytes);
    if (ring->elements == NULL) {
        free(ring);
        return -ENOMEM;
    }
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->head, 0);
    *out = ring;
    return 0;
}

void base_spsc_free(struct base_spsc *ring)
{
    if (ring == NULL)
        return;
    free(ring->elements);
    free(ring);
}

static uint8_t *slot_at(const struct base_spsc *ring, uint32_t index)
{
    return ring->elements + (size_t)(index & ring->mask) * ring->element_bytes;
}

int base_spsc_push(struct base_spsc *ring, const void *element)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - ring->known_head > ring->mask) {
        ring->known_head = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (tail - ring->known_head > ring->mask)
            return -EAGAIN;
    }
    memcpy(slot_at(ring, tail), element, ring->element_bytes);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return 0;
}

int base_spsc_pop(struct base_spsc *ring, void *element)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->known_tail) {
        ring->known_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->known_tail)
            return -EAGAIN;
    }
    memcpy(element, slot_at(ring, head), ring->element_bytes);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return 0;
}

bool base_spsc_is_empty(struct base_spsc *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed) ==
           atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

uint32_t base_spsc_count(const struct base_spsc *ring)
{
    /* head first: it never passes a tail that is read later. A third thread may still see a tail
     * that has moved far on, hence the bound. */
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&ring->tail, memory_order_acquire) - head;
    return count > ring->mask + 1 ? ring->mask + 1 : count;
}
