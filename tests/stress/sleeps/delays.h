/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of sleeps.sh share: each thread stands still now and then, where the protocol
 * of sleeping and waking has a step, as a processor does that is taken away; and wake-ups may be
 * lost on purpose. Their settings are in the environment, since they are linked around calls. */
#ifndef STRESS_DELAYS_H
#define STRESS_DELAYS_H

#include <stdbool.h>

/* By $SLEEPS_SEED and the number of the thread, in the order in which they came here first: mostly
 * nothing, some microseconds of the processor, or a sleep of up to 0.2 ms. */
void delays_step(void);

/* $SLEEPS_LOSE is KIND:N: whether this is one of those, and not of its first N of all threads. */
bool delays_loses(const char *kind);

#endif
