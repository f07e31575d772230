/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams between lanes (docs/messages.md#datagrams): their UD queue pair, which is repaired when
 * it breaks, and address handles. Private to agent/lane, and the lane thread's. */
#ifndef LANE_MESSAGE_DATAGRAMS_H
#define LANE_MESSAGE_DATAGRAMS_H

#include "lane_state.h"

struct arrival;

/* Posts all receives. */
void lane_datagrams_begin(struct lane *l);
/* One of those has come, or one that was sent is given back. */
void lane_datagrams_take(struct lane *l, const struct arrival *a);
/* Some of what is to be said. */
void lane_datagrams_say(struct lane *l);
/* Now and then. */
void lane_datagrams_look(struct lane *l);
/* The device says that this queue pair is in ERR; another one than theirs is left alone. */
void lane_datagrams_fatal(struct lane *l, const struct fab_qp *qp);
/* Answers LANE_EVENT_UD_BROKEN. */
void lane_datagrams_ready(struct lane *l, struct fab_qp *qp);
/* An address handle that was asked for; NULL: it could not be made. */
void lane_datagrams_take_ah(struct lane *l, uint32_t tag, struct fab_ah *ah);
/* LANE_COMMAND_NUMBER. */
void lane_datagrams_take_number(struct lane *l, const struct lane_command *c);
/* One that is left at the end, or NULL. */
struct fab_ah *lane_datagrams_give_ah(struct lane *l);
/* This node's address is another one. */
void lane_datagrams_readdress(struct lane *l);

#endif
