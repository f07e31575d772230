/* SPDX-License-Identifier: Apache-2.0 */
/* The P_Keys of a pool's protection domains, as InfiniBand's port has them: settings name a place
 * in the port's table, and the P_Key that was there when the domain was made is what is meant. A
 * subnet manager may move it to another place, or take it away. Control thread. */
#ifndef CONTROL_PKEY_WATCH_H
#define CONTROL_PKEY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct agent;
struct pool;

enum { PKEY_DOMAINS = 2 /* of a pool: its own, and the system's */ };

/* Of a pool; all zero is one of which nothing was asked yet. */
struct pkey_watch {
    struct fab_ctl ctl; /* asks the device for the P_Key of a domain */
    uint32_t domain;    /* for whose P_Key it is asked */
    bool asking, again; /* and once more, since something happened meanwhile */
    bool moved;         /* one was found at another place, in this round */
    uint16_t gone;      /* the first P_Key that the table has not; 0: it has all */
};

/* Asks where they are, unless it is being asked, or the pool's port has but one. */
void agent_pkey_watch_look(struct pool *p);
/* Why a pool reaches nobody, if the port does not have its P_Key: a sentence, else empty. */
void agent_pkey_watch_why(const struct agent *a, char *why, size_t bytes);

#endif
