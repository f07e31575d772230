/* SPDX-License-Identifier: Apache-2.0 */
/* What must be so of a simulated metaserver: what it has answered is in its store, and its table
 * has live nodes alone. What is not is a violation. */
#ifndef SIM_METAD_JUDGE_H
#define SIM_METAD_JUDGE_H

#include "metad_process.h"

/* A request has come; its answer is given; the process has ended or was killed. */
void play_metad_note_asked(struct play_metad *m, const struct play_call *c);
void play_metad_judge_answer(struct play_metad *m, const struct play_call *c,
                             const struct meta_service_answer *answer, const char *body);
void play_metad_judge_end(struct play_metad *m);
/* The common store has carried out a transaction of m (user). */
void play_metad_judge_commit(void *user, const struct meta_store_job *job);
/* The common store was put back, to what it holds now. */
void play_metad_judge_put_back(struct meta_store *store);
/* Of which store it is what m has said (kept.h): its host's, or all metaservers'. */
const char *play_metad_keeps_in(const struct play_metad *m);
void play_metad_judge_table(const struct play_metad *m);
/* The incarnation that the store of m (user) has of an id, also of a node that has expired since;
 * 0: it has none. */
uint32_t play_metad_find_stored(void *user, const char *id);

#endif
