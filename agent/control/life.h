/* SPDX-License-Identifier: Apache-2.0 */
/* A life of an agent is from its start, or from when it begins anew above a later incarnation, to
 * its end. */
#ifndef CONTROL_LIFE_H
#define CONTROL_LIFE_H

#include <stdint.h>

struct agent;
struct base_errbuf;

/* That many incarnations above the newest one are kept for a life on the disk too: it takes them
 * without waiting for that, and whatever becomes of it no later life gets one of them. */
enum { INCARNATIONS_AHEAD = 16 };

/* The last one that is kept for a life in which @newest is. */
static inline uint32_t life_last_kept(uint32_t newest)
{
    return newest < UINT32_MAX - 1 - INCARNATIONS_AHEAD ? newest + INCARNATIONS_AHEAD
                                                        : UINT32_MAX - 1;
}

/* Its first one, above which as many are kept as life_last_kept() says. */
void agent_life_begin(struct agent *a, uint32_t incarnation);
/* One that no pool, and no node, has had in this life: later than all of them. 0 and *out; or
 * -errno and a sentence: of those that are kept none is left, since the disk takes long or is full.
 * Waits for nothing: it has others kept in its place meanwhile. */
int agent_life_next_incarnation(struct agent *a, uint32_t *out, struct base_errbuf *err);
/* The latest that a pool or the node has had in this life. */
uint32_t agent_life_newest_incarnation(const struct agent *a);
/* What the life that follows, above a later incarnation, has of the one before. */
void agent_life_begin_anew(struct agent *a, const struct agent *before);

#endif
