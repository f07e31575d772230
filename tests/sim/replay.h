/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line says of a cluster, and the one that shows a cluster again: a seed is one
 * story only together with the settings. */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "cluster.h"

enum { FAULTS_MOST = 4096 };

/* What holds where the command line says nothing. */
extern const struct play_cluster_settings PLAY_USUAL;

/* As --shared says. */
void play_share_store(struct play_cluster_settings *s);
/* Of left_out, as struct play_cluster_settings has it. */
bool play_is_left_out(const uint8_t *left_out, uint32_t fault);
/* Of a worker that takes so many turns a second, and the other way round. */
uint64_t play_pause_of(uint64_t rate);
uint64_t play_rate_of(uint64_t pause_ns);
/* On standard output, without an end of the line: the command that tells the story of s->seed with
 * these settings, faults and planted bug. */
void play_replay_print(const struct play_cluster_settings *s);

#endif
