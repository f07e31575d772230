/* SPDX-License-Identifier: Apache-2.0 */
/* What the device reports. Control thread. */
#ifndef CONTROL_DEVICE_EVENTS_H
#define CONTROL_DEVICE_EVENTS_H

#include "fabric/fabric.h"

struct agent;
struct fab_port_watch;

/* The fabric has some. */
void agent_device_events(struct agent *a);
/* The port has another MTU than before. */
void agent_device_port_changed(struct fab_port_watch *w, enum ibv_mtu before);
/* Now and then: whether it has. */
void agent_device_tick(struct agent *a);
uint64_t agent_device_due_ns(const struct agent *a);

#endif
