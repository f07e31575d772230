/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client by which the agent calls metaservers, in its loop. Control thread. */
#ifndef DAEMON_METASERVER_CLIENT_H
#define DAEMON_METASERVER_CLIENT_H

#include "base/error.h"

struct agent_config;
struct http_tls;
struct loop_world;

/* What the settings say of TLS. 0 and *out (the caller's), or -errno and a sentence. */
int agentd_metaserver_tls_open(const struct agent_config *config, struct http_tls **out,
                               struct base_errbuf *err);
/* Reads certificates again if their files have changed: by itself every 5 s, too. */
void agentd_metaserver_tls_look(struct loop_world *w);

/* 0; or -errno and a sentence, and there is none. */
int agentd_metaserver_client_start(struct loop_world *w, struct base_errbuf *err);
/* Nothing if it was not begun. What is under way is cancelled. */
void agentd_metaserver_client_stop(struct loop_world *w);
/* After agent_registrations_leave(): blocks until all have answered, or for grace_ms. */
void agentd_metaserver_client_await_leaving(struct loop_world *w, unsigned grace_ms);

#endif
