/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent counts, named once for its status and its metrics. */
#ifndef CONTROL_ADMIN_COUNTERS_H
#define CONTROL_ADMIN_COUNTERS_H

#include "agent.h"
#include "names.h"
#include "quotas.h"

/* Every counter of the lane, named once for status and metrics. */
#define LANE_COUNTERS(C)                                                                           \
    C(passes, "Passes of the lane.", COUNTER)                                                      \
    C(empty_polls, "Passes that found nothing to do.", COUNTER)                                    \
    C(sleeps, "Times that the lane went to sleep.", COUNTER)                                       \
    C(wakes, "Times that it was woken, and not by a time that was over.", COUNTER)                 \
    C(handovers, "Times that it slept at once, to let a worker have its processor.", COUNTER)      \
    C(posted, "Requests posted to the fabric.", COUNTER)                                           \
    C(completed, "Requests that completed well.", COUNTER)                                         \
    C(failed, "Requests that completed with an error.", COUNTER)                                   \
    C(refused, "Requests that were refused before they reached a queue pair.", COUNTER)            \
    C(doorbells, "Lists handed to the fabric.", COUNTER)                                           \
    C(work_requests, "Work requests handed to the device, the agent's own too.", COUNTER)          \
    C(merged, "Requests that went in another one's work request.", COUNTER)                        \
    C(merged_failed, "Work requests of several requests that failed or were refused.", COUNTER)    \
    C(batches, "Batches that were posted and are over.", COUNTER)                                  \
    C(batches_refused, "Batches for which a tenant had no room left.", COUNTER)                    \
    C(pieces, "Pieces of requests that were cut, beyond the first of each.", COUNTER)              \
    C(endpoint_reads, "READs of metaservers' tables of endpoints.", COUNTER)                       \
    C(name_reads, "READs of metaservers' tables of names of regions.", COUNTER)                    \
    C(mr_reads, "READs of other nodes' MR tables.", COUNTER)                                       \
    C(mr_renewals, "Of those, the ones that no request waited for.", COUNTER)                      \
    C(lookups_again,                                                                               \
      "Times that an endpoint was silent, or was not reached, so that it is looked up anew.",      \
      COUNTER)                                                                                     \
    C(lookups_failed, "Lookups that no metaserver answered.", COUNTER)                             \
    C(lookups_awaited,                                                                             \
      "Times that all metaservers were to be asked again, since one knows a node which none has "  \
      "yet.",                                                                                      \
      COUNTER)                                                                                     \
    C(relays, "READs of metaservers' tables for other lanes of the pool.", COUNTER)                \
    C(proofs, "READs that were to show whether a node or a metaserver is reached.", COUNTER)       \
    C(proofs_failed, "Times that one was not reached.", COUNTER)                                   \
    C(wrong_keys, "Requests with an unknown virtual key.", COUNTER)                                \
    C(control_pauses, "Times that a tenant's control operations waited for its budget.", COUNTER)  \
    C(qp_broken, "Queue pairs that broke.", COUNTER)                                               \
    C(qp_overdue, "Queue pairs ended since a request was out for as long as any may take.",        \
      COUNTER)                                                                                     \
    C(posts_refused, "Requests that the device did not take as they were.", COUNTER)               \
    C(reposted, "Requests posted again after a break.", COUNTER)                                   \
    C(retried, "Looks at virtual queue pairs whose requests wait.", COUNTER)                       \
    C(paths_failed, "Endpoints that could not be reached to begin with.", COUNTER)                 \
    C(links_evicted, "Connections given up for another endpoint (rc).", COUNTER)                   \
    C(links_taken, "Endpoints that went from DC to a connection (hybrid).", COUNTER)               \
    C(links_left, "Endpoints that went from a connection back to DC (hybrid).", COUNTER)           \
    C(transfers, "Virtual queue pairs that went to another way to their peer (rc, hybrid).",       \
      COUNTER)                                                                                     \
    C(quarantined, "Times that a tenant was put apart from others.", COUNTER)                      \
    C(messages_sent, "Messages of workers that were acknowledged.", COUNTER)                       \
    C(messages_received, "Messages that were put into a buffer of a worker.", COUNTER)             \
    C(messages_large, "Of these, such as were READ from where their senders had them.", COUNTER)   \
    C(messages_near, "Of these, such as another worker of the lane sent, and no device carried.",  \
      COUNTER)                                                                                     \
    C(messages_rnr, "Times that the receiver of a message had no buffer, as it says.", COUNTER)    \
    C(messages_refused,                                                                            \
      "Times that a message came for a worker that had posted no buffer, or had no room.",         \
      COUNTER)                                                                                     \
    C(messages_unadmitted, "Messages for no port here, or for one that is not for their tenant.",  \
      COUNTER)                                                                                     \
    C(messages_stray, "Messages that came without a credit, or made no sense.", COUNTER)           \
    C(datagrams_sent, "Datagrams to other agents about messages.", COUNTER)                        \
    C(tenants_quarantined, "Tenants whose requests go apart from others'.", GAUGE)                 \
    C(tenants_resting, "Tenants whose requests wait since they have broken queue pairs.", GAUGE)   \
    C(links, "Connections to endpoints (rc, hybrid).", GAUGE)                                      \
    C(sessions, "Sessions of the lane.", GAUGE)                                                    \
    C(vqps, "Connected virtual queue pairs.", GAUGE)                                               \
    C(peers, "Known endpoints.", GAUGE)                                                            \
    C(flows, "Endpoints in use.", GAUGE)                                                           \
    C(inflight, "Requests in the lane.", GAUGE)                                                    \
    C(mrs, "Registered memory regions.", GAUGE)                                                    \
    C(suspects, "Endpoints that do not answer.", GAUGE)                                            \
    C(receives_posted, "Receives for messages that the device has.", GAUGE)                        \
    C(credits_granted, "Of them, those for which another agent has a credit.", GAUGE)              \
    C(message_peers, "Endpoints with which messages are exchanged.", GAUGE)                        \
    C(port_guests, "Tenants that workers let in at their ports, of each queue pair.", GAUGE)

