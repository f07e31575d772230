/* SPDX-License-Identifier: Apache-2.0 */
/* How large a window is best, as that is found while it is used: policies, and what each remembers
 * of a window. Pure: no clock and no randomness, what was measured is given. One thread.
 *
 * The size is of requests. A sample is of the time since the former one; a policy learns from those
 * alone in which the window was what held requests back, or would have. While nothing is wanted
 * nothing is learned, and nothing is forgotten.
 *
 * Invariant: the size is 0, which is no limit, or at least the floor of the last sample, whatever a
 * policy tries: so nobody is kept out while it does. */
#ifndef LANE_WINDOW_POLICY_H
#define LANE_WINDOW_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_config.h"

enum {
    WINDOW_RUNGS = 16,
    WINDOW_AWAY_NS = 4000000,    /* a sample of longer is none: the lane was away meanwhile */
    WINDOW_SILENT_NS = 64000000, /* nothing ends of much that is wanted: then it rests */
    WINDOW_REST_NS = 512000000,  /* nothing is tried, and what is shared has no limit */
};

struct window_sample {
    uint64_t ns;
    uint64_t work;    /* that ended: bytes, and WINDOW_REQUEST_COST for each request */
    uint32_t ops;     /* requests that ended */
    uint32_t out;     /* that are out at its end */
    uint32_t wanted;  /* that would be, with no limit */
    uint32_t floor;   /* no size is less */
    uint32_t slowed;  /* what requests take in 256ths of what they take at best, as others see it
                       * who are not to blame; 0: this window's own view */
    bool may_explore; /* no other window does */
    bool shared;      /* who is silent in it keeps out others too: the device's */
};

/* SMART's: each rung for a while, the best for longer. */
struct window_ladder {
    uint8_t stage;               /* of the ladder's own */
    uint8_t rung, best;          /* the present one; the one that is kept */
    uint8_t lowest, highest;     /* of what is tried */
    uint8_t step;                /* to the next one */
    uint8_t bad;                 /* rungs one after the other that were worse */
    uint8_t rounds, strange;     /* of keeping; of those, at the end, that were unlike it */
    uint8_t kept;                /* times that it was kept, since all rungs were tried */
    uint8_t hasty;               /* times that strange rounds have ended that, of late */
    uint8_t more, more_spent;    /* rounds at the end with twice as much wanted; one end for them */
    uint8_t unsettled;           /* what is out is of another size still */
    uint8_t shared;              /* as samples say */
    uint8_t confirms;            /* no limit is tried once more before a size is kept */
    uint32_t wanted;             /* at most, while sizes were tried */
    uint32_t ops;                /* of the present round */
    uint64_t ns, work, past_ns;  /* likewise; past: with what was not counted */
    uint64_t settle_ns;          /* it was unsettled so long */
    uint64_t expected;           /* work in a ms, of the best, when it was tried */
    uint64_t rate[WINDOW_RUNGS]; /* work in a ms; 0: not tried */
};

/* Delay-based, as TCP Vegas and BBR are: as many as make requests take no more than so many times
 * what they take with few. */
struct window_delay {
    uint8_t stage;
    uint8_t unsettled, rounds;
    uint32_t ops;              /* of the present round */
    uint64_t ns, out, samples; /* likewise; the sum of what was out */
    uint64_t settle_ns;        /* it was unsettled so long */
    uint64_t few_ns;           /* while that is measured: little was wanted */
    uint64_t base_ns;          /* what a request takes with few out; 0: not known */
    uint32_t former;           /* the size before it was measured */
};

struct window_finder {
    const struct window_policy *policy; /* NULL: none yet */
    uint32_t size;                      /* requests; 0: no limit */
    uint32_t slowed;                    /* as in a sample, by what is out; 0: not known */
    bool explores;                      /* it tries sizes: others had better not */
    bool waits;                         /* it would, and may not explore yet */
    bool content;                       /* it has tried: no limit does as well as any size */
    uint64_t silent_ns, rest_ns;        /* nothing has ended for; nothing is tried for */
    union {
        struct window_ladder ladder;
        struct window_delay delay;
    };
};

struct window_policy {
    const char *name;
    bool finds; /* else sizes are what somebody says */
    void (*begin)(struct window_finder *f);
    void (*take)(struct window_finder *f, const struct window_sample *s);
};

extern const struct window_policy lane_window_static, lane_window_ladder, lane_window_delay;
/* By enum lane_window_policy. */
const struct window_policy *lane_window_policy(enum lane_window_policy which);

void lane_window_finder_begin(struct window_finder *f, const struct window_policy *policy);
/* A sample: the size may be another one then. */
void lane_window_finder_take(struct window_finder *f, const struct window_sample *s);

#endif
