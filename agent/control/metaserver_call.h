/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent asks of metaservers. Control thread. */
#ifndef CONTROL_METASERVER_CALL_H
#define CONTROL_METASERVER_CALL_H

#include "control/config.h"
#include "control/world.h"

struct agent;

/* A metaserver's URL, /v1/nodes/, the longest id and what may follow it. */
enum { METASERVER_URL_BYTES = 2 * AGENT_TEXT + 64 };
/* A request to a metaserver, with the agent's token. url is borrowed; ms: of connecting, and of it
 * all. */
struct http_call agent_metaserver_call(const struct agent *a, const char *method, const char *url,
                                       uint32_t ms);

enum { STREAM_TRY_MS = 250 }; /* from the end of a stream to the next one, doubled each time */
/* When a stream that has ended is begun again: many agents lose theirs at one time, and do not
 * begin others at one time. late: nothing was heard of it in time; where that is so of the one
 * before, too, it is put off for LATE_MS and longer. *backoff_ms is of the next time then. */
uint64_t agent_stream_next_ns(const struct agent *a, uint64_t *backoff_ms, bool late);

#endif
