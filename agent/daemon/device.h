/* SPDX-License-Identifier: Apache-2.0 */
/* The device, and what pools have of it, on the control thread. To open and to close the device
 * blocks, and so does agentd_device_settle(); nothing of a pool does. */
#ifndef DAEMON_DEVICE_H
#define DAEMON_DEVICE_H

#include <stdbool.h>

#include "control/lanes.h"

struct agent;
struct agent_device;
struct fab_ctl;

/* device.c. The device and its transport, for all pools; closed after the last of them. */
int agentd_fabric_open(struct agent *a, struct base_errbuf *err);
/* False: it is not closed, which was said, and may use this process's memory until that ends. */
bool agentd_fabric_close(struct agent *a);
/* As world_device(), world_settle() and world_lock_limit(). */
int agentd_device_do(struct world *w, enum world_device_step step, struct pool *p,
                     struct base_errbuf *err);
void agentd_device_settle(struct world *w, struct pool *p);
uint64_t agentd_device_lock_limit(struct world *w);

/* device_open.c. WORLD_DEVICE_OPEN. */
int agentd_device_open(struct pool *p, struct base_errbuf *err);

/* queues.c. The queue pairs that the pool has, as the transport wants them: how deep they are; and
 * parts of the series that makes them (fabric/series.h), of a pool: the completion queue of its
 * lane, and with DC initiators and the target, or else the SRQ of messages and the connector. */
void agentd_queues_reckon(struct pool *p);
int agentd_queues_make_cq(void *pool, uint32_t over, struct fab_ctl *ctl);
int agentd_queues_make_initiators(void *pool, uint32_t over, struct fab_ctl *ctl);
int agentd_queues_make_target(void *pool, uint32_t over, struct fab_ctl *ctl);
int agentd_queues_make_srq(void *pool, uint32_t over, struct fab_ctl *ctl);
int agentd_queues_make_connector(void *pool, uint32_t over, struct fab_ctl *ctl);
/* WORLD_DEVICE_TARGET. */
int agentd_queues_retarget(struct pool *p);
/* The target before, if there is one. */
void agentd_queues_leave_former(struct pool *p);
/* Of WORLD_DEVICE_RETIRE: hands them to the device to destroy. */
void agentd_queues_retire(struct pool *p);

#endif
