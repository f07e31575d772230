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

#endif
