/* SPDX-License-Identifier: Apache-2.0 */
/* A world (control/world.h) that is the test's: time stands still until the test moves it, and what
 * was begun is kept until the test ends it. */
#ifndef UNIT_AGENT_CONTROL_WORLD_H
#define UNIT_AGENT_CONTROL_WORLD_H

#include "control/world.h"

struct test_world {
    struct world world; /* the first member */
    uint64_t now_ns, wall_ms;
    uint64_t alarm_ns;        /* UINT64_MAX: none */
    uint64_t random;          /* counts: the bytes are its hash */
    struct world_task *tasks; /* that were begun, the first first */
};

void test_world_init(struct test_world *w);
/* Moves the clocks, and fires what is due by then, each at its time. */
void test_world_advance(struct test_world *w, uint64_t ns);
/* Ends the first task that was begun, of which there is one, with this status. */
void test_world_end_task(struct test_world *w, int status);

#endif
