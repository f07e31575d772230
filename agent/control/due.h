/* SPDX-License-Identifier: Apache-2.0 */
/* When something has to be looked at next: a time of the world's clock, or one of the two below.
 *
 * Each part that is looked at now and then says it by a function of its state alone, beside the one
 * that looks (agent.c has both of all parts). It is asked whenever anything has happened, so that
 * nobody has to remember to be woken. */
#ifndef CONTROL_DUE_H
#define CONTROL_DUE_H

#include <stdbool.h>
#include <stdint.h>

#define DUE_NOW   0ull       /* at the next tick, which comes as soon as one may */
#define DUE_NEVER UINT64_MAX /* not unless something happens */

static inline uint64_t due_first(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static inline uint64_t due_last(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

static inline uint64_t due_if(bool is_wanted, uint64_t ns)
{
    return is_wanted ? ns : DUE_NEVER;
}

#endif
