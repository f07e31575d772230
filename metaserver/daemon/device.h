/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of kedge-metad's device while it serves: its port, its address and P_Key, its end.
 * The thread of the fabric's control operations. */
#ifndef METASERVER_DEVICE_H
#define METASERVER_DEVICE_H

#include "address_watch.h"
#include "process.h"
#include "retarget.h"

struct meta_device {
    struct meta_process *process; /* borrowed, with its service and its endpoint */
    struct meta_address_watch address;
    struct meta_retarget target; /* with DC */
    uint64_t blamed_ns, wait_ns; /* another target was last made since most do not reach the table,
                                  * and how long until the next one; 0: none was of late */
    const char *lost;            /* it cannot be used any more, and why; NULL: it can */
};

void meta_device_init(struct meta_device *d, struct meta_process *process);
/* Takes what the device tells of; lost says whether it is its last word. */
void meta_device_events(struct meta_device *d);
/* Every 100 ms or so. */
void meta_device_tick(struct meta_device *d, uint64_t now_ns);
/* When that is due, as meta_service_due(). */
uint64_t meta_device_due_ns(const struct meta_device *d);
/* Blocks until nothing of it is under way. */
void meta_device_stop(struct meta_device *d);

#endif
