/* SPDX-License-Identifier: Apache-2.0 */
/* What workers give back. Private to agent/lane, and the lane thread's. */
#ifndef LANE_WITHDRAW_H
#define LANE_WITHDRAW_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct lane_command;
struct region;
struct schema_sq_desc;
struct session;

/* DEREG_MR. False: it makes no sense. */
bool lane_withdrawal_begin(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* Likewise all that the session lends (lending_state.h), of which nothing is being withdrawn yet;
 * lane_lending_gone() when it is over. */
void lane_withdrawal_of_lent(struct lane *l, struct session *s);
/* What is due. False: no lease is waited for any more. */
bool lane_withdrawals_go_on(struct lane *l, struct session *s);
/* That of one of its regions is waited for no more. lane_withdrawals_let_go() is the caller's. */
void lane_withdrawal_hurry(struct session *s, struct region *region);
/* One of its regions is gone. */
void lane_withdrawal_done(struct lane *l, struct session *s, struct region *region);
/* A fence, named by its tag, is over. False: it was none of these. */
bool lane_withdrawals_fenced(struct lane *l, struct session *s, uint32_t tag);
/* Lets go as many of those with registrations of their own that the worker has withdrawn as may be
 * under way: one more than of those that the operator has. */
void lane_withdrawals_let_go(struct lane *l, struct session *s);
/* MR_GONE: of those, or of what the operator has withdrawn. */
void lane_withdrawals_gone(struct lane *l, const struct lane_command *c);
/* The session ends, and withdraws all by itself. */
void lane_withdrawals_forget(struct session *s);

#endif
