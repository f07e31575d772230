/* SPDX-License-Identifier: Apache-2.0 */
/* The address of this node's port, and what follows from another one. Control thread. */
#ifndef CONTROL_ADDRESS_CHANGE_H
#define CONTROL_ADDRESS_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/lanes.h"

struct agent;
struct lane_event;
struct pool;

/* A thing that the device makes for the present address. */
struct readdress_step {
    bool wanted; /* and not begun yet; or once more, since the one that is under way was begun */
    bool out;    /* one is under way */
    int status;  /* of the last one */
};

/* Of a pool. All zero: nothing. Who is told of the address is told when all has come to an end. */
struct readdress {
    struct readdress_step target, table; /* DC's target; the MR table, of another name */
    bool paths;          /* the lane is to hear of the address, once there is its table */
    bool renamed;        /* the lane is to hear that peers know the node by another name */
    bool moved;          /* the lane is to hear that metaservers' tables are READ by another way */
    uint64_t retry_ms;   /* how long what failed waits for its next try; 0: nothing did */
    uint64_t retry_ns;   /* when that is */
    bool keeps;          /* the target before stays for a while, since it may be in order */
    uint64_t former_ns;  /* until then; 0: there is none */
    uint32_t lanes_left; /* READDRESSes that the pool's lanes have not answered */
};

/* After agentd_fabric_open(). */
void agent_address_init(struct agent *a);
/* Asks the device for it: now, or now and then. */
void agent_address_look(struct agent *a);
void agent_address_tick(struct agent *a);
uint64_t agent_address_due_ns(const struct agent *a);
/* The port's state, as the device says. */
void agent_address_port(struct agent *a, bool down);
/* Why no peer can be reached: a sentence, empty if the address is there and the port up. */
void agent_address_why(const struct agent *a, char *why, size_t bytes);
/* What this pool's peers are reached by is of no use any more, though the address stays. */
void agent_address_paths_anew(struct pool *p);
/* A DC target has broken by itself. */
void agent_address_retarget(struct agent *a);
/* WORLD_DEVICE_TARGET, or _TABLE, is over: 0 or -errno. */
void agent_address_step_done(struct pool *p, enum world_device_step step, int status);
/* LANE_EVENT_READDRESSED. */
void agent_address_readdressed(struct pool *p, const struct lane_event *e);

#endif
