/* SPDX-License-Identifier: Apache-2.0 */
/* What the control thread's loop waits for beside sockets, calls and tasks: the device, signals,
 * and what its supervisor is to hear. Control thread. */
#ifndef DAEMON_LOOP_EVENTS_H
#define DAEMON_LOOP_EVENTS_H

#include "base/error.h"

struct agent;
struct loop_world;
struct process;

/* When the fabric is open: from then on the agent is told what happens. 0, or -errno and a
 * sentence. What was begun ends with agentd_loop_world_end(), also when this fails. */
int agentd_loop_events_watch(struct loop_world *w, const struct process *process,
                             struct base_errbuf *err);
/* Likewise of SIGHUP, by which an agent that has a file of settings reads it anew. */
int agentd_loop_events_watch_hangup(struct loop_world *w, struct base_errbuf *err);
/* The supervisor hears that it serves. */
void agentd_tell_ready(const struct agent *a);

#endif
