/* SPDX-License-Identifier: Apache-2.0 */
#include "delays.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

enum { OF = 64, SPIN_NS = 20000, SLEEP_US = 200 };

static _Atomic uint64_t threads, counted;
static _Thread_local struct base_prng prng;
static _Thread_local bool seeded;

static void begin_seed(void)
{
    const char *seed = getenv("SLEEPS_SEED");
    base_prng_seed(&prng, (seed != NULL ? strtoull(seed, NULL, 10) : 0) * 1000 +
                              atomic_fetch_add(&threads, 1));
    seeded = true;
}

void delays_step(void)
{
    if (!seeded)
        begin_seed();
    const uint64_t what = base_prng_below(&prng, OF);
    if (what == 0)
        usleep((useconds_t)base_prng_below(&prng, SLEEP_US));
    else if (what < 5)
        for (const uint64_t end_ns = base_clock_ns() + base_prng_below(&prng, SPIN_NS);
             base_clock_ns() < end_ns;)
            ;
    else if (what < 9)
        (void)sched_yield();
}

bool delays_loses(const char *kind)
{
    const char *lose = getenv("SLEEPS_LOSE");
    const size_t bytes = strlen(kind);
    return lose != NULL && strncmp(lose, kind, bytes) == 0 && lose[bytes] == ':' &&
           atomic_fetch_add(&counted, 1) >= strtoull(lose + bytes + 1, NULL, 10);
}
