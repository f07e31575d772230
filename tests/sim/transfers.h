/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrid clusters: what goes to an endpoint by DC is to go by a connection, and the other way
 * round, far more often than traffic would have it, and most often while something is out; and what
 * goes wrong does so in the middle of that. One thread. */
#ifndef SIM_TRANSFERS_H
#define SIM_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

struct lane;
struct play_event;

/* A cluster begins, or is over: nobody waits. */
void play_transfers_begin(void);
/* Whether there are to be any now. Each takes a queue pair of the peer, which rests for a while
 * then: so many that a node that has no other way has to wait for one. In the calm end no such node
 * may. */
bool play_transfers_may_be(void);
/* Whether nodes with RC alone are among them: when several connections to a node break at once, one
 * may wait for its queue pairs that rest, be everything as it should. */
bool play_transfers_may_wait(void);
/* How long a request that was posted then may wait for a connection, besides: where one broke not
 * long ago, since it was to READ a region that is no more. Who needs another one has the queue pair
 * of each node that is ready, and where others have had these, the one that has rested. */
uint64_t play_rest_ns(uint64_t since_ns);
/* Between two passes of a lane of that host: of one of its endpoints, now and then. */
void play_transfer(struct lane *lane, uint32_t host, struct base_prng *random);
/* The event is to happen so long after that host, or another one with it, has begun or ended a
 * connection beside DC. One event of a host waits at a time: false if there is one. */
bool play_transfers_await(uint32_t host, struct play_event *event, uint64_t after_ns);
/* It waits no more. */
void play_transfers_forget(uint32_t host, const struct play_event *event);
/* Virtual queue pairs that have gone from one to the other: of a lane in all; and of all clusters
 * since this was last asked, as play_transfers_count() was told after each pass. */
uint64_t play_transfers_of(const struct lane *lane);
void play_transfers_count(const struct lane *lane, uint64_t before);
/* Sessions that went to another lane count too (moves.h). */
void play_transfers_add(uint64_t more);
uint64_t play_transfers_take(void);

#endif
