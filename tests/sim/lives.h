/* SPDX-License-Identifier: Apache-2.0 */
/* Which incarnation of each endpoint was last seen where: in a metaserver's table, or as an agent
 * began with it. It only ever goes up, whatever becomes of processes and clocks meanwhile. One
 * thread. */
#ifndef SIM_LIVES_H
#define SIM_LIVES_H

#include <stdbool.h>
#include <stdint.h>

void play_lives_init(void);
void play_lives_fini(void);
/* where: a metaserver's name, which is asked to forget that node (left), or has refused to (NULL:
 * in the store that all share it is forgotten); and in all tables, that agent has lost what it
 * keeps. After both nobody is left who knows the last incarnation, and with a time of day that is
 * behind the next one may be less (docs/status.md). */
void play_lives_left(const char *where, const uint8_t gid[16], bool left);
void play_lives_lost(const uint8_t gid[16]);
/* That metaserver has lost what it keeps: of all that it knew it was as good as asked to forget it,
 * until it has shown it again. */
void play_lives_forgotten(const char *where);
/* where: a metaserver's name; it has shown that. A violation, if it has shown a later one. */
void play_lives_shown(const char *where, const uint8_t gid[16], uint16_t pool,
                      uint32_t incarnation);

#endif
