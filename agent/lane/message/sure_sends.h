/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages that are not acknowledged are sure of a receive, as their receiver has said, so
 * that WRITEs and READs go behind them (docs/messages.md#order). Private to agent/lane, and the
 * lane thread's. Pure: times are given. */
#ifndef LANE_SURE_SENDS_H
#define LANE_SURE_SENDS_H

#include "message/message_exchange.h"

/* Something stands behind messages to it, which goes where they are sure of receives. */
void lane_sender_is_before(struct exchange *x, struct message_peer *c, uint64_t now_ns);
/* One more than were sent before it goes: there is no other one with that number. Of no use where
 * nothing has stood behind messages to its peer. */
static inline void lane_sender_stamp(struct stream_sender *t, uint64_t now_ns)
{
    if (t->stamp_ns != 0 || t->to->told_behind_ns == 0)
        return;
    t->stamp = t->out.posted;
    t->stamp_ns = now_ns;
}
/* n was heard of it, and can be so: which are sure, from then on, and for how long. */
void lane_sender_learn_aside(const struct exchange *x, struct stream_sender *t,
                             const struct schema_note *n);
static inline void lane_sender_hear_aside(const struct exchange *x, struct stream_sender *t,
                                          const struct schema_note *n)
{
    if ((t->stamp_ns | t->sure_ns) != 0)
        lane_sender_learn_aside(x, t, n);
}
/* Nothing of it is sure any more. */
static inline void lane_sender_unsure(struct stream_sender *t)
{
    t->sure_ns = t->stamp_ns = 0;
}
/* What a receiver has to say of what is set aside holds for so long from when that went which it
 * answers; and nothing that went until then comes later than bound_ns after. */
static inline uint64_t exchange_sure_ns(const struct exchange *x)
{
    return x->config.bound_ns / 2;
}
static inline uint64_t exchange_step_ns(const struct exchange *x)
{
    return (x->config.bound_ns + exchange_sure_ns(x)) / ASIDE_TERM + 1;
}
/* The message with that number is dropped, though it was sure: what stands behind it may be there,
 * and it comes again. */
void lane_exchange_keep_aside(const struct exchange *x, struct stream_receiver *r, uint32_t number,
                              uint64_t now_ns);
/* What is said of it to its sender with what was taken. */
static inline uint16_t exchange_says_aside(const struct stream_receiver *r)
{
    return r->from->behind_ns != 0 ? (uint16_t)lane_aside_says(&r->aside, r->in.next) : 0;
}
/* Receives for streams of that peer which want some are set aside, as what is said next tells it.
 */
void lane_exchange_set_more_aside(struct exchange *x, struct message_peer *c, uint64_t now_ns);
static inline void lane_exchange_set_aside(struct exchange *x, struct message_peer *c,
                                           uint64_t now_ns)
{
    if (c->behind_ns != 0)
        lane_exchange_set_more_aside(x, c, now_ns);
}

#endif
