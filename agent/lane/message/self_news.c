/* SPDX-License-Identifier: Apache-2.0 */
#include "message/self_news.h"

#include "message/exchange_parts.h"
#include "message/sure_sends.h"

/* Both ends of its credits are c's, and neither is to be asked for, opened or given back. */
static bool has_usual_credit(const struct message_peer *c)
{
    return c->account.epoch != 0 && c->purse.epoch == c->account.epoch &&
           c->purse.granted == c->account.granted && c->wants == 0;
}

/* What has arrived is granted anew, as to any who sends: who sends will send more. */
static void grant_arrived(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    const uint32_t more = c->arrived > 0 ? lane_credit_grant(&x->bank, &c->account, c->arrived) : 0;
    c->arrived = 0;
    if (more == 0)
        return;
    c->purse.granted = c->account.granted;
    c->asked = 0;
    c->ask_ns = 0;
    c->used_ns = now_ns;
}

/* Up to where what it has sent is settled. A SEND may be over, and its message not taken up here
 * yet: nothing orders the completions of two queue pairs, and what was polled may wait for a later
 * pass. To settle it would be to drop it when it is. So while any is wanting what is settled is
 * what was over bound_ns ago. */
static uint32_t settled_of_self(const struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    const struct credit_purse *p = &c->purse;
    if (p->epoch != c->account.epoch || (int32_t)(p->window.first - c->account.window.first) <= 0)
        return p->window.first;
    const bool is_known = c->own.epoch == p->epoch;
    const uint32_t before = c->own.settled;
    if (is_known && now_ns - c->own.since_ns < x->config.bound_ns)
        return c->account.window.first;
    c->own.epoch = p->epoch;
    c->own.settled = p->window.first;
    c->own.since_ns = now_ns;
    return is_known && (int32_t)(before - c->account.window.first) > 0 ? before
                                                                       : c->account.window.first;
}

void lane_exchange_say_self(struct exchange *x, struct message_peer *c, uint64_t now_ns,
                            struct schema_datagram *out)
{
    lane_exchange_say(x, c, out);
    out->settled = c->settled = settled_of_self(x, c, now_ns);
}

bool lane_exchange_tell_self(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (c->over || c->behind || c->qpn != x->config.qpn || c->extras != 0 || c->ended_count != 0 ||
        !TAILQ_EMPTY(&c->asks) || !has_usual_credit(c))
        return false;
    grant_arrived(x, c, now_ns);
    c->heard_ns = now_ns;
    c->settled = settled_of_self(x, c, now_ns);
    if (c->settled != c->account.window.first)
        lane_peer_settle(x, c, c->account.epoch, c->settled, now_ns);
    TAILQ_REMOVE(&x->dues, c, by_due);
    c->due = 0;
    return true;
}

static struct schema_note note_of(const struct stream_receiver *r)
{
    const bool is_sure = r->news == SCHEMA_NOTE_TAKEN || r->news == SCHEMA_NOTE_ANSWER;
    return (struct schema_note){.stream = r->name,
                                .aside = is_sure ? exchange_says_aside(r) : 0,
                                .number = r->in.next,
                                .kind = r->news,
                                .status = r->news == SCHEMA_NOTE_FAILED ? r->failed : 0,
                                .wait_us = r->news == SCHEMA_NOTE_REFUSED ? r->wait_us : 0};
}

bool lane_exchange_take_note(struct message_peer *c, struct schema_note *n)
{
    struct stream_receiver *r = TAILQ_FIRST(&c->news);
    if (r == NULL)
        return false;
    *n = note_of(r);
    TAILQ_REMOVE(&c->news, r, by_news);
    r->news = 0;
    return true;
}
