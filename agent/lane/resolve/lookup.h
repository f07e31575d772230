/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: what a lane keeps of lookups (lookup.c). The lane thread's. */
#ifndef LANE_LOOKUP_H
#define LANE_LOOKUP_H

#include <stdint.h>
#include <sys/queue.h>

struct session;

enum { LANE_LOOKUPS = 64, LANE_LOOKUP_BUCKETS = 64, LANE_LOOKUP_READS = 2 * LANE_LOOKUPS };

LIST_HEAD(lookup_list, lookup);
LIST_HEAD(lookup_read_list, lookup_read);
LIST_HEAD(lookup_waiters, session);

/* An endpoint that is looked up: at one metaserver, and when that is silent, at the next beside it.
 */
struct lookup {
    uint8_t next;           /* metaserver to ask */
    uint8_t absent, behind; /* some metaserver does not know it, or an earlier life of it */
    uint8_t gid[16];
    uint64_t deadline_ns, hedge_ns; /* it ends; the next metaserver is asked */
    uint64_t read_ns;               /* when the READ was posted that is looked at */
    struct lookup_waiters waiters;  /* whose CONNECT this answers */
    struct lookup_read_list reads;  /* under way */
    LIST_ENTRY(lookup) in_use;      /* or among those that are free */
    LIST_ENTRY(lookup) in_bucket;
};

/* A READ of a metaserver's table. */
struct lookup_read {
    uint8_t metaserver; /* its place in the lane's list; NO_METASERVER: it is in that no more */
    uint8_t tries;
    uint32_t scratch;
    uint64_t read_ns;
    struct lookup *lookup;       /* NULL: that is over */
    LIST_ENTRY(lookup_read) one; /* of its lookup, or of those that are free */
};

/* All that are under way are found by what they look for, in a table that nobody outside can crowd
 * a bucket of, so that what one more costs does not grow with them. */
struct lookups {
    struct lookup all[LANE_LOOKUPS];
    struct lookup_read all_reads[LANE_LOOKUP_READS];
    struct lookup_list used, free, bucket[LANE_LOOKUP_BUCKETS];
    struct lookup_read_list free_reads;
};

/* What the lane has heard of a metaserver lately. */
struct silence {
    uint64_t until_ns, last_ns; /* it is not asked before; for how long that was */
    uint64_t heard_ns;          /* when it answered last; 0: not yet */
};

#endif
