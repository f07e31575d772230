/* SPDX-License-Identifier: Apache-2.0 */
/* When those may come again who find no room in a queue: one after the other, as fast as the queue
 * gets shorter, so that a storm comes back as a stream. No clock of its own. One thread. */
#ifndef METASERVER_PACE_H
#define METASERVER_PACE_H

#include <stdint.h>

enum { META_PACE_MAX_S = 30 }; /* nobody is told to stay away for longer */

/* Zeroed to begin. */
struct meta_pace {
    uint64_t each_ns; /* that one of the queue takes, by what was measured last; 0: nothing was */
    uint64_t next_ns; /* for when the last one was told to come */
};

/* So many took so long together. Of a few that says no more than that each takes less. */
void meta_pace_measure(struct meta_pace *p, uint64_t took_ns, uint32_t count);
/* For one more, while so many wait: after how many seconds it may come, at least 1. */
unsigned meta_pace_put_off(struct meta_pace *p, uint32_t waiting, uint64_t now);

#endif
