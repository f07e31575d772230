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
void regions_revoke(struct lane *l, const struct lane_command *c);
void revocations_due(struct lane *l);
/* A fence that was asked for is over, or a deregistration. */
void revocation_fenced(struct session *s, uint32_t tag);
/* The session ends, and withdraws all by itself. */
void revocations_forget(struct lane *l, struct session *s);
void arena_reregister(struct lane *l, const struct lane_command *c);
void force_late(struct lane *l, const struct lane_command *c);
void force_over(struct lane *l, const struct lane_command *c);
/* A stale request is over. */
void arena_unused(struct lane *l, struct wr *w);
/* A stale request will be posted again: with the present key. */
void arena_rekey(struct lane *l, struct wr *w);

#endif
