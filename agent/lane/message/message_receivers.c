/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange: streams that are heard. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "base/assert.h"
#include "message/exchange_parts.h"
#include "message/sure_sends.h"

enum {
    CROWDED_WAIT_US = 1000, /* for who has no place for a stream */
    FORGOTTEN = 64,         /* at a time, of a peer that is */
    ENDED_BOUNDS = 4        /* of one whose sender is gone: nothing more of it comes after that */
};

int lane_receivers_init(struct exchange *x)
{
    const uint32_t count = x->config.receivers;
    x->stream_mask = 1;
    while (x->stream_mask < count)
        x->stream_mask *= 2;
    x->stream_mask--;
    x->free_receiver = 1;
    x->receiver = calloc(count, sizeof x->receiver[0]);
    x->by_stream = calloc(x->stream_mask + 1, sizeof x->by_stream[0]);
    x->guest = calloc(x->config.guests + 1, sizeof x->guest[0]);
    if (lane_places_init(&x->receiver_places, count, x->config.shares) != 0 ||
        x->receiver == NULL || x->by_stream == NULL || x->guest == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i + 1 < count; i++)
        x->receiver[i].next = i + 2;
    return 0;
}

void lane_receivers_free(struct exchange *x)
{
    free(x->receiver);
    free(x->by_stream);
    free(x->guest);
    lane_places_free(&x->receiver_places);
}

static void set_news(struct exchange *x, struct stream_receiver *r, enum schema_note_kind kind)
{
    if (r->news == 0)
        TAILQ_INSERT_TAIL(&r->from->news, r, by_news);
    if (r->news != SCHEMA_NOTE_ANSWER || kind != SCHEMA_NOTE_TAKEN) /* which says as much */
        r->news = (uint8_t)kind;
    set_due(x, r->from);
}

/* Of a stream that has no place. Where there is no room it is left out: its sender asks again. */
static void set_extra(struct exchange *x, struct message_peer *c, uint64_t stream,
                      enum schema_note_kind kind, uint32_t number)
{
    uint32_t i = 0;
    while (i < c->extras && c->extra[i].stream != stream)
        i++;
    if (i == PEER_EXTRAS || (i < c->extras && c->extra[i].kind == SCHEMA_NOTE_FAILED))
        return; /* that it has failed says more than what those behind it would have said */
    c->extras = i == c->extras ? i + 1 : c->extras;
    c->extra[i] = (struct schema_note){
        .stream = stream,
        .number = number,
        .kind = (uint8_t)kind,
        .status = kind == SCHEMA_NOTE_FAILED ? IBV_WC_REM_OP_ERR : 0,
        .wait_us = kind == SCHEMA_NOTE_REFUSED ? CROWDED_WAIT_US : 0,
    };
    set_due(x, c);
}

/* ---- places */

static uint32_t *stream_link(const struct exchange *x, uint64_t name)
{
    uint32_t *at = &x->by_stream[base_hash_u64(name, x->seed) & x->stream_mask];
    while (*at != 0 && x->receiver[*at - 1].name != name)
        at = &x->receiver[*at - 1].next;
    return at;
}

static void join_peer(struct exchange *x, struct stream_receiver *r, uint32_t place)
{
    struct message_peer *c = r->from;
    r->sooner = c->latest;
    if (r->sooner != 0)
        x->receiver[r->sooner - 1].later = place;
    c->latest = place;
    c->receivers++;
}

static void leave_peer(struct exchange *x, const struct stream_receiver *r)
{
    struct message_peer *c = r->from;
    if (r->sooner != 0)
        x->receiver[r->sooner - 1].later = r->later;
    if (r->later != 0)
        x->receiver[r->later - 1].sooner = r->sooner;
    else
        c->latest = r->sooner;
    c->receivers--;
}

static void forget_receiver(struct exchange *x, struct stream_receiver *r)
{
    uint32_t *link = stream_link(x, r->name);
    const uint32_t place = *link;
    BASE_ASSERT(place != 0 && &x->receiver[place - 1] == r);
    *link = r->next;
    if (r->news != 0)
        TAILQ_REMOVE(&r->from->news, r, by_news);
    leave_peer(x, r);
    lane_places_give(&x->receiver_places, r->share);
    if (r->guest_life == x->guest[r->guest].life)
        x->guest[r->guest].has--;
    lane_aside_drop(&r->aside, r->in.next);
    *r = (struct stream_receiver){.next = x->free_receiver};
    x->free_receiver = place;
    x->used_receivers--;
}

