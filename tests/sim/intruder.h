/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile worker as a simulated process, of a tenant of its own: each life of it does one kind of
 * harm, and ends at any moment. Others must not notice: nothing that it posts reaches a region
 * whose key it does not have, and what other workers do is judged as ever. One thread. */
#ifndef SIM_INTRUDER_H
#define SIM_INTRUDER_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

struct play_intruder_settings {
    char socket[108]; /* of its agent */
    uid_t uid;
    uint32_t tenants;  /* whose regions it would like to reach: 1 to this */
    bool messages;     /* others send some */
    uint64_t until_ns; /* it is harmless from then on: it is not there any more */
};

struct play_intruder;

/* On that host it comes and goes until play_intruder_end(). NULL: no memory. */
struct play_intruder *play_intruder_begin(struct play_host *host,
                                          const struct play_intruder_settings *settings,
                                          uint64_t seed);
void play_intruder_end(struct play_intruder *i);
/* The life that there is ends. */
void play_intruder_kill(struct play_intruder *i);
/* What it has posted. */
uint64_t play_intruder_posts(const struct play_intruder *i);

#endif
