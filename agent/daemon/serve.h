/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's life: begins what it takes in order, runs the loop, and gives it back in the reverse
 * order. Control thread. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

#include "closer_process.h"
#include "emptier_process.h"
#include "stop_watch.h"

struct agent;

/* What stays from one life of the agent to the next. */
struct process {
    struct closer_process closers;
    struct emptier_process emptiers;
    struct stop_watch watch;
    int hangup_fd; /* of SIGHUP; while an agent begins, and while it begins anew, nobody reads it */
};

/* Serves until it is told to end; and once more whenever a metaserver knew a later incarnation,
 * upon which all that carries ours is made anew. a: its settings are read and checked, the rest is
 * zero. Returns the exit code, and has said why unless it is 0. */
int agentd_serve(struct agent *a, struct process *process);

/* Say the sentence on standard error and return the exit code: EXIT_FAILURE; or 2, of what the
 * supervisor need not try again, since it is in the command line or the settings. */
int agentd_fail_start(const char *sentence);
int agentd_fail_for_good(const char *sentence);

#endif
