/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sessions. Private to agent/lane, and the lane thread's. */
#ifndef LANE_SESSION_H
#define LANE_SESSION_H

#include "lane_state.h"

/* What it begins with, but for what another lane has had of it (lodgers.h). */
void lane_session_fill(struct lane *l, struct session *s, const struct lane_session *add);
int lane_session_add(struct lane *l, const struct lane_session *add);
/* Nothing more is taken from its rings, and nothing of it is posted; the rest of its end comes in
 * later passes (ending.h), and then SESSION_OVER. fault: the control side is told. */
void lane_session_end(struct lane *l, struct session *s, uint32_t reason, bool fault);
/* Those that session_doom() has queued. */
void lane_sessions_end_doomed(struct lane *l);
/* Deregistrations and ends whose time has come, of a few sessions in a pass; the first thing in it,
 * so that the clock was read after what was withdrawn in the one before. */
void lane_sessions_due(struct lane *l);

#endif
