/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an agent whose device does not answer: a thread that ends the process when giving back
 * what it has of the device takes too long. The kernel takes that back with the process, and nobody
 * else has anything of the agent's any more by then: workers, peers and metaservers know that it
 * goes. Begun and ended on the control thread. */
#ifndef DAEMON_STOP_WATCH_H
#define DAEMON_STOP_WATCH_H

#include "base/deadline.h"
#include "fabric/fabric.h"

struct closer;

struct stop_watch {
    struct base_deadline deadline;
    const struct fab *fab; /* borrowed; NULL: there is none */
    struct closer *closer; /* borrowed: what it has goes before the process does */
    int code;              /* that it ends with then */
};

/* Without memory for a thread nobody watches. */
void stop_watch_begin(struct stop_watch *w, const struct fab *fab, struct closer *closer, int code);
/* It was in time. Does not return once the process ends. Before fab is closed. */
void stop_watch_end(struct stop_watch *w);

#endif
