/* SPDX-License-Identifier: Apache-2.0 */
/* Why an agent, and not the device, has refused or ended something: what agents write and workers
 * read. No state. */
#ifndef SCHEMA_REASON_H
#define SCHEMA_REASON_H

#include <stdint.h>

/* Why the agent itself refused or ended something; in vendor_err and in `ended`. Stable numbers: 16
 * was another one, and is not given again. */
enum schema_reason {
    SCHEMA_REASON_NONE = 0,
    SCHEMA_REASON_DESCRIPTOR = 1,  /* malformed: op, flags, slots, SGE count */
    SCHEMA_REASON_RING = 2,        /* the ring's indices make no sense: the session ends */
    SCHEMA_REASON_LOCAL_RANGE = 3, /* outside of an arena; or more than the device can */
    SCHEMA_REASON_REMOTE_RANGE = 4,
    SCHEMA_REASON_VKEY = 5, /* unknown, withdrawn, or another tenant's */
    SCHEMA_REASON_ACCESS = 6,
    SCHEMA_REASON_ALIGNMENT = 7, /* a region's name and its memory differ by no multiple of 8 */
    SCHEMA_REASON_ATOMIC = 34,   /* an atomic's remote address is no multiple of 8 */
    SCHEMA_REASON_DEVICE = 31,   /* this node's device does not take the request as it is */
    SCHEMA_REASON_ATOMICS = 32,  /* this node's device has no atomics */
    SCHEMA_REASON_NOT_CONNECTED = 8,
    SCHEMA_REASON_STALE_PEER = 9, /* the peer table's slot was used again, or the node restarted */
    SCHEMA_REASON_QUOTA = 10, /* the session's own; a tenant's: from SCHEMA_REASON_QUOTA_VQPS on */
    SCHEMA_REASON_GUESSES = 11, /* too many wrong keys: the session ends */
    SCHEMA_REASON_PEER_DOWN = 12,
    SCHEMA_REASON_LOOKUP = 13,       /* no metaserver answered */
    SCHEMA_REASON_DRAIN = 14,        /* the agent is stopping */
    SCHEMA_REASON_CLOSED = 15,       /* the worker closed its session or died */
    SCHEMA_REASON_RESTARTED = 17,    /* the agent begins anew, as a later incarnation of its node */
    SCHEMA_REASON_TENANT = 18,       /* its tenant was taken away */
    SCHEMA_REASON_REVOKED = 19,      /* the operator has revoked the region */
    SCHEMA_REASON_NODE_DRAINED = 20, /* the node drains, and its grace period is over */
    SCHEMA_REASON_LEASE = 21, /* the owner's leases are shorter than a request may take here */
    SCHEMA_REASON_CLOCK =
        35, /* this host's clock cannot be trusted, and only time guards the region */
    SCHEMA_REASON_QUOTA_VQPS = 22,
    SCHEMA_REASON_QUOTA_MRS = 23,
    SCHEMA_REASON_QUOTA_CONTROL_OPS = 24,
    SCHEMA_REASON_POOL = 25, /* the pool is taken from the node, and its grace period is over */
    SCHEMA_REASON_FENCED_REGIONS = 26, /* the agent has as many regions with registrations of their
                                        * own as it may */
    SCHEMA_REASON_REGISTER = 27,       /* the device took no further registration */
    SCHEMA_REASON_UNDER_WAY = 28, /* flushed when its physical queue pair broke: it may have been
                                   * executed */
    SCHEMA_REASON_BEHIND = 29,    /* flushed because its queue pair is in error: never posted */
    SCHEMA_REASON_ENDPOINTS = 30, /* no room for one more endpoint with requests out or waiting */
    SCHEMA_REASON_FORCED = 36, /* the operator has what peers reach in this arena registered anew,
                                * which is not done yet */
    SCHEMA_REASON_DEVICE_LOST = 37, /* this node's device was removed or broke: the agent ends */
    SCHEMA_REASON_AWAITED = 38, /* the metaservers know the node, and its agent has not registered
                                 * with those that could be asked */
    SCHEMA_REASON_UNADDRESSED = 39, /* a SEND of a VQP that no SEND_TO has said where to */
    SCHEMA_REASON_LONG = 40,        /* a message of more bytes than one may have, or its buffer */
    SCHEMA_REASON_PORT = 41,        /* nobody hears that port, or not this tenant; or the VQP that
                                     * it was for is gone */
    SCHEMA_REASON_RECEIVER = 42,    /* who hears it has posted no buffer for too long */
    SCHEMA_REASON_MESSAGES = 43,    /* this node, or the peer's, has no messages */
    SCHEMA_REASON_BATCH = 44,       /* no such batch, or it is not ready, or is posted already */
    SCHEMA_REASON_CANCELLED = 45,   /* a batch that its worker has cancelled */
    SCHEMA_REASON_BATCHES = 46,     /* no room for a batch, of the tenant's part or the session's */
    SCHEMA_REASON_MRS = 33, /* the pool has as many regions as it may, or as are not reserved
                             * for other tenants */
};

/* "too_many_wrong_keys", ...: a literal, for logs ("unknown" for a number that is none); what a
 * worker is told is a sentence of libkedge's. */
const char *schema_reason_name(uint32_t reason);

#endif
