/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: one agent's at a time, with the incarnation that this node's agent had last
 * in a file, or, while it runs, the last of those that are kept for it. Blocks on disk. */
#ifndef DAEMON_INCARNATION_H
#define DAEMON_INCARNATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Keeps other agents away from the directory while *lock (the caller's) is open, or the process
 * lives, or one that shares its descriptors (closer_process.h): of an agent that was killed that
 * ends a moment later, for which this waits as long as patience_ms. -EBUSY: another one has it; or
 * -errno; and a sentence. */
int agentd_state_lock(const char *state_dir, uint32_t patience_ms, int *lock,
                      struct base_errbuf *err);

/* Takes the next one, for a life that begins: the largest of the saved one + 1, at_least and the
 * wall clock's seconds; it is durable (file and directory) when this returns, with those that are
 * kept above it (life_last_kept()). A missing file is a first start; one that makes no sense
 * (written by hand, cut short) is replaced by what the wall clock says, and *lost tells so: a
 * metaserver that knows a higher one will say it. -errno and a sentence. Start-up only. */
int agentd_incarnation_next(const char *state_dir, uint64_t wall_s, uint32_t at_least,
                            uint32_t *out, bool *lost, struct base_errbuf *err);

/* All up to last are this life's: durable when this returns 0; or -errno. Any thread, one at a
 * time. */
int agentd_incarnation_keep(const char *state_dir, uint32_t last);

#endif
