/* SPDX-License-Identifier: Apache-2.0 */
/* Of what is kept ready for whoever comes, sessions or arenas: how much of it one tenant may take
 * before it is made again, so that who comes and goes as fast as it can leaves some to others.
 *
 * A tenant leaves as many as it has taken and nobody has made since: alone it takes half of what
 * there is, the next one half of what that left, and who comes now and then finds some ready. What
 * is made then makes up for what tenants took, for one after the other.
 *
 * No I/O. One thread. Zeroed is: nobody has taken any. */
#ifndef CONTROL_PREWARM_SHARE_H
#define CONTROL_PREWARM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/tenants.h"

struct prewarm_share {
    uint32_t taken[AGENT_TENANT_SLOTS]; /* and not made again */
    uint32_t sum;                       /* of these */
    uint32_t last;                      /* the index of whom was made up for last */
};

/* Whether a tenant (its index + 1) may take one of so many that are ready. */
bool agent_prewarm_share_allows(const struct prewarm_share *s, uint32_t tenant, uint32_t ready);
/* Whether more are to be made at once, where so many are ready and so many are to be: less than
 * half of these are, or some tenant may take none of them and would wait for one, however few
 * others take. */
bool agent_prewarm_share_is_low(const struct prewarm_share *s, uint32_t ready, uint32_t wanted);
/* It takes one. full: there were as many as there are to be, so that nothing is lacking. */
void agent_prewarm_share_take(struct prewarm_share *s, uint32_t tenant, bool full);
/* One more is ready. */
void agent_prewarm_share_made(struct prewarm_share *s);

#endif
