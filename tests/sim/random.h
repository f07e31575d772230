/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness of a simulation: one seed, and a stream for each purpose, so that more draws for one
 * purpose change nothing of another. One thread. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

/* The stream of a purpose ("faults") and a number (of a node, of a worker). */
struct base_prng play_random_of(uint64_t seed, const char *purpose, uint64_t number);

/* least..most, both included. */
uint64_t play_random_between(struct base_prng *r, uint64_t least, uint64_t most);
/* True so many times in a million. */
bool play_random_happens(struct base_prng *r, uint32_t ppm);
/* A time until the next of what happens once in mean_ns on average, in about the distribution of
 * what is independent: mostly short, now and then up to ten times the mean. */
uint64_t play_random_wait(struct base_prng *r, uint64_t mean_ns);
void play_random_fill(struct base_prng *r, void *bytes, uint64_t n);

#endif
