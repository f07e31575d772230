/* SPDX-License-Identifier: Apache-2.0 */
#include "message/one_note.h"

#include "message/exchange_parts.h"
#include "message/sure_sends.h"

/* Nothing but the news of one stream, which is what was taken of it. */
static bool has_one(const struct message_peer *c, const struct stream_receiver *r)
{
    return r != NULL && r->news == SCHEMA_NOTE_TAKEN && TAILQ_NEXT(r, by_news) == NULL &&
           (c->extras | c->ended_count | c->behind) == 0 && TAILQ_EMPTY(&c->asks) &&
           (c->waiters == 0 || c->wants == 0);
}

/* As all are that we say to c. */
static struct schema_datagram_like like_of(const struct exchange_config *own,
                                           const struct message_peer *c)
{
    struct schema_datagram_like k;
    k.word[0] = schema_datagram_first_word(own->pool, own->lid);
    schema_datagram_gid_words(own->gid, &k.word[SCHEMA_ONE_GID]);
    k.word[SCHEMA_ONE_LIVES] = (uint64_t)c->incarnation << 32 | own->incarnation;
    k.word[SCHEMA_ONE_NUMBERS] = (uint64_t)own->qkey << 32 | own->qpn;
    k.word[SCHEMA_ONE_PURSE] = c->purse.epoch;
    k.word[SCHEMA_ONE_ACCOUNT] = (uint64_t)c->account.epoch << 32;
    return k;
}

bool lane_exchange_say_one(struct exchange *x, struct message_peer *c, void *out)
{
    struct stream_receiver *r = TAILQ_FIRST(&c->news);
    if (!has_one(c, r))
        return false;
    if (c->account.epoch != 0 && c->arrived > 0) /* as lane_exchange_say() */
        (void)lane_credit_grant(&x->bank, &c->account, c->arrived);
    c->arrived = 0;
    c->settled = c->purse.window.first;
    c->wants = 0;
    const struct schema_datagram_like like = like_of(&x->config, c);
    const struct schema_datagram_one d = {.settled = c->settled,
                                          .granted = c->account.granted,
                                          .used = lane_credit_used(&c->account),
                                          .number = r->in.next,
                                          .stream = r->name,
                                          .aside = exchange_says_aside(r)};
    schema_datagram_write_one(&like, &d, out);
    TAILQ_REMOVE(&c->news, r, by_news);
    r->news = 0;
    TAILQ_REMOVE(&x->dues, c, by_due);
    c->due = 0;
    return true;
}

void lane_exchange_learn_one(struct message_peer *c, const struct schema_datagram *d)
{
    if (schema_datagram_is_one(d) && d->account_epoch == c->purse.epoch)
        c->heard = schema_datagram_like_of(d);
}

/* Whether what a like one says of c itself is so already, and of its account goes on. */
static bool goes_on(const struct exchange *x, const struct message_peer *c,
                    const struct schema_datagram_one *d)
{
    const uint64_t *word = c->heard.word;
    const uint32_t to = (uint32_t)(word[SCHEMA_ONE_LIVES] >> 32);
    return !c->over && c->qpn == (uint32_t)word[SCHEMA_ONE_NUMBERS] &&
           c->qkey == word[SCHEMA_ONE_NUMBERS] >> 32 && c->lid == word[0] >> 48 &&
           (to == x->config.incarnation || to == 0) && c->purse.epoch != 0 &&
           c->purse.epoch == word[SCHEMA_ONE_ACCOUNT] >> 32 &&
           d->granted - c->purse.granted <= UINT32_MAX / 2 &&
           d->granted - c->purse.window.first <= CREDITS_OPEN && d->stream != 0;
}

bool lane_exchange_hear_one(struct exchange *x, struct message_peer *c, const void *from,
                            uint64_t now_ns, struct schema_note *n)
{
    struct schema_datagram_one d;
    if (!schema_datagram_is_like(&c->heard, from, &d) || !goes_on(x, c, &d))
        return false;
    c->heard_ns = now_ns;
    if (d.granted != c->purse.granted) {
        c->purse.granted = d.granted;
        c->asked = 0;
        c->ask_ns = 0;
        c->used_ns = now_ns;
    }
    if (d.settled != c->account.window.first)
        lane_peer_settle(x, c, (uint32_t)c->heard.word[SCHEMA_ONE_PURSE], d.settled, now_ns);
    *n = (struct schema_note){
        .stream = d.stream, .number = d.number, .kind = SCHEMA_NOTE_TAKEN, .aside = d.aside};
    return true;
}
