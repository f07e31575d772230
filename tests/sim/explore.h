/* SPDX-License-Identifier: Apache-2.0 */
/* Many clusters, one after another, and what is said of them on standard output. */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "cluster.h"

/* Seeds from first on. Returns how many have broken a rule. Of the first one it says, as
 * play_explore_shrink() would if that were bounded, which faults it needs. */
uint64_t play_explore_seeds(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                            bool json);
/* Likewise until one has broken a rule (true), or so much time was simulated. */
bool play_explore_time(struct play_cluster_settings *s, uint64_t first, uint64_t simulated_ns,
                       bool json);
/* The cluster of s->seed. True: it has broken a rule. */
bool play_explore_one(struct play_cluster_settings *s);
/* Of that cluster, which breaks a rule: leaves out one fault after another, and says without which
 * of them it still breaks the same one, be it at another place. False: it breaks none. */
bool play_explore_shrink(struct play_cluster_settings *s);
/* Switches on each planted bug, or goes on with the one that is switched on alone, and tries up to
 * so many seeds for each: of those first the one that its list has, if any. True: all were found.
 * table: as Markdown, and seeds are tried in their order; with_long: those too that take many seeds
 * each. */
bool play_explore_plants(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                         bool table, bool with_long);

#endif
