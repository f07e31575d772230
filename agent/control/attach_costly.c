/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that make the control thread's calls on their sockets long. */
#include "agent.h"
#include "base/clock.h"
#include "bounds.h"
#include "connection.h"
#include "control/world_log.h"

void agent_attach_costly(struct connection *c)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    a->costly++;
    if (base_log_allow(&a->costly_limit, world_now_ns(a->world), COSTLY_LOGGED_S * BASE_NS_PER_S,
                       COSTLY_LOGGED, &suppressed))
        world_log(a->world, BASE_LOG_WARN,
                  "so much watches a worker's attach socket that each answer takes long: its "
                  "session ends, and its uid is refused for a while",
                  "uid=%u pid=%d socket=\"%s\" suppressed=%u", (unsigned)c->peer.uid,
                  (int)c->peer.pid, c->peer.path, suppressed);
    agent_connection_close(c);
}
