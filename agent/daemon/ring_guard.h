/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the agent when a worker takes pages of its submission ring away.
 *
 * A worker can where rings are not kept whole (base_memfd_keep_whole()). Whoever
 * touches a hole has a page allocated, or, where the kernel promises no more memory than there is
 * (vm.overcommit_memory=2) and all is promised, SIGBUS. So rings are told to this, and SIGBUS for
 * an address in one maps zeros over the whole ring, read-only as the agent uses it: its session has
 * indices that make no sense, or none that ask for anything. Any other SIGBUS ends the process, as
 * it did. */
#ifndef DAEMON_RING_GUARD_H
#define DAEMON_RING_GUARD_H

#include <stddef.h>

struct ring_guard;

/* The process's handler of SIGBUS, from here on. Once, before there is another thread. */
void agentd_ring_guard_start(void);

/* A mapping that is only read, from its first byte on: whole pages, but for its end. 0, and *out is
 * the caller's, who drops it before he unmaps the ring; NULL in a process without the handler. Or
 * -ENOMEM. Any thread. */
int agentd_ring_guard_new(void *ring, size_t bytes, struct ring_guard **out);
/* Any thread; NULL too. */
void agentd_ring_guard_drop(struct ring_guard *guard);

/* An eventfd, which can be read when a ring was replaced; -1: there is none. The main thread. */
int agentd_ring_guard_fd(void);
/* Logs that, when it can be read. The main thread. */
void agentd_ring_guard_report(void);

#endif
