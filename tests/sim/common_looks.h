/* SPDX-License-Identifier: Apache-2.0 */
/* What must be so of metaservers that share a store, beside what each answers (metad_judge.h): what
 * is not is a violation. One thread. */
#ifndef SIM_COMMON_LOOKS_H
#define SIM_COMMON_LOOKS_H

#include "metad_process.h"

void play_common_looks_begin(void);
/* It hears that: no node goes back to an earlier life by it. */
void play_common_hear(struct play_metad *m, const struct meta_store_heard *heard);
/* Once a second, of each that is there. */
void play_common_look_at(struct play_metad *m);
/* It has ended. */
void play_common_look_away(const struct play_metad *m);
/* A life of a node is expired from now on. */
void play_common_look_expired(const struct meta_store_life *life);

#endif
