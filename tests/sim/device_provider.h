/* SPDX-License-Identifier: Apache-2.0 */
/* The one fabric provider of simulated processes: devices of the simulated network, of the host
 * whose process opens them. It takes the place of fabric/providers. */
#ifndef SIM_DEVICE_PROVIDER_H
#define SIM_DEVICE_PROVIDER_H

#include "fabric/sim.h"

/* Devices are opened there, from now on, and are like this one but for node and GID. */
void play_provider_init(struct sim_net *net, const struct sim_device_attr *like);
/* Control operations, of all devices and for ever. */
uint64_t play_provider_submitted(void);

#endif
