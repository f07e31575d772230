/* SPDX-License-Identifier: Apache-2.0 */
/* How near metaservers are, by how long their answers to renewals take, which are asked for anyway.
 *
 * Of the last few of each the shortest counts: the others have waited for something, here, on the
 * way or there. One comes before another when it is nearer by far, and stays there until the other
 * one is: what differs by little, or by turns, changes nothing. A metaserver that is quick on
 * purpose gains no more than to be asked first of those that are well and of the same zone.
 * Control thread. */
#ifndef CONTROL_NEARNESS_H
#define CONTROL_NEARNESS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NEARNESS_SAMPLES = 8, /* that are remembered */
    NEARNESS_LEAST = 3,   /* of them, before they say anything */
};

struct pool;
struct registration;

/* agent_nearness_begin() sets it. */
struct nearness {
    uint64_t took_ns[NEARNESS_SAMPLES]; /* round trips */
    uint32_t count;                     /* of them, 16 being 8 again: the next one's place */
    uint8_t place;                      /* among the pool's metaservers: 0 is the nearest */
};

/* None was measured: they are where the agent's file has them. */
void agent_nearness_begin(struct pool *p);
/* A renewal took so long. True: others are nearer than before. */
bool agent_nearness_measured(struct registration *r, uint64_t took_ns);
/* The round trip, as far as it is known; 0: it is not. */
uint64_t agent_nearness_ns(const struct registration *r);

#endif
