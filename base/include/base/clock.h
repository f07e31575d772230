/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, for daemons and tools. The core never reads one: it is given the time. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BASE_NS_PER_US 1000ull
#define BASE_NS_PER_MS 1000000ull
#define BASE_NS_PER_S  1000000000ull

/* Nanoseconds since boot, time asleep included (CLOCK_BOOTTIME): what leases are counted in. */
static inline uint64_t base_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Nanoseconds that this thread has had of a processor. A system call. */
static inline uint64_t base_clock_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Seconds since 1970, for incarnations and logs. */
static inline uint64_t base_clock_wall_s(void)
{
    return (uint64_t)time(NULL);
}

/* Milliseconds since 1970, for what people read. */
static inline uint64_t base_clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / BASE_NS_PER_MS;
}

/* A clock for measuring latencies inside one process, and for nothing else: it stands still while
 * the machine sleeps, and its zero is arbitrary. The counter of the processor where that is
 * invariant and two calibrations agree, else CLOCK_MONOTONIC. The caller's; read-only after init,
 * so that threads may share it. */
struct base_clock_fast {
    bool counter;
    uint64_t base;        /* of the counter, at init */
    uint64_t ns_per_2_32; /* nanoseconds in 2^32 ticks */
};

/* Takes some 10 ms. Always works. */
void base_clock_fast_init(struct base_clock_fast *clock);

#if defined(__x86_64__)
/* The processor's counter. The compiler's builtin, because <x86intrin.h>, which has a name for it,
 * is 60,000 lines more in each of 400 sources. */
static inline uint64_t base_clock_counter(void)
{
    return __builtin_ia32_rdtsc();
}
#endif

/* Nanoseconds since some moment. Within one thread it never runs backwards. */
static inline uint64_t base_clock_fast_ns(const struct base_clock_fast *clock)
{
#if defined(__x86_64__)
    if (clock->counter)
        return (uint64_t)(((unsigned __int128)(base_clock_counter() - clock->base) *
                           clock->ns_per_2_32) >>
                          32);
#endif
    (void)clock;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
