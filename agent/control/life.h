/* SPDX-License-Identifier: Apache-2.0 */
/* A life of an agent is from its start, or from when it begins anew above a later incarnation, to
 * its end. */
#ifndef CONTROL_LIFE_H
#define CONTROL_LIFE_H

#include <stdint.h>

struct agent;
struct base_errbuf;

/* One that no pool, and no node, has had in this life: later than all of them. 0 and *out; or
 * -errno and a sentence. Blocks on the disk. */
int life_next_incarnation(struct agent *a, uint32_t *out, struct base_errbuf *err);
/* The latest that a pool or the node has had in this life. */
uint32_t life_newest_incarnation(const struct agent *a);
/* What the life that follows, above a later incarnation, has of the one before. */
void life_begin_anew(struct agent *a, const struct agent *before);

#endif
