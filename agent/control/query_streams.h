/* SPDX-License-Identifier: Apache-2.0 */
/* The streams by which metaservers ask for workers and leases: one at each that this node is
 * registered with, so that whichever a client asks can ask the agent. At the one whose settings it
 * follows these come on that stream (follow.c). Control thread. */
#ifndef CONTROL_QUERY_STREAMS_H
#define CONTROL_QUERY_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

struct agent;

struct query_stream {
    struct agent *agent;
    uint64_t call; /* 0: none */
    uint64_t try_ns, backoff_ms;
};

/* Whether it is time for anything. */
void agent_query_streams_tick(struct agent *a);
uint64_t agent_query_streams_due_ns(const struct agent *a);
/* The settings of that one are followed from now on. */
void agent_query_stream_end(struct agent *a, uint32_t metaserver);
/* With agent_follow_stop(). */
void agent_query_streams_stop(struct agent *a);

#endif
