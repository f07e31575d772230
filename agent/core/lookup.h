/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/core: what a lane keeps of lookups (lookup.c). The lane thread's. */
#ifndef CORE_LOOKUP_H
#define CORE_LOOKUP_H

#include <stdint.h>

struct session;

enum { LANE_LOOKUPS = 64 };

/* An endpoint that is looked up: at one metaserver, and when that is silent, at the next beside it.
 */
struct lookup {
    uint8_t used, next;     /* next: metaserver to ask */
    uint8_t out;            /* READs under way */
    uint8_t absent, behind; /* some metaserver does not know it, or an earlier life of it */
    uint8_t gid[16];
    uint64_t number;                /* of all lookups: which one a READ is of */
    uint64_t deadline_ns, hedge_ns; /* it ends; the next metaserver is asked */
    uint64_t read_ns;               /* when the READ was posted that is looked at */
    struct session *waiting;        /* whose CONNECT this answers */
};

/* A READ of a metaserver's table. Its lookup may be over when it comes back. */
struct lookup_read {
    uint8_t used, metaserver, tries, lookup;
    uint32_t scratch;
    uint64_t number, read_ns;
};

/* What the lane has heard of a metaserver lately. */
struct silence {
    uint64_t until_ns, last_ns; /* it is not asked before; for how long that was */
    uint64_t heard_ns;          /* when it answered last; 0: not yet */
};

#endif
