/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the exchange share: message_peers.c, message_receivers.c, message_exchange.c.
 * Private to agent/lane/message, and the lane thread's. */
#ifndef LANE_EXCHANGE_PARTS_H
#define LANE_EXCHANGE_PARTS_H

#include "base/hash.h"
#include "message/message_exchange.h"

/* Something is to be said to it. */
static inline void set_due(struct exchange *x, struct message_peer *c)
{
    if (c->due)
        return;
    c->due = 1;
    TAILQ_INSERT_TAIL(&x->dues, c, by_due);
}

/* Whose epoch says at once whose it is. */
void lane_peer_open_account(struct exchange *x, struct message_peer *c);
/* NULL: of an account that is closed. */
struct message_peer *lane_peer_of_account(const struct exchange *x, uint32_t epoch);
/* Later each time, if it is not heard of. */
void lane_peer_ask_for_credit(struct exchange *x, struct message_peer *c, uint64_t now_ns);

/* 0 or -ENOMEM; freed in either case. */
int lane_receivers_init(struct exchange *x);
void lane_receivers_free(struct exchange *x);
/* Streams of a peer that is forgotten, some at a time. Whether it has none any more. */
bool lane_receivers_forget(struct exchange *x, struct message_peer *c);

/* c says that all before `settled` of that account are. A SEND is over when the NIC that it goes to
 * has it, and its receive may be seen here after what its sender says by datagram, since nothing
 * orders the completions of two queue pairs: to settle it would be to drop it when it is. So what
 * has not come is settled seen_ns later. */
void lane_peer_settle(struct exchange *x, struct message_peer *c, uint32_t epoch, uint32_t settled,
                      uint64_t now_ns);

#endif
