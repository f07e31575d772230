/* SPDX-License-Identifier: Apache-2.0 */
/* How an entry of a ring says by itself that it is there, so that who waits for it looks at its line
 * alone, and reads the ring's tail only for more.
 *
 * The first entry of all that are published together has a phase, 1 or 2, which changes with each
 * round of the ring; every other one has 0, and so has memory that nobody has written. So the entry
 * at the head has the phase of its index when, and only when, something was published there. Behind
 * a descriptor there may be bytes of the worker's, and behind a completion a sender's: these look
 * like anything in the next round. So whoever publishes first takes the phase from what stands where
 * its next entry will be (schema_phase_is() there, and 0 instead).
 *
 * The tail says the same, and how many there are: who goes to sleep looks at that. A reader that
 * goes by the phase may be ahead of it by what one store is behind another. */
#ifndef SCHEMA_PHASE_H
#define SCHEMA_PHASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/session.h"

enum {
    /* Of schema_sq_desc.slots, which counts up to 6 */
    SCHEMA_SLOTS_COUNT = 0x0f,
    SCHEMA_SLOTS_PHASE = 4, /* bits from there on: two */
    SCHEMA_SLOTS_MORE = 1 << 6, /* slots were published with it: the tail says how many */
    /* Of schema_cqe.shown: below it the phase, and from it on how many places were published. */
    SCHEMA_SHOWN_COUNT = 2,
    SCHEMA_PHASES = 3 /* bits of one */
};

/* Of the entry with that index of a ring of mask + 1. */
static inline uint32_t schema_phase(uint32_t index, uint32_t mask)
{
    return 1 + ((index & (mask + 1)) != 0);
}

static inline bool schema_slots_phase_is(uint8_t slots, uint32_t index, uint32_t mask)
{
    return ((slots >> SCHEMA_SLOTS_PHASE) & SCHEMA_PHASES) == schema_phase(index, mask);
}

static inline bool schema_shown_phase_is(uint32_t shown, uint32_t index, uint32_t mask)
{
    return (shown & SCHEMA_PHASES) == schema_phase(index, mask);
}

/* Publishes what was written to a submission ring from index `first` to before `end`, at least a
 * slot: one by its phase, which is all that the lane looks at, and more by the tail first. */
static inline void schema_sq_publish(struct schema_session_rw *rw, struct schema_sq_desc *sq,
                                     uint32_t mask, uint32_t first, uint32_t end)
{
    uint8_t *slots = &sq[first & mask].slots, *next = &sq[end & mask].slots;
    const uint32_t more = end - first > 1 ? SCHEMA_SLOTS_MORE : 0;
    const uint32_t phase = schema_phase(first, mask) << SCHEMA_SLOTS_PHASE;
    if (schema_slots_phase_is(*next, end, mask))
        __atomic_store_n(next, 0, __ATOMIC_RELAXED);
    if (more != 0)
        atomic_store_explicit(&rw->sq_tail, end, memory_order_release);
    __atomic_store_n(slots, (uint8_t)((*slots & SCHEMA_SLOTS_COUNT) | phase | more),
                     __ATOMIC_RELEASE);
    if (more == 0)
        atomic_store_explicit(&rw->sq_tail, end, memory_order_release);
}

/* Likewise to a completion ring, at least one place. */
static inline void schema_cq_publish(struct schema_session_ro *ro, struct schema_cqe *cq,
                                     uint32_t mask, uint32_t first, uint32_t end)
{
    uint32_t *next = &cq[end & mask].shown;
    if (schema_shown_phase_is(*next, end, mask))
        __atomic_store_n(next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cq[first & mask].shown,
                     (end - first) << SCHEMA_SHOWN_COUNT | schema_phase(first, mask),
                     __ATOMIC_RELEASE);
    atomic_store_explicit(&ro->cq_tail, end, memory_order_release);
}

#endif
