/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's hold on regions. Private to agent/lane, and the lane thread's. */
#ifndef LANE_REVOKE_H
#define LANE_REVOKE_H

#include <stdint.h>

struct lane;
struct lane_command;
struct session;
struct wr;

/* REVOKE, ARENA_REREGISTER, FORCE_LATE, FORCE_OVER. */
void lane_regions_revoke(struct lane *l, const struct lane_command *c);
void lane_revocations_due(struct lane *l);
/* A fence that was asked for is over, or a deregistration. */
void lane_revocation_fenced(struct session *s, uint32_t tag);
/* The session ends, and withdraws all by itself. */
void lane_revocations_forget(struct lane *l, struct session *s);
void lane_arena_reregister(struct lane *l, const struct lane_command *c);
void lane_force_late(struct lane *l, const struct lane_command *c);
void lane_force_over(struct lane *l, const struct lane_command *c);
/* A stale request is over. */
void lane_arena_unused(struct lane *l, struct wr *w);
/* A stale request will be posted again: with the present key. */
void lane_arena_rekey(struct lane *l, struct wr *w);

#endif
