/* SPDX-License-Identifier: Apache-2.0 */
/* How an entry of a ring says by itself that it is there, so that who waits for one looks at its
 * line alone, and at the line of the ring's tail where there are several.
 *
 * A stretch of a ring is what is published together: entries that stand one behind the other. Its
 * first one has a phase, 1 or 2, which is another one in the next round of the ring. All others
 * have 0, as memory has that nobody has written. So a reader that has taken whole stretches finds
 * the phase of its head there when the next one is published, and not before.
 *
 * Behind a descriptor stand bytes of the worker's, and behind a completion its sender's name, which
 * look like anything in the next round: so whoever publishes looks first at the place behind, where
 * its next stretch will begin, and if that has the phase which it is to get then, writes 0 there. A
 * full ring's first entry, which is at that place, has the other phase, and stays.
 *
 * The tail says the same, for who goes to sleep, or has taken a part of a stretch. A reader that
 * goes by the phase may be ahead of the tail by one stretch, whose tail is still to be stored.
 *
 * Writers: the worker's thread (submission), the thread of the lane that has the session
 * (completion). Neither reader believes it: more than its own size of the ring is never taken. */
#ifndef SCHEMA_PHASE_H
#define SCHEMA_PHASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/session.h"

enum {
    /* Of schema_sq_desc.slots, whose count is SCHEMA_MAX_SLOTS, 6, at the most. */
    SCHEMA_SLOTS_COUNT = 0x0f,  /* the bits of the count */
    SCHEMA_SLOTS_PHASE = 4,     /* the first of the two bits of the phase */
    SCHEMA_SLOTS_MORE = 1 << 6, /* the stretch has several slots: the tail says how many */
    /* Of schema_cqe.stretch: the first bit of the count of the stretch's places; below it are the
     * two of the phase. */
    SCHEMA_STRETCH_COUNT = 2,
    SCHEMA_PHASES = 3 /* the bits of a phase */
};

/* 1 or 2: what a stretch that begins at that index has, in a ring of mask + 1 places. */
static inline uint32_t schema_phase(uint32_t index, uint32_t mask)
{
    return 1 + ((index & (mask + 1)) != 0);
}

/* Whether a descriptor's `slots`, or a completion's `stretch`, has the phase of that index. */
static inline bool schema_slots_phase_is(uint8_t slots, uint32_t index, uint32_t mask)
{
    return ((slots >> SCHEMA_SLOTS_PHASE) & SCHEMA_PHASES) == schema_phase(index, mask);
}

static inline bool schema_stretch_phase_is(uint32_t stretch, uint32_t index, uint32_t mask)
{
    return (stretch & SCHEMA_PHASES) == schema_phase(index, mask);
}

/* Publishes what was written to a submission ring from index `first` to before `end`, at least a
 * slot, and no more than the ring has. Of a single slot the lane looks at the phase alone, which is
 * stored first; of more it is sent to the tail, which is. */
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

/* Likewise to a completion ring, at least one place: it says how many itself. */
static inline void schema_cq_publish(struct schema_session_ro *ro, struct schema_cqe *cq,
                                     uint32_t mask, uint32_t first, uint32_t end)
{
    uint32_t *next = &cq[end & mask].stretch;
    if (schema_stretch_phase_is(*next, end, mask))
        __atomic_store_n(next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cq[first & mask].stretch,
                     (end - first) << SCHEMA_STRETCH_COUNT | schema_phase(first, mask),
                     __ATOMIC_RELEASE);
    atomic_store_explicit(&ro->cq_tail, end, memory_order_release);
}

#endif
