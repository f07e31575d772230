/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that devices refuse, held against what was registered. Agents let nothing be posted that
 * its device or the peer's refuses, but for regions whose owner waits for no lease
 * (KEDGE_MR_FENCED):
 *
 *  - none is refused for its form;
 *  - none names memory that was never registered so;
 *  - none comes after an ordinary region was given back, or its session ended, and its lease was
 *    over: only a host that was suspended sends that late, or its device goes on with what it had
 *    accepted.
 *
 * One thread. */
#ifndef SIM_REFUSALS_H
#define SIM_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/sim.h"

void play_refusals_init(void);
void play_refusals_fini(void);
/* at_once: its agent ends, or is told to use force, and may wait for no lease. */
void play_refusals_deregistered(const struct sim_region *region, bool at_once);
/* suspended: the host of who sent it, or of who refuses, was, not long ago. */
void play_refusals_refused(const struct sim_access *access, enum sim_refusal why, bool suspended);

#endif
