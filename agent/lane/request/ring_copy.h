/* SPDX-License-Identifier: Apache-2.0 */
/* Out of a worker's ring. Private to agent/lane, and the lane thread's. */
#ifndef LANE_RING_COPY_H
#define LANE_RING_COPY_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "schema/phase.h"
#include "schema/session.h"
#include "session_state.h"

enum { SLOTS_AHEAD = 6 /* whose lines are asked for */ };

static inline const uint8_t *slot_at(const struct session *s, uint32_t index)
{
    return s->ring + (size_t)(index & s->sq_mask) * SCHEMA_LINE;
}

/* Word by word and once: what the worker changes after this is not seen. */
static inline void copy_slot(const struct session *s, uint32_t index, void *to)
{
    const uint64_t *from = (const uint64_t *)(const void *)slot_at(s, index);
#pragma GCC unroll 8
    for (int i = 0; i < SCHEMA_LINE / 8; i++) {
        uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
        memcpy((uint8_t *)to + i * 8, &word, 8);
    }
}

static_assert(offsetof(struct schema_sq_desc, post) == sizeof(uint64_t), "a header in one look");

/* Of a descriptor as it is in the ring: its slots, without its phase. */
static inline uint32_t slot_count(const struct schema_sq_desc *d)
{
    return d->slots & SCHEMA_SLOTS_COUNT;
}

/* What a descriptor asks for, and of which VQP, but for SIGNALED and its phase: so it is of all of
 * a run. */
static inline uint64_t slot_header(const struct schema_sq_desc *d)
{
    const struct schema_sq_desc any = {.flags = SCHEMA_OP_SIGNALED,
                                       .slots = (uint8_t)~SCHEMA_SLOTS_COUNT};
    uint64_t header, signaled;
    memcpy(&header, d, sizeof header);
    memcpy(&signaled, &any, sizeof signaled);
    return header & ~signaled;
}

/* The line of a slot that the worker has written, and its processor has: it takes as long to come
 * as a request takes to be posted, or longer. One that is still to be written is not asked for,
 * since the worker would have to take it back. */
static inline void prefetch_slot(const struct session *s, uint32_t index)
{
    __builtin_prefetch(slot_at(s, index));
}

/* Of a slot at which a stretch begins that is published (schema/phase.h) its `slots` as they are;
 * else 0. */
static inline uint32_t slot_published(const struct session *s, uint32_t index)
{
    const uint8_t slots = __atomic_load_n(
        slot_at(s, index) + offsetof(struct schema_sq_desc, slots), __ATOMIC_ACQUIRE);
    return schema_slots_phase_is(slots, index, s->sq_mask) ? slots : 0;
}

static inline void prefetch_slots(const struct session *s, uint32_t head, uint32_t avail)
{
    for (uint32_t i = 1; i < avail && i <= SLOTS_AHEAD; i++)
        prefetch_slot(s, head + i);
}

#endif
