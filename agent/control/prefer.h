/* SPDX-License-Identifier: Apache-2.0 */
/* Which metaserver is asked first. Control thread. */
#ifndef CONTROL_PREFER_H
#define CONTROL_PREFER_H

#include <stdbool.h>
#include <stdint.h>

#include "control/config.h"

struct pool;
struct registration;

/* Whether a metaserver has the node, and answers. */
bool agent_prefer_is_sound(const struct registration *r);
/* Whether its settings are to be followed: it is sound, and not behind unless all sound ones are.
 * One that writes nothing has them all the same: where each has a store of its own, another one's
 * would end sessions. */
bool agent_prefer_may_follow(const struct pool *p, uint32_t metaserver);
/* The pool's metaservers by their numbers, in the order in which they are to be asked: the sound
 * ones first, and of them those of this node's zone, which its file says, or else its label `zone`;
 * then those that are behind their store, or write nothing; then those that are silent; of those
 * that are alike the nearest first (nearness.h). Returns how many there are. */
uint32_t agent_prefer_order(const struct pool *p, uint8_t order[AGENT_METASERVERS]);
/* Where that one is in it; 0 is the first. */
uint32_t agent_prefer_place(const struct pool *p, uint32_t metaserver);
/* The lane hears of those that it can READ, in that order. */
void agent_prefer_tell_lane(struct pool *p);

#endif
