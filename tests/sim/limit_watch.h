/* SPDX-License-Identifier: Apache-2.0 */
/* One thing that is bounded, as somebody sees it who looks at it whenever it may have changed: it
 * does not grow beyond its bound. What is there already may stay when the bound is made narrower,
 * and nothing is added until it is below that.
 *
 * One thread. Zero: nobody has looked yet. */
#ifndef SIM_LIMIT_WATCH_H
#define SIM_LIMIT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { PLAY_NO_LIMIT_SEEN = 0 };
#define PLAY_UNLIMITED UINT64_MAX

struct play_limit {
    uint64_t limit; /* at the last look; PLAY_NO_LIMIT_SEEN */
    uint64_t allowed;
};

/* There is so much of it now, and its bound is that (1 or more, or PLAY_UNLIMITED). False: it has
 * grown beyond what is allowed. */
bool play_limit_holds(struct play_limit *watch, uint64_t limit, uint64_t now);

#endif
