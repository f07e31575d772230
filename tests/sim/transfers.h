/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrid clusters: what goes to an endpoint by DC is to go by a connection, and the other way
 * round, far more often than traffic would have it. */
#ifndef SIM_TRANSFERS_H
#define SIM_TRANSFERS_H

#include <stdint.h>

#include "base/random.h"

struct lane;

/* Between two passes of a lane: of one of its endpoints, now and then. */
void play_transfer(struct lane *lane, struct base_prng *random);
/* Virtual queue pairs that have gone from one to the other: of a lane in all; and of all clusters
 * since this was last asked, as play_transfers_count() was told after each pass. */
uint64_t play_transfers_of(const struct lane *lane);
void play_transfers_count(const struct lane *lane, uint64_t before);
uint64_t play_transfers_take(void);

#endif
