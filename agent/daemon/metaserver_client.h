/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client by which the agent calls metaservers, in its loop. Control thread. */
#ifndef DAEMON_METASERVER_CLIENT_H
#define DAEMON_METASERVER_CLIENT_H

#include "base/error.h"

struct loop_world;

/* 0; or -errno and a sentence, and there is none. */
int agentd_metaserver_client_start(struct loop_world *w, struct base_errbuf *err);
/* Nothing if it was not begun. What is under way is cancelled. */
void agentd_metaserver_client_stop(struct loop_world *w);
/* After agent_registrations_leave(): blocks until all have answered, or for grace_ms. */
void agentd_metaserver_client_await_leaving(struct loop_world *w, unsigned grace_ms);

#endif
