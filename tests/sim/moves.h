/* SPDX-License-Identifier: Apache-2.0 */
/* Agents whose pools have several lanes: sessions go to another lane and come back far more often
 * than uneven lanes would have it, at any moment, and most often those with requests out. One
 * thread. */
#ifndef SIM_MOVES_H
#define SIM_MOVES_H

#include "base/random.h"

struct agent;

/* After whatever the agent's loop has done: one of its sessions, now and
 * then. *seen: how many of its moves play_transfers_add() was told, from 0 on in each life. */
void play_move_sessions(struct agent *a, struct base_prng *random, uint64_t *seen);

#endif
