/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that step lanes, as control/lanes.h wants them. Control thread. */
#ifndef DAEMON_LANE_THREAD_H
#define DAEMON_LANE_THREAD_H

#include "control/lanes.h"

/* With device.c's. */
extern const struct world_lane_ops LANE_OPS;

#endif
