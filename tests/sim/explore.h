/* SPDX-License-Identifier: Apache-2.0 */
/* Many clusters, one after another, and what is said of them on standard output. */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "cluster.h"

enum { FAULTS_MOST = 4096 };

/* Seeds from first on. Returns how many have broken a rule. */
uint64_t play_explore_seeds(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                            bool json);
/* Seeds from first on until one has broken a rule, or so much time was simulated. The former's
 * number: true and *seed. */
bool play_explore_time(struct play_cluster_settings *s, uint64_t first, uint64_t simulated_ns,
                       uint64_t *seed);
/* The cluster of s->seed. True: it has broken a rule. */
bool play_explore_one(struct play_cluster_settings *s);
/* Of that cluster, which breaks a rule: leaves out one fault after another, and says without which
 * of them it still does. False: it breaks none. */
bool play_explore_shrink(struct play_cluster_settings *s);
/* Switches on each planted bug, or goes on with the one that is switched on alone, and tries up to
 * so many seeds for each. True: all were found. table: as Markdown. */
bool play_explore_plants(struct play_cluster_settings *s, uint64_t first, uint64_t count,
                         bool table);

#endif
