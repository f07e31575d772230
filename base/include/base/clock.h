/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, for daemons and tools. The core never reads one: it is given the time. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define KEDGE_NS_PER_US 1000ull
#define KEDGE_NS_PER_MS 1000000ull
#define KEDGE_NS_PER_S  1000000000ull

/* Nanoseconds since boot, time asleep included (CLOCK_BOOTTIME): what leases are counted in. */
static inline uint64_t kedge_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * KEDGE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Seconds since 1970, for incarnations and logs. */
static inline uint64_t kedge_clock_wall_s(void)
{
    return (uint64_t)time(NULL);
}

#endif
