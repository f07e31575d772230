/* SPDX-License-Identifier: Apache-2.0 */
/* What this endpoint says to itself, where one of its workers sends to another: most often that
 * messages were taken, and that there is credit for as many. It is heard as it is said, with no
 * datagram made of it. Private to agent/lane, and the lane thread's. */
#ifndef LANE_SELF_NEWS_H
#define LANE_SELF_NEWS_H

#include "message/message_exchange.h"

/* c: this life of this endpoint, to whom something is to be said. Does what lane_exchange_say(),
 * and lane_exchange_hear() of that, do with credit; c is due no more, and the caller takes all of
 * its notes. False: there is something else to say, and nothing was done. */
bool lane_exchange_tell_self(struct exchange *x, struct message_peer *c, uint64_t now_ns);
/* As lane_exchange_say(), which is to be heard by whom it is said by. */
void lane_exchange_say_self(struct exchange *x, struct message_peer *c, uint64_t now_ns,
                            struct schema_datagram *out);
/* Of the next stream that has news. False: none has. */
bool lane_exchange_take_note(struct message_peer *c, struct schema_note *n);

#endif
