/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker sleeps for, as its word want_wake says it (schema/session.h).
 *
 *   0                     it does not sleep
 *   1                     until it is told anything
 *   N                     until N completions are in the ring behind cq_head, or none is out any
 *                         more, or it is told anything else, a failure too
 *   SCHEMA_WAKE_ROOM + N  until N slots of the submission ring are free
 *   SCHEMA_WAKE_ANSWER + the last 30 bits of a tag: until the request with that tag is answered
 *
 * It is the worker's own, who may say what makes no sense, and sleeps the longer for it. A lane of
 * before N wakes it for each completion, and of before SCHEMA_WAKE_ROOM not for room alone; one of
 * before SCHEMA_WAKE_ANSWER takes that for a number of completions that never come, and wakes it
 * for whatever else it is told, which each answer is. */
#ifndef SCHEMA_WAKE_H
#define SCHEMA_WAKE_H

#include <stdbool.h>

#include "schema/session.h"

#define SCHEMA_WAKE_ROOM   (1u << 31)
#define SCHEMA_WAKE_ANSWER (1u << 30)
/* What a request takes at most. */
#define SCHEMA_MAX_SLOTS (1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE)

/* For how many free slots a worker sleeps, of a ring that has so many. The lane tells it when it
 * has taken from a ring that had fewer. */
static inline uint32_t schema_room_awaited(uint32_t slots)
{
    const uint32_t least = slots < SCHEMA_MAX_SLOTS ? slots : SCHEMA_MAX_SLOTS;
    return slots / 2 > least ? slots / 2 : least;
}

static inline uint32_t schema_wake_for_answer(uint32_t tag)
{
    return SCHEMA_WAKE_ANSWER | (tag & (SCHEMA_WAKE_ANSWER - 1));
}

/* `tag`: what is at its place of the answers. */
static inline bool schema_wake_has_answer(uint32_t want, uint32_t tag)
{
    return ((want ^ tag) & (SCHEMA_WAKE_ANSWER - 1)) == 0;
}

/* How a worker says on which value of the futex's word it sleeps (sleeps_on). Who says 0 is woken
 * again and again until it has run. */
static inline uint32_t schema_wake_word(uint32_t wake)
{
    return wake << 1 | 1;
}

#endif
