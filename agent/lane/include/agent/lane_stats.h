/* SPDX-License-Identifier: Apache-2.0 */
/* How a lane stands, as anybody may ask at any time: its counters, its leases as an operator sees
 * them, what sessions wait for, its windows. Any thread. */
#ifndef AGENT_LANE_STATS_H
#define AGENT_LANE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_command.h"
#include "schema/wait_reason.h"

struct base_latency;
struct lane;

/* Counters, monotonic unless said otherwise; each is written by the lane with relaxed stores, read
 * by anybody. */
struct lane_stats {
    uint64_t passes, empty_polls;                /* those that did nothing */
    uint64_t handovers;                          /* sleeps to let a worker have the processor */
    uint64_t sleeps, wakes;                      /* wakes: not for what was due */
    uint64_t posted, completed, failed, refused; /* worker requests */
    uint64_t doorbells;                          /* linked lists handed to the fabric */
    uint64_t work_requests;   /* handed to the fabric, of workers and the lane's own */
    uint64_t merged;          /* worker requests that went in another one's work request */
    uint64_t pieces;          /* posted of requests that were cut, beyond the first of each */
    uint64_t merged_failed;   /* such work requests that were refused or failed, and not as a whole
                                 connection does */
    uint64_t batches;         /* that were posted, and are over */
    uint64_t batches_refused; /* that would have been more than their tenant's part of what there
                               * is for them */
    uint64_t endpoint_reads, name_reads; /* READs of metaservers' tables */
    uint64_t mr_reads;                   /* READs of peers' tables */
    uint64_t mr_renewals;                /* of those, while requests went on */
    uint64_t lookups_again; /* times that an endpoint was silent or not reached, for which it is
                               looked up anew */
    uint64_t lookups_failed;
    uint64_t relays;           /* READs of metaservers' tables for other lanes of the pool */
    uint64_t lookups_awaited;  /* times that all are to be asked again for what one awaits */
    uint64_t lookups_compared; /* with an endpoint that was asked for: what finding one costs */
    uint64_t shares_compared;  /* tenants whose part of the MR table was looked at */
    uint64_t proofs, proofs_failed; /* READs that were to prove a way; ways that were not */
    uint64_t wrong_keys;
    uint64_t control_pauses; /* times that a tenant's control operations waited for its budget */
    uint64_t qp_broken, qp_overdue, reposted;
    uint64_t posts_refused; /* requests that the device did not take as they were */
    uint64_t retried;       /* looks at virtual queue pairs whose requests wait */
    uint64_t walked; /* looks at sessions that wait without room, to be woken or for a lookup, and
                      * at regions for what is to be given back */
    uint64_t paths_failed, links_evicted;
    uint64_t links_taken, links_left; /* hybrid: endpoints that went from DC to a connection; and
                                       * from one to DC */
    uint64_t transfers;         /* virtual queue pairs that went with them, when they posted next */
    uint64_t messages_sent;     /* of workers, that are acknowledged */
    uint64_t messages_received; /* that are in a worker's buffer */
    uint64_t messages_rnr;      /* times that one's receiver had no buffer, as it says */
    uint64_t messages_large;    /* of those received, READ from where their senders have them */
    uint64_t messages_near;     /* likewise, from another worker of the lane, by no device */
    uint64_t messages_refused;  /* times that a worker here had none, or no room for a completion */
    uint64_t messages_unadmitted; /* for nobody here, or for a port that is not their tenant's */
    uint64_t messages_stray;      /* that came without a credit of ours, or made no sense */
    uint64_t datagrams_sent;      /* for messages */
    uint64_t quarantined;         /* times that a tenant was put apart from others */
    uint64_t links, sessions, vqps, peers, flows, inflight, mrs, suspects, tenants_quarantined,
        tenants_resting; /* gauges */
    /* Likewise: shared receives that the device has, and how many of them peers have credit for;
     * endpoints with which messages are exchanged; tenants that queue pairs here let in. */
    uint64_t receives_posted, credits_granted, message_peers, port_guests;
    /* By enum lane_window_scope: requests that had to wait at such a window, and how long they
     * did, of those that do no more. */
    uint64_t window_waits[LANE_WINDOW_SCOPES], window_waited_ns[LANE_WINDOW_SCOPES];
};
void lane_stats(const struct lane *lane, struct lane_stats *out);
/* How long things took, as the times of the lane's passes show it: requests of workers that ended
 * well, from their posting to their completion, of which a lane follows one at a time, and one in
 * a millisecond at most; workers' CONNECTs that had to ask the agent, and what else workers ask
 * for beside data, from when it is read to its answer (but for DEREG_MR, which is answered when
 * leases are over). Borrowed from the lane; any thread. */
