/* SPDX-License-Identifier: Apache-2.0 */
/* Places that tenants share, of something of which a lane has few. Private to agent/lane, and the
 * lane thread's.
 *
 * Beside those that all have in common there is one for each tenant that has none: who comes gets
 * that at once, whatever others have. Of the common ones a tenant may have the part that would be
 * its own if all that have some had as many; one that has more, since it was alone when it took
 * them, gets another one when it has given enough back. */
#ifndef LANE_PLACES_H
#define LANE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct places {
    uint32_t common;
    uint32_t used, having; /* those that are taken, and how many tenants have some */
    uint32_t *of;          /* how many each has: 0: the lane itself; else a tenant's slot + 1 */
};

/* So many, of which there are more than of tenants; the lane itself counts as one. 0 or -ENOMEM;
 * freed in either case. */
int lane_places_init(struct places *p, uint32_t places, uint32_t tenants);
void lane_places_free(struct places *p);
/* Whether it may have one more now. */
bool lane_places_may_take(const struct places *p, uint32_t tenant);
/* How many more that would be, if nobody else took any. */
uint32_t lane_places_left(const struct places *p, uint32_t tenant);
/* False: it may not. */
bool lane_places_take(struct places *p, uint32_t tenant);
void lane_places_give(struct places *p, uint32_t tenant);
/* Takes as many as it may have, one after the other, `most` at the most. Returns how many. */
uint32_t lane_places_take_some(struct places *p, uint32_t tenant, uint32_t most);
void lane_places_give_some(struct places *p, uint32_t tenant, uint32_t count);
/* All that are in common are taken: who has one keeps others from a second. */
bool lane_places_are_short(const struct places *p);

#endif