void lane_exchange_guest_gone(struct exchange *x, uint32_t guest)
{
    BASE_ASSERT(guest != 0 && guest <= x->config.guests);
    x->guest[guest].has = 0;
    x->guest[guest].life++;
}

bool lane_receivers_forget(struct exchange *x, struct message_peer *c)
{
    for (int n = 0; n < FORGOTTEN && c->latest != 0; n++)
        forget_receiver(x, &x->receiver[c->latest - 1]);
    return c->latest == 0;
}

/* Nothing of one that was silent for so long is under way any more. */
static bool is_idle(const struct exchange *x, const struct stream_receiver *r, uint64_t now_ns)
{
    return r->name != 0 && !r->reads &&
           now_ns - r->heard_ns >=
               (r->ended ? ENDED_BOUNDS * x->config.bound_ns : x->config.forget_ns);
}

static void forget_idle_receivers(struct exchange *x, uint64_t now_ns)
{
    enum { LOOKS = 16 };
    for (int i = 0; i < LOOKS; i++) {
        struct stream_receiver *r = &x->receiver[x->hand++ % x->config.receivers];
        if (is_idle(x, r, now_ns))
            forget_receiver(x, r);
    }
}

/* One of several guests has no more of their part than is left to the others of it. */
static bool try_place(struct exchange *x, uint32_t share, uint32_t guest)
{
    return x->free_receiver != 0 &&
           (guest == 0 || x->guest[guest].has == 0 ||
            x->guest[guest].has < lane_places_left(&x->receiver_places, share)) &&
           lane_places_take(&x->receiver_places, share);
}

static bool take_place(struct exchange *x, uint32_t share, uint32_t guest, uint64_t now_ns)
{
    if (try_place(x, share, guest))
        return true;
    forget_idle_receivers(x, now_ns);
    return try_place(x, share, guest);
}

static struct stream_receiver *open_receiver(struct exchange *x, struct message_peer *c,
                                             const struct schema_message *m, uint32_t share,
                                             uint32_t guest, uint64_t now_ns)
{
    if (!take_place(x, share, guest, now_ns))
        return NULL;
    const uint32_t place = x->free_receiver;
    struct stream_receiver *r = &x->receiver[place - 1];
    x->free_receiver = r->next;
    uint32_t *link = stream_link(x, m->stream);
    *r = (struct stream_receiver){.name = m->stream,
                                  .from = c,
                                  .in.next = m->number,
                                  .share = share,
                                  .guest = guest,
                                  .guest_life = x->guest[guest].life,
                                  .life = ++x->lives,
                                  .heard_ns = now_ns};
    x->guest[guest].has++;
    *link = place;
    x->used_receivers++;
    join_peer(x, r, place);
    return r;
}

/* One of another peer with that name is another stream: its name is 64 random bits, and
 * who repeats it harms himself. */
struct stream_receiver *lane_exchange_find_stream(const struct exchange *x,
                                                  const struct message_peer *c, uint64_t name)
{
    const uint32_t place = *stream_link(x, name);
    return place != 0 && x->receiver[place - 1].from == c ? &x->receiver[place - 1] : NULL;
}

static bool is_anothers(const struct exchange *x, const struct message_peer *c, uint64_t name)
{
    const uint32_t place = *stream_link(x, name);
    return place != 0 && x->receiver[place - 1].from != c;
}

/* ---- messages */

static struct stream_receiver *begin_receiver(struct exchange *x, struct message_peer *c,
                                              const struct schema_message *m, uint32_t share,
                                              uint32_t guest, uint64_t now_ns)
{
    if (is_anothers(x, c, m->stream))
        return NULL;
    if (!m->opens) {
        set_extra(x, c, m->stream, SCHEMA_NOTE_UNKNOWN, 0);
        return NULL;
    }
    if (share == 0) { /* which keeps no place: it fails each time */
        set_extra(x, c, m->stream, SCHEMA_NOTE_FAILED, m->number);
        return NULL;
    }
    struct stream_receiver *r = open_receiver(x, c, m, share, guest, now_ns);
    if (r == NULL)
        set_extra(x, c, m->stream, SCHEMA_NOTE_REFUSED, m->number);
    return r;
}

/* Its sender has been told that it finds a receive, and learns by a question alone that it did not
 * come: it finds one when it does. */
static void drop_stray(const struct exchange *x, const struct message_peer *c,
                       const struct schema_message *m, uint64_t now_ns)
{
    struct stream_receiver *r = lane_exchange_find_stream(x, c, m->stream);
    if (r != NULL)
        lane_exchange_keep_aside(x, r, m->number, now_ns);
}

