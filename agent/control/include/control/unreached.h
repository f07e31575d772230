/* SPDX-License-Identifier: Apache-2.0 */
/* That other nodes do not reach this one, as a metaserver draws it from what they say, and how
 * often a DC target may be made anew for that. No I/O, no clock; one thread.
 *
 * Not every device says that a DC target broke: of mlx5's the kernel passes on that one has
 * drained, and nothing else. Another target helps then; where a wire is cut it is no help, and the
 * device has one more to drain: so ever less often. */
#ifndef CONTROL_UNREACHED_H
#define CONTROL_UNREACHED_H

#include <stdbool.h>
#include <stdint.h>

#define AGENT_UNREACHED_WAIT_NS UINT64_C(60000000000)  /* between the first two, at least */
#define AGENT_UNREACHED_MOST_NS UINT64_C(960000000000) /* between any two, at most */

/* Zeroed to begin. */
struct agent_unreached {
    bool is;               /* as the last answer has it */
    uint32_t by, tried_by; /* so many do not reach it, of so many that tried; 0 if it is not so */
    uint64_t since_ns;     /* as the metaserver counts, but never before this node's clock began */
    uint64_t anew_ns;      /* when the target was last made anew for it */
    uint64_t wait_ns;      /* and for so long not again; 0: it may be at once */
    uint64_t halved_ns;    /* when that was last set, or halved */
    uint64_t anew;         /* how often it was */
};

/* What a metaserver says: so many of those that tried do not reach this node, for so long; 0: they
 * do. What is not said by two and more, and most, counts as that. Returns whether that changed. */
bool agent_unreached_hear(struct agent_unreached *u, uint32_t by, uint32_t tried_by,
                          uint64_t for_ns, uint64_t now_ns);
/* Whether a target may be made anew for it. */
bool agent_unreached_may(const struct agent_unreached *u, uint64_t now_ns);
/* It is: the next one is not before least_ns, by which others can have found out what it helped,
 * nor before twice the time that there was between the last two, of which half is forgotten in each
 * AGENT_UNREACHED_MOST_NS without one. Who says by turns that he reaches this node and that he does
 * not brings about no more, and who keeps silent in between hardly more. */
void agent_unreached_heed(struct agent_unreached *u, uint64_t now_ns, uint64_t least_ns);

#endif
