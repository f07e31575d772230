/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane counts for whoever asks (lane_stats()). Private to agent/lane; the lane thread
 * writes, others read at any time. */
#ifndef LANE_COUNTERS_H
#define LANE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "agent/lane_command.h"
#include "transmit/timing.h"

struct lane_counters {
    _Atomic uint64_t passes, empty_polls, sleeps, wakes, handovers, posted, completed, failed,
        refused, doorbells, endpoint_reads, name_reads, mr_reads, mr_renewals, lookups_again,
        lookups_failed, lookups_awaited, lookups_compared, relays, shares_compared, proofs,
        proofs_failed, wrong_keys, control_pauses, qp_broken, qp_overdue, posts_refused,
        chained_behind, merged, merged_failed, pieces, batches, batches_refused, reposted, retried,
        walked, sessions, vqps, peers, flows, mrs, suspects, links, paths_failed, links_evicted,
        links_taken, links_left, transfers, quarantined, tenants_quarantined, tenants_resting,
        messages_sent, messages_received, messages_rnr, messages_refused, messages_stray,
        datagrams_sent, receives_posted, credits_granted, message_peers, messages_large,
        messages_unadmitted, messages_near, port_guests;
    _Atomic uint64_t window_waits[LANE_WINDOW_SCOPES], window_waited_ns[LANE_WINDOW_SCOPES];
    struct latencies latencies;
};
#define COUNT(lane, what, n)                                                                       \
    atomic_store_explicit(&(lane)->counters.what,                                                  \
                          atomic_load_explicit(&(lane)->counters.what, memory_order_relaxed) +     \
                              (uint64_t)(n),                                                       \
                          memory_order_relaxed)

#endif