enum lane_latency {
    LANE_LATENCY_OPERATION,
    LANE_LATENCY_CONNECT,
    LANE_LATENCY_CONTROL,
    LANE_LATENCIES
};
const struct base_latency *lane_latency(const struct lane *lane, enum lane_latency which);
/* One of them alone, for who asks often. */
uint64_t lane_lookups_failed(const struct lane *lane);
/* How often the requests of the tenant in that place have had to wait since they had broken queue
 * pairs. Likewise. */
uint64_t lane_rests(const struct lane *lane, uint32_t tenant);

/* ---- leases: what workers let peers use, as an operator sees it */

enum lane_lease_state {
    LANE_LEASE_NONE,
    LANE_LEASE_LIVE,
    LANE_LEASE_WITHDRAWING, /* not to be found any more; believed until its time is over */
    LANE_LEASE_WAITING,     /* nothing begins in it any more; what had begun is waited for */
    LANE_LEASE_REVOKED,     /* no peer reaches it: its worker has not deregistered it yet */
};

struct lane_lease {
    enum lane_lease_state state;
    bool revoked;     /* by the operator */
    bool own;         /* with a registration of its own */
    bool fenced;      /* and nobody waits a period for its end */
    uint32_t number;  /* of its session's registrations, from 1 */
    uint32_t arena;   /* number */
    uint32_t access;  /* enum schema_record_flag: READ, WRITE, ATOMIC */
    uint64_t offset;  /* in the arena */
    uint64_t length;  /* bytes */
    uint64_t born_ns; /* of lane_step()'s clock */
    uint64_t due_ns;  /* WITHDRAWING: when its time is over; 0: not counted yet */
};

/* Of a session's memory, while the control side has not freed it: how many places for leases were
 * ever used (from 0), and what is in one of them now. False: nothing. Any thread. */
uint32_t lane_leases(const struct lane_memory *memory);
bool lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out);

/* What a peer has to know to use the region of a lease; for the control side alone. */
struct lane_grant {
    uint32_t vkey;
    uint64_t vaddr; /* where its worker has it */
    uint8_t secret[16];
};
/* Likewise. */
bool lane_lease_grant(const struct lane_memory *memory, uint32_t index, struct lane_lease *lease,
                      struct lane_grant *out);

/* How many of its unit each reason has for which the session with that memory waits, while the
 * control side has not freed it; 0: that is none. The lane counts as it goes, and the worker has
 * its part of the numbers, so that one may be a request ahead of another. touch: its worker keeps
 * nobody waiting who reads the ring that it writes; else nothing is said of what is there. Any
 * thread. */
void lane_waits(const struct lane_memory *memory, bool touch, uint32_t count[SCHEMA_WAITS]);

/* How many requests of that session were posted so far, and with how many bytes; what is posted
 * again counts again. Likewise, any thread. */
void lane_posted_of(const struct lane_memory *memory, uint64_t *operations, uint64_t *bytes);

/* How a window stands. Written as the counters are, so that one of these numbers may be a request
 * ahead of another; but where it is counted, with a limit comes what
 * was in flight when it came into force, or later. */
struct lane_window {
    bool counted; /* false: no window of the lane has a limit, and nothing is counted */
    uint64_t limit_bytes, limit_ops; /* that are set; 0: none */
    uint64_t found_ops;              /* that the lane has found beside them; 0: none */
    uint64_t bytes, ops;             /* of workers' requests, in flight */
    uint64_t most_bytes, most_ops;   /* in flight so far */
    uint64_t waiting;                /* VQPs whose first request waits here now */
    uint64_t waits, waited_ns;       /* as in the counters */
    uint8_t gid[16];                 /* of a destination */
};
/* number: of a tenant, its slot; of a destination, any below lane_destinations(); of the
 * device, 0. False: no such destination is in use. Any thread. */
bool lane_window(const struct lane *lane, enum lane_window_scope scope, uint32_t number,
                 struct lane_window *out);
/* "ladder". A literal. */
const char *lane_window_policy_name(enum lane_window_policy policy);
/* How many places for destinations were ever used. Any thread. */
uint32_t lane_destinations(const struct lane *lane);

#endif
