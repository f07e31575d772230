/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of metaservers that share a store: writers, which change the same few tenants at
 * whichever metaserver, most often at once, and read them; and followers, which follow the trail,
 * now at one, now at another, from what they were told last. What they are answered is judged where
 * it is said (metad_judge.h), what followers are told here. One thread. */
#ifndef SIM_CLIENTS_H
#define SIM_CLIENTS_H

#include <stdint.h>

#include "process.h"

struct play_clients;

struct play_clients_settings {
    uint64_t seed;
    uint32_t metaservers;
    char (*metaserver)[PLAY_NAME]; /* names of hosts; borrowed until the end */
    uint64_t until_ns;             /* then they stop, and what they have set is taken back */
};

struct play_clients *play_clients_start(const struct play_clients_settings *settings);
/* NULL is allowed. */
void play_clients_kill(struct play_clients *c);

#endif
