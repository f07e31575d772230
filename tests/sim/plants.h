/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs that are planted in kedge-sim's copies of the product (plants/, plant.awk), to see
 * whether it finds them. The product has none of this. */
#ifndef SIM_PLANTS_H
#define SIM_PLANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct play_plant {
    const char *name, *what;
    uint32_t workers;    /* of a node, that it takes; 0: as many as there are otherwise */
    uint32_t rate;       /* turns of a worker in a second, that it takes: likewise */
    uint32_t clock_ppm;  /* that clocks are off: likewise */
    uint32_t slack_ms;   /* that devices take to see a doorbell: likewise */
    uint32_t shared;     /* 1: its metaservers share a store */
    uint32_t hybrid;     /* 1: its agents have both transports */
    uint32_t messages;   /* 1: its workers send some */
    uint32_t liar;       /* 1: one of its agents lies */
    uint32_t lanes;      /* of an agent; 0: one */
    uint32_t lines;      /* that it replaces; 0: it is in the clocks or the devices alone */
    uint32_t seed;       /* that found it, and is tried first; 0: the first ones do */
    bool takes_long;     /* many seeds are tried until it is found */
    const char *sees[3]; /* the violation says one of them; but for the first they may be NULL */
};

/* In the order of the list; the last one has no name. */
extern const struct play_plant PLAY_PLANTS[];
/* The number of the one that is switched on, from 1; 0: none. */
extern int kedge_planted;
/* How often that one has done otherwise than the product. */
extern uint64_t *kedge_plant_count;
/* Counts once more; always 1. Where it is planted calls it. */
int kedge_plant_takes_effect(void);

#endif
