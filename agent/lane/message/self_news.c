/* SPDX-License-Identifier: Apache-2.0 */
#include "message/self_news.h"

#include "message/exchange_parts.h"

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

bool lane_exchange_tell_self(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (c->over || c->qpn != x->config.qpn || c->extras != 0 || c->ended_count != 0 ||
        !TAILQ_EMPTY(&c->asks) || !has_usual_credit(c))
        return false;
    grant_arrived(x, c, now_ns);
    c->heard_ns = now_ns;
    c->settled = c->purse.window.first;
    if (c->settled != c->account.window.first)
        (void)lane_credit_settle(&x->bank, &c->account, c->account.epoch, c->settled);
    TAILQ_REMOVE(&x->dues, c, by_due);
    c->due = 0;
    return true;
}

static struct schema_note note_of(const struct stream_receiver *r)
{
    return (struct schema_note){.stream = r->name,
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
