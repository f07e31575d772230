/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a simulated process: runs on a stack of its own until it waits, and goes on there.
 * One at a time, all on one thread of the machine. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct play_fiber;

/* NULL: no memory. It does not run yet. */
struct play_fiber *play_fiber_new(void (*run)(void *user), void *user);
/* Not from inside it. What it had begun is dropped where it stands. */
void play_fiber_free(struct play_fiber *f);
/* Runs it until it leaves. True: it has ended. Not from inside of any. */
bool play_fiber_enter(struct play_fiber *f);
/* From inside: back to where it was entered. */
void play_fiber_leave(void);

#endif
