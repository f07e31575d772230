/* SPDX-License-Identifier: Apache-2.0 */
/* The address of this node's port, and what follows from another one. Control thread. */
#ifndef CONTROL_ADDRESS_CHANGE_H
#define CONTROL_ADDRESS_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct lane_event;
struct pool;

/* Of a pool: what the device is making for the present address, a DC target and an MR table. All
 * zero: nothing. Who is told of the address is told when all is there. */
struct readdress {
    uint32_t out;      /* steps that are under way */
    bool again;        /* another target is wanted since the one that is under way was begun */
    bool paths;        /* what leads to peers is made anew then, */
    bool renamed;      /* and peers know the node by another name */
    bool untold;       /* metaservers are to hear of it when all pools have theirs */
    int status;        /* of the first step that failed */
    bool failed;       /* so did one before, which the log has */
    uint64_t retry_ns; /* what failed is tried again then; 0: nothing did */
};

/* After fabric_open(). */
void address_init(struct agent *a);
/* Asks the device for it: now, or now and then. */
void address_look(struct agent *a);
void address_tick(struct agent *a);
/* The port's state, as the device says. */
void address_port(struct agent *a, bool down);
/* Why no peer can be reached: a literal, empty if the address is there and the port up. */
const char *address_why(const struct agent *a);
/* What this pool's peers are reached by is of no use any more, though the address stays. */
void address_paths_anew(struct pool *p);
/* A DC target has broken by itself. */
void address_retarget(struct agent *a);
/* WORLD_DEVICE_TARGET, or _TABLE, is over: 0 or -errno. */
void address_step_done(struct pool *p, int status);
/* LANE_EVENT_READDRESSED. */
void address_readdressed(struct pool *p, const struct lane_event *e);

#endif
