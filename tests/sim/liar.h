/* SPDX-License-Identifier: Apache-2.0 */
/* One agent of a cluster lies: its lane and its connections do what they do, and of what they send
 * its device alters some, by the seed: what datagrams say of credit, of streams and of who it is,
 * headers of messages and where large ones are, handshakes, keys that requests name; and it says
 * what it or others have said again, and often. It knows what anybody has said in a datagram, and
 * of messages what it has sent. What workers are sent, and what workers WRITE, it leaves alone: so
 * that what comes to an honest one is somebody's, and is held against that.
 *
 * Workers of its node may see anything; those of others nothing that is not of it. One thread. */
#ifndef SIM_LIAR_H
#define SIM_LIAR_H

#include <stdbool.h>
#include <stdint.h>

struct sim_sent;

/* One of those nodes, by the seed; 0: nobody lies. */
void play_liar_begin(uint64_t seed, uint32_t nodes);
bool play_liar_is(uint32_t node);
bool play_liar_has_gid(const uint8_t gid[16]);
/* A worker of its node ("node-b/worker-1"). */
bool play_liar_has_worker(const char *name);
/* The hook of the network (fabric/sim.h). */
uint32_t play_liar_sends(void *user, const struct sim_sent *sent);
/* What it has altered. */
uint64_t play_lies(void);

#endif