/* Every counter of the connector, with rc. */
#define CONNECTOR_COUNTERS(C)                                                                      \
    C(requests, "Handshakes asked for, repeated messages included.", COUNTER)                      \
    C(connected, "Connections made to other nodes.", COUNTER)                                      \
    C(accepted, "Connections that other nodes made to this one.", COUNTER)                         \
    C(failed, "Connections that could not be made.", COUNTER)                                      \
    C(refused, "Requests for a connection that were refused.", COUNTER)                            \
    C(dropped, "Handshake messages that were late, or made no sense.", COUNTER)                    \
    C(forged, "Handshake messages in the name of another node than the one that sent them.",       \
      COUNTER)                                                                                     \
    C(lost, "Handshake messages that could not be sent.", COUNTER)                                 \
    C(reclaimed, "Connections of nodes that were gone.", COUNTER)                                  \
    C(broken, "Connections that broke here, of which their initiators were told.", COUNTER)        \
    C(initiators, "Queue pairs for requests to other nodes.", GAUGE)                               \
    C(initiators_ready, "Of them, those kept ready.", GAUGE)                                       \
    C(responders, "Queue pairs for requests of other nodes.", GAUGE)                               \
    C(responders_ready, "Of them, those kept ready.", GAUGE)                                       \
    C(resting, "Queue pairs whose former connection's packets may still come in.", GAUGE)          \
    C(outgoing, "Connections to other nodes.", GAUGE)                                              \
    C(incoming, "Connections of other nodes to this one.", GAUGE)                                  \
    C(addresses, "Address handles for handshakes.", GAUGE)

/* What a tenant has, in all pools. */
struct used {
    struct quota_used now;
    uint32_t vqps, mrs;
    struct quota_counts so_far;
};

/* What each tenant has, by its slot. Slots that nobody has are zero. */
void agent_tenants_add_up(const struct agent *a, struct used used[AGENT_TENANT_SLOTS]);

/* admin_status.c, admin_metrics.c: the whole text. */
void agent_status_print(struct agent *a, struct base_text *t);
void agent_metrics_print(struct agent *a, struct base_text *t);

/* admin_status.c: of all lanes, or those of one pool. */
struct lane_stats agent_lanes_sum(const struct agent *a, const struct pool *endpoint);

#endif