struct stream_receiver *lane_exchange_arrive(struct exchange *x, const struct schema_message *m,
                                             uint32_t share, uint32_t guest, uint64_t now_ns)
{
    struct message_peer *c = lane_peer_of_account(x, m->epoch);
    if (c == NULL) {
        lane_exchange_stray(x);
        return NULL;
    }
    if (lane_credit_arrive(&x->bank, &c->account, m->epoch, m->credit) != 0) {
        x->strays++;
        drop_stray(x, c, m, now_ns);
        return NULL;
    }
    c->arrived++;
    c->heard_ns = now_ns;
    if (m->to_incarnation != x->config.incarnation)
        return NULL;
    struct stream_receiver *r = lane_exchange_find_stream(x, c, m->stream);
    if (r == NULL)
        r = begin_receiver(x, c, m, share, guest, now_ns);
    if (r == NULL)
        return NULL;
    r->heard_ns = now_ns;
    const enum stream_verdict verdict = lane_stream_in_judge(&r->in, m->number);
    if (r->failed != 0)
        set_news(x, r, SCHEMA_NOTE_FAILED);
    else if (verdict == STREAM_SEEN)
        set_news(x, r, SCHEMA_NOTE_TAKEN);
    const bool is_next = m->number == r->in.next + r->reads;
    return is_next && r->failed == 0 && r->stops == 0 ? r : NULL;
}

void lane_exchange_took(struct exchange *x, struct stream_receiver *r)
{
    if (r->aside.by != NULL && r->aside.by->all != 0)
        lane_aside_took(&r->aside, r->in.next);
    lane_stream_in_taken(&r->in);
    set_news(x, r, SCHEMA_NOTE_TAKEN);
}

void lane_exchange_took_near(struct stream_receiver *r, uint64_t now_ns)
{
    if (r->aside.by != NULL && r->aside.by->all != 0)
        lane_aside_took(&r->aside, r->in.next);
    lane_stream_in_taken(&r->in);
    r->heard_ns = r->from->heard_ns = now_ns;
}

void lane_exchange_refuse(struct exchange *x, struct stream_receiver *r, uint32_t wait_us)
{
    r->wait_us = wait_us;
    set_news(x, r, SCHEMA_NOTE_REFUSED);
}

void lane_exchange_fail(struct exchange *x, struct stream_receiver *r, uint8_t status)
{
    r->failed = status;
    lane_aside_drop(&r->aside, r->in.next);
    set_news(x, r, SCHEMA_NOTE_FAILED);
}

void lane_exchange_stop(struct stream_receiver *r, uint32_t number, enum schema_note_kind why,
                        uint32_t wait_us, uint8_t status)
{
    BASE_ASSERT(r->reads > 0);
    if (!lane_exchange_goes_on(r, number))
        return;
    r->stops = (uint8_t)why;
    r->stop_at = number;
    r->stop_status = status;
    r->wait_us = wait_us;
}

void lane_exchange_left(struct exchange *x, struct stream_receiver *r)
{
    const uint8_t why = r->stops;
    BASE_ASSERT(r->reads > 0);
    if (--r->reads > 0 || why == 0)
        return;
    r->stops = 0;
    if (r->ended) /* and is forgotten as any is */
        return;
    if (why == SCHEMA_NOTE_FAILED) {
        lane_exchange_fail(x, r, r->stop_status);
        return;
    }
    set_news(x, r, (enum schema_note_kind)why);
}

void lane_exchange_asked(struct exchange *x, struct message_peer *c, uint64_t stream)
{
    struct stream_receiver *r = lane_exchange_find_stream(x, c, stream);
    if (r == NULL)
        set_extra(x, c, stream, SCHEMA_NOTE_UNKNOWN, 0);
    else if (r->news != SCHEMA_NOTE_REFUSED) /* which says more */
        set_news(x, r,
                 r->failed != 0 ? SCHEMA_NOTE_FAILED
                 : r->reads     ? SCHEMA_NOTE_READS
                                : SCHEMA_NOTE_ANSWER);
}

void lane_exchange_ended(struct exchange *x, struct message_peer *c, uint64_t stream,
                         uint64_t now_ns)
{
    struct stream_receiver *r = lane_exchange_find_stream(x, c, stream);
    if (r == NULL || r->ended)
        return;
    r->ended = 1;
    r->heard_ns = now_ns;
    lane_aside_drop(&r->aside, r->in.next);
}
