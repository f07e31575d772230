/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_watch.h"

static uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool play_limit_holds(struct play_limit *watch, uint64_t limit, uint64_t now)
{
    const bool changed = watch->limit != limit;
    const bool holds = changed || now <= watch->allowed;
    watch->limit = limit;
    if (changed || now < watch->allowed)
        watch->allowed = larger_of(limit, now);
    return holds;
}
