/* SPDX-License-Identifier: Apache-2.0 */
/* What most datagrams say: how much of one stream was taken, and what its account has now
 * (schema/datagram_like.h). Said, and heard, by a few words. Private to agent/lane, and the lane
 * thread's. Pure.
 *
 * Both ask for no more than lane_exchange_say() and lane_exchange_hear() do, and change what these
 * would: of all else nothing is done, and it goes by these. */
#ifndef LANE_ONE_NOTE_H
#define LANE_ONE_NOTE_H

#include "message/message_exchange.h"

/* Whether what c is due to be told is that alone: then it is told by SCHEMA_DATAGRAM_ONE_BYTES,
 * which are written. */
bool lane_exchange_say_one(struct exchange *x, struct message_peer *c, void *out);
/* c was heard, by a datagram: what it says next may be known by that one. */
void lane_exchange_learn_one(struct message_peer *c, const struct schema_datagram *d);
/* c has said SCHEMA_DATAGRAM_ONE_BYTES. Whether they are as those before: then it was heard, and
 * *n is what it says of a stream. */
bool lane_exchange_hear_one(struct exchange *x, struct message_peer *c, const void *from,
                            uint64_t now_ns, struct schema_note *n);

#endif
