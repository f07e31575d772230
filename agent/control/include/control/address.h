/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent does about its own address, as the device says it now and then: the GID that peers
 * know it by may go and come back under another index (an interface that goes down and up), move to
 * another one, or make place for another GID for good. Decides, and does nothing: no clock, no I/O.
 *
 * Invariant: the address in force is the one that was last seen, or the one that is gone. */
#ifndef CONTROL_ADDRESS_H
#define CONTROL_ADDRESS_H

#include "fabric/fabric.h"

/* An address that is away for less is waited for: another GID makes this node another endpoint for
 * everybody, and an interface that is configured anew has its own back within seconds. */
#define ADDRESS_PATIENCE_NS 10000000000ull

enum address_news {
    ADDRESS_SAME,
    ADDRESS_GONE,  /* once: no request can leave, nor come */
    ADDRESS_BACK,  /* as it was, under the same index: what was connected may go on */
    ADDRESS_MOVED, /* the same GID under another index: what is to be connected needs that, and what
                    * was made with the former is of no use */
    ADDRESS_CHANGED, /* another GID, or another LID: peers have to make their ways here anew */
};

struct address {
    uint8_t gid[16]; /* in force */
    uint8_t sgid_index;
    uint16_t lid;
    bool gone, down;  /* the GID; the port */
    uint64_t gone_ns; /* since when it is */
};

/* What was seen is, but for the port's state, taken into *a. */
enum address_news agent_address_seen(struct address *a, const struct fab_own_address *seen,
                                     uint64_t now_ns);

#endif
