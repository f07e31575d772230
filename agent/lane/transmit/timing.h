/* SPDX-License-Identifier: Apache-2.0 */
/* How long things take in a lane, for histograms. Private to agent/lane, and the lane thread's.
 *
 * The lane reads no clock: what it knows are the times of its passes, so what ends in a pass has
 * taken until the next one begins. Of operations one at a time is followed, and at most one begins
 * in a housekeeping period: a queue pair's ring is compared with a number then, and no request is
 * stamped. Control operations are few, and all count. */
#ifndef LANE_TIMING_H
#define LANE_TIMING_H

#include "agent/lane_stats.h"
#include "base/latency.h"

struct fab_qp;
struct lane;
struct physical_qp;

enum { LATENCY_ENDED = 16 };

struct latencies {
    struct base_latency of[LANE_LATENCIES];
    uint8_t timing; /* anything of what follows is under way */
    uint8_t wanted; /* the next operation that is posted is to be followed */
    struct {
        const struct physical_qp *on; /* NULL: none is followed */
        const struct fab_qp *qp;      /* that it was then */
        uint32_t index;               /* there */
        uint64_t breaks;              /* of queue pairs, until then */
        uint64_t begun_ns;
    } followed;
    /* Of control operations that have ended in a pass whose end is not known yet. */
    struct {
        enum lane_latency which;
        uint64_t begun_ns, ended_ns;
    } ended[LATENCY_ENDED];
    uint32_t ended_count;
};

/* A control operation that began then has ended in this pass. */
void lane_latency_ended(struct lane *l, enum lane_latency which, uint64_t begun_ns);
/* One more operation is to be followed. */
void lane_latency_want(struct lane *l);
/* In each pass, before what it has chained is handed over: while latencies.timing, looks at what
 * has ended in a pass before; and while latencies.wanted, follows one of what is chained, if
 * anything is. */
void lane_latency_go_on(struct lane *l);
void lane_latency_follow(struct lane *l);

#endif
