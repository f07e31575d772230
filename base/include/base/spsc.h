/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded ring of elements of one size between two threads of one process.
 *
 * One thread pushes, one other pops; neither blocks, allocates or makes a system call. The
 * producer's indices, the consumer's and the constants have a cache line each, and each side keeps
 * a copy of the other's index, so that a line moves only when a side runs out of what it knows. */
#ifndef BASE_SPSC_H
#define BASE_SPSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_spsc;

/* capacity: elements, rounded up to a power of two, 1 .. 2^24. element_bytes: 1 .. 4096.
 * 0 and *out (owned by the caller), or -EINVAL, -ENOMEM. */
int base_spsc_new(uint32_t capacity, uint32_t element_bytes, struct base_spsc **out);

/* After both threads have stopped using it. NULL is allowed. What is still inside is forgotten. */
void base_spsc_free(struct base_spsc *ring);

/* Producer: copies one element in. 0, or -EAGAIN when full. */
int base_spsc_push(struct base_spsc *ring, const void *element);

/* Consumer: copies the oldest element out. 0, or -EAGAIN when empty. */
int base_spsc_pop(struct base_spsc *ring, void *element);

/* Consumer: whether there is nothing to pop. */
bool base_spsc_is_empty(struct base_spsc *ring);

/* Elements inside, as seen by either side or by a third thread (then a snapshot, 0 .. capacity). */
uint32_t base_spsc_count(const struct base_spsc *ring);

#endif
