/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a metaserver that is a process: its host's clocks, random numbers and log. */
#ifndef METASERVER_LOOP_WORLD_H
#define METASERVER_LOOP_WORLD_H

#include "metaserver/world.h"

void meta_daemon_world_init(struct meta_world *w);

#endif
