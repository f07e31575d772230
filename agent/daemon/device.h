/* SPDX-License-Identifier: Apache-2.0 */
/* The device, and what pools have of it: what blocks, on the control thread. */
#ifndef DAEMON_DEVICE_H
#define DAEMON_DEVICE_H

#include <stdbool.h>

#include "control/lanes.h"

struct agent;
struct agent_device;

/* device.c. The device and its transport, for all pools; closed after the last of them. */
int fabric_open(struct agent *a, struct base_errbuf *err);
/* False: it is not closed, which was said, and may use this process's memory until that ends. */
bool fabric_close(struct agent *a);
/* As world_device(), world_settle() and world_lock_limit(). */
int device_do(struct world *w, enum world_device_step step, struct pool *p,
              struct base_errbuf *err);
void device_settle(struct world *w, struct pool *p);
uint64_t device_lock_limit(struct world *w);

/* queues.c. The queue pairs that the pool has, as the transport wants them. */
int queues_make(struct pool *p, struct base_errbuf *err);
/* WORLD_DEVICE_TARGET. */
int queues_retarget(struct pool *p);
/* Of WORLD_DEVICE_RETIRE: hands them to the device to destroy. */
void queues_retire(struct pool *p);

#endif
