/* SPDX-License-Identifier: Apache-2.0 */
/* Completion channels: by which workers wait in poll() or epoll instead of by futex. One is a
 * socket pair, of which the worker has one end whole; a byte in it says that there is something.
 *
 * Who sends a byte does in the kernel what the worker has hung on its end: with 10,000 watches by
 * epoll a send takes 1.5 ms of the processor, with 100,000 15 ms, with a thousand threads in poll()
 * 2 ms and then its turn among them all, and to close is as slow. So no lane sends, nor the control
 * thread. A lane only sets a bit, and wakes a thread that sends, by tenants' turns. A tenant of
 * which that has taken long has a 256th of another thread's time for a thousand times as long: it
 * alone waits, and others have waited for it once.
 *
 * A socket, since nothing that its worker does to its end can make a send with MSG_DONTWAIT wait:
 * O_NONBLOCK is of an open file, which an eventfd shares with its worker; a pipe's reader holds a
 * lock while it copies to memory that it can make the kernel wait for. A stream's sender runs no
 * filter of the receiver's. Our end takes nothing: what a worker sends is refused. */
#ifndef DAEMON_COMP_CHANNELS_H
#define DAEMON_COMP_CHANNELS_H

#include <stdint.h>

#include "base/error.h"

enum {
    CHANNELS_LONG_US = 50,       /* of the processor: what is longer is somebody's doing */
    CHANNELS_FORGIVEN_US = 1000, /* of that, since a machine has its hiccups */
    CHANNELS_PART = 256,         /* of the time that a tenant may have for the rest */
    CHANNELS_SLOW_TIMES = 1024,  /* as long as it took another thread does what comes next */
    CHANNELS_SLOW_MS = 1000,     /* at least */
    CHANNELS_CLOSING = 16,       /* of a tenant, not closed yet, when a session of its that has
                                  * such a one gets another */
};

struct comp_channels;

/* For so many sessions, with their threads. Control thread, as all but tell(). 0; or -errno and a
 * sentence. */
int agentd_comp_channels_new(uint32_t sessions, struct comp_channels **out,
                             struct base_errbuf *err);
/* Nobody tells any more. All end. NULL is allowed. */
void agentd_comp_channels_free(struct comp_channels *c);

/* That session, of that tenant (its index + 1), has one from now on, in place of any other: 0 and
 * the worker's end, the caller's. -EAGAIN, or another -errno, and a sentence. */
int agentd_comp_channels_open(struct comp_channels *c, uint32_t session, uint32_t tenant, int *fd,
                              struct base_errbuf *err);
/* The session has none any more: it is closed in its tenant's turn. */
void agentd_comp_channels_close(struct comp_channels *c, uint32_t session);
/* The tenant's sessions are over, and its number is another's next: what its channels have cost,
 * and those that are not closed yet, are its no more. */
void agentd_comp_channels_forget(struct comp_channels *c, uint32_t tenant);
/* It becomes readable, if there is one. Any thread; never waits. */
void agentd_comp_channels_tell(struct comp_channels *c, uint32_t session);

#endif
