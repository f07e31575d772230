/* SPDX-License-Identifier: Apache-2.0 */
#include "message/sure_sends.h"

#include "message/exchange_parts.h"

void lane_sender_is_before(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (c->told_behind_ns != 0 && now_ns - c->told_behind_ns < x->config.bound_ns)
        return;
    c->told_behind_ns = now_ns;
    c->behind = 1;
    set_due(x, c);
}

static bool is_at_least(uint32_t number, uint32_t other)
{
    return (int32_t)(number - other) >= 0;
}

void lane_sender_learn_aside(const struct exchange *x, struct stream_sender *t,
                             const struct schema_note *n)
{
    const uint32_t until = n->number + n->aside;
    const bool answers = t->stamp_ns != 0 && is_at_least(n->number, t->stamp);
    if (n->kind == SCHEMA_NOTE_UNKNOWN || n->kind == SCHEMA_NOTE_REFUSED)
        lane_sender_unsure(t);
    else if (n->aside != 0 && answers) {
        t->sure = until;
        t->sure_ns = t->stamp_ns + exchange_sure_ns(x);
        t->since = t->stamp;
    } else if (n->aside != 0 && t->sure_ns != 0 && is_at_least(n->number, t->since) &&
               is_at_least(until, t->sure)) {
        t->sure = until;
    }
    t->stamp_ns = answers ? 0 : t->stamp_ns;
}

void lane_exchange_keep_aside(const struct exchange *x, struct stream_receiver *r, uint32_t number,
                              uint64_t now_ns)
{
    if (number - r->in.next >= lane_aside_has(&r->aside, r->in.next))
        return;
    lane_set_aside_go_on(r->aside.by, now_ns, exchange_step_ns(x));
    lane_aside_keep(&r->aside, r->in.next);
}

/* Not where one that is told RNR until others have none any more would fail. */
void lane_exchange_set_more_aside(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    const uint64_t step_ns = exchange_step_ns(x);
    struct stream_receiver *r;
    int n = 0;
    if (now_ns - c->behind_ns >= ASIDE_STEPS * step_ns ||
        ASIDE_STEPS * step_ns >= x->config.refused_ns) {
        c->behind_ns = 0;
        return;
    }
    TAILQ_FOREACH(r, &c->news, by_news) {
        if (r->aside.by != NULL &&
            (r->news == SCHEMA_NOTE_TAKEN || r->news == SCHEMA_NOTE_ANSWER)) {
            lane_set_aside_go_on(r->aside.by, now_ns, step_ns);
            lane_aside_extend(&r->aside, r->in.next);
        }
        if (++n == SCHEMA_DATAGRAM_NOTES)
            return;
    }
}
