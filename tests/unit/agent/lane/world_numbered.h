/* SPDX-License-Identifier: Apache-2.0 */
/* Continuous traffic whose data is numbered: a worker of node 0 with four VQPs, two to each of two
 * nodes, on a device that takes its time with READs and atomics as it may. Each completion is held
 * to its VQP's order, and what was done to the data that is there. By DC, RC or both. */
#ifndef UNIT_AGENT_LANE_WORLD_NUMBERED_H
#define UNIT_AGENT_LANE_WORLD_NUMBERED_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

enum { NUMBERED = 4 };

/* Of one VQP: requests that were posted, and that are over. */
struct numbered_vqp {
    uint16_t gen;
    uint32_t node;
    uint64_t posted, done, good_adds, bad_adds, base;
    bool failed, bound;
};

extern struct numbered_vqp numbered_of[NUMBERED];
extern struct world *const numbered_world;
extern struct world_worker numbered_worker;

/* transport: "hybrid" or "rc"; order: KEDGE_SOFT_ORDER, or NULL. */
void numbered_open(const char *transport, const char *order);
void numbered_close(void);
/* "late" but where a test has another one of KEDGE_SOFT_ORDER: what numbered_run() has, with its
 * seed, but for one in four. */
extern const char *numbered_kind;

/* How many VQPs went from one way to another: much of all VQPs, with something that happens to
 * nodes and queue pairs every so many passes (0: never), until all is over. */
uint64_t numbered_run(const char *transport, uint64_t seed, uint32_t fault_every);
/* How many are to be run. */
uint64_t numbered_seeds(void);

/* One pass of the lane, and what came of it. */
void numbered_pass(void);
/* That VQP posts one request in each of so many passes; VQPs 0 and 2, in turns. */
void numbered_use(uint32_t vqp, unsigned passes);
void numbered_use_both(unsigned passes);
/* Until all that was posted is over. */
void numbered_settle(void);
/* A node begins anew; the worker connects to it. */
void numbered_restart(uint32_t node);
void numbered_make_known(uint32_t node);

#endif
