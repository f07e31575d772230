/* SPDX-License-Identifier: Apache-2.0 */
#include "message/message_exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

enum {
    MOST = 1 << 20,
    ASK_DOUBLES = 6,       /* questions for credit, and are as far apart from then on */
    TELLS = 8,             /* of what is settled */
    WANTS = 32,            /* credits, of one peer at a time */
    CROWDED_WAIT_US = 1000 /* for who has no place for a stream */
};

/* ---- making */

static uint32_t buckets_for(uint32_t n)
{
    uint32_t buckets = 2;
    while (buckets < n)
        buckets *= 2;
    return buckets;
}

void lane_exchange_seed(struct exchange *x, uint64_t random)
{
    BASE_ASSERT(x->used == 0 && x->bank.posted == 0);
    x->seed = random;
    lane_credit_bank_init(&x->bank, (uint32_t)(random >> 32));
}

int lane_exchange_init(struct exchange *x, const struct exchange_config *config, uint64_t random)
{
    BASE_ASSERT(config->peers > 0 && config->peers <= MOST && config->receivers > 0 &&
                config->receivers <= MOST);
    *x = (struct exchange){.config = *config, .free = 1, .free_receiver = 1};
    TAILQ_INIT(&x->dues);
    lane_exchange_seed(x, random);
    x->mask = buckets_for(config->peers) - 1;
    x->epoch_mask = buckets_for(4 * config->peers) - 1; /* so that few are taken */
    x->stream_mask = buckets_for(config->receivers) - 1;
    x->all = calloc(config->peers, sizeof x->all[0]);
    x->receiver = calloc(config->receivers, sizeof x->receiver[0]);
    x->by_gid = calloc(x->mask + 1, sizeof x->by_gid[0]);
    x->by_epoch = calloc(x->epoch_mask + 1, sizeof x->by_epoch[0]);
    x->by_stream = calloc(x->stream_mask + 1, sizeof x->by_stream[0]);
    if (x->all == NULL || x->receiver == NULL || x->by_gid == NULL || x->by_epoch == NULL ||
        x->by_stream == NULL) {
        lane_exchange_free(x);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i + 1 < config->peers; i++)
        x->all[i].next = i + 2;
    for (uint32_t i = 0; i + 1 < config->receivers; i++)
        x->receiver[i].next = i + 2;
    return 0;
}

void lane_exchange_free(struct exchange *x)
{
    free(x->all);
    free(x->receiver);
    free(x->by_gid);
    free(x->by_epoch);
    free(x->by_stream);
    *x = (struct exchange){.hand = 0};
}

/* ---- what is to be said */

static void set_due(struct exchange *x, struct message_peer *c)
{
    if (c->due)
        return;
    c->due = 1;
    TAILQ_INSERT_TAIL(&x->dues, c, by_due);
}

static void set_news(struct exchange *x, struct stream_receiver *h, enum schema_note_kind kind)
{
    if (h->news == 0)
        TAILQ_INSERT_TAIL(&h->from->news, h, by_news);
    h->news = (uint8_t)kind;
    set_due(x, h->from);
}

/* Of a stream that has no place: one at a time, since its sender asks again. */
static void set_extra(struct exchange *x, struct message_peer *c, uint64_t stream,
                      enum schema_note_kind kind, uint32_t number)
{
    c->extra = (struct schema_note){
        .stream = stream,
        .number = number,
        .kind = (uint8_t)kind,
        .wait_us = kind == SCHEMA_NOTE_REFUSED ? CROWDED_WAIT_US : 0,
    };
    set_due(x, c);
}

/* ---- streams that are heard */

static uint32_t *stream_link(const struct exchange *x, uint64_t name)
{
    uint32_t *at = &x->by_stream[base_hash_u64(name, x->seed) & x->stream_mask];
    while (*at != 0 && x->receiver[*at - 1].name != name)
        at = &x->receiver[*at - 1].next;
    return at;
}

static void forget_receiver(struct exchange *x, struct stream_receiver *h)
{
    uint32_t *link = stream_link(x, h->name);
    const uint32_t place = *link;
    BASE_ASSERT(place != 0 && &x->receiver[place - 1] == h);
    *link = h->next;
    if (h->news != 0)
        TAILQ_REMOVE(&h->from->news, h, by_news);
    h->from->receivers--;
    *h = (struct stream_receiver){.next = x->free_receiver};
    x->free_receiver = place;
    x->used_receivers--;
}

/* Nothing of one that was silent for so long is under way any more. */
static void forget_idle_receiver(struct exchange *x, uint64_t now_ns)
{
    enum { LOOKS = 16 };
    for (int i = 0; i < LOOKS; i++) {
        struct stream_receiver *h = &x->receiver[x->hand++ % x->config.receivers];
        if (h->name != 0 && now_ns - h->heard_ns >= x->config.forget_ns) {
            forget_receiver(x, h);
            return;
        }
    }
}

static struct stream_receiver *open_receiver(struct exchange *x, struct message_peer *c,
                                             uint64_t name, uint32_t number, uint64_t now_ns)
{
    if (x->free_receiver == 0)
        forget_idle_receiver(x, now_ns);
    if (x->free_receiver == 0)
        return NULL;
    const uint32_t place = x->free_receiver;
    struct stream_receiver *h = &x->receiver[place - 1];
    x->free_receiver = h->next;
    uint32_t *link = stream_link(x, name);
    *h = (struct stream_receiver){.name = name, .from = c, .in.next = number, .heard_ns = now_ns};
    *link = place;
    x->used_receivers++;
    c->receivers++;
    return h;
}

/* One of another peer with that name is another stream: its name is 64 random bits, and
 * who repeats it harms himself. */
static struct stream_receiver *find_receiver(const struct exchange *x, const struct message_peer *c,
                                             uint64_t name)
{
    const uint32_t place = *stream_link(x, name);
    return place != 0 && x->receiver[place - 1].from == c ? &x->receiver[place - 1] : NULL;
}

static bool is_anothers(const struct exchange *x, const struct message_peer *c, uint64_t name)
{
    const uint32_t place = *stream_link(x, name);
    return place != 0 && x->receiver[place - 1].from != c;
}

/* ---- peers */

static uint32_t *gid_link(const struct exchange *x, const uint8_t gid[16], uint32_t incarnation)
{
    uint32_t *at = &x->by_gid[base_hash_gid(gid, 0, x->seed) & x->mask];
    while (*at != 0) {
        struct message_peer *c = &x->all[*at - 1];
        if (c->incarnation == incarnation && memcmp(c->gid, gid, sizeof c->gid) == 0)
            break;
        at = &c->next;
    }
    return at;
}

static void close_account(struct exchange *x, struct message_peer *c)
{
    if (c->account.epoch == 0)
        return;
    x->by_epoch[c->account.epoch & x->epoch_mask] = 0;
    lane_credit_account_close(&x->bank, &c->account);
}

/* Whose epoch says at once whose it is. */
static void open_account(struct exchange *x, struct message_peer *c)
{
    do {
        lane_credit_account_open(&x->bank, &c->account);
    } while (x->by_epoch[c->account.epoch & x->epoch_mask] != 0);
    x->by_epoch[c->account.epoch & x->epoch_mask] = (uint32_t)(c - x->all) + 1;
}

/* Nobody here sends to it. */
static void forget_peer(struct exchange *x, struct message_peer *c)
{
    uint32_t *link = gid_link(x, c->gid, c->incarnation);
    const uint32_t place = *link;
    BASE_ASSERT(place != 0 && c->senders == 0);
    for (uint32_t i = 0; c->receivers > 0 && i < x->config.receivers; i++)
        if (x->receiver[i].name != 0 && x->receiver[i].from == c)
            forget_receiver(x, &x->receiver[i]);
    close_account(x, c);
    *link = c->next;
    if (c->due)
        TAILQ_REMOVE(&x->dues, c, by_due);
    *c = (struct message_peer){.next = x->free};
    x->free = place;
    x->used--;
}

static bool may_be_forgotten(const struct exchange *x, const struct message_peer *c,
                             uint64_t now_ns)
{
    const uint64_t silent_ns = now_ns - c->heard_ns;
    return c->incarnation != 0 && c->senders == 0 &&
           (silent_ns >= x->config.forget_ns ||
            (c->over && now_ns - c->over_ns >= x->config.bound_ns));
}

/* Its former lives are over; false: it is one of them. */
static bool is_latest(struct exchange *x, const uint8_t gid[16], uint32_t incarnation,
                      uint64_t now_ns)
{
    for (uint32_t i = x->by_gid[base_hash_gid(gid, 0, x->seed) & x->mask]; i != 0;
         i = x->all[i - 1].next) {
        struct message_peer *c = &x->all[i - 1];
        if (memcmp(c->gid, gid, sizeof c->gid) != 0)
            continue;
        if (c->incarnation > incarnation)
            return false;
        if (c->incarnation < incarnation && !c->over) {
            c->over = 1;
            c->over_ns = now_ns;
        }
    }
    return true;
}

static void make_room(struct exchange *x, uint64_t now_ns)
{
    enum { LOOKS = 16 };
    for (int i = 0; i < LOOKS && x->free == 0; i++) {
        struct message_peer *c = &x->all[x->hand++ % x->config.peers];
        if (may_be_forgotten(x, c, now_ns))
            forget_peer(x, c);
    }
}

struct message_peer *lane_exchange_know(struct exchange *x, const uint8_t gid[16],
                                        uint32_t incarnation, uint64_t now_ns)
{
    BASE_ASSERT(incarnation != 0);
    uint32_t place = *gid_link(x, gid, incarnation);
    if (place != 0)
        return x->all[place - 1].over ? NULL : &x->all[place - 1];
    if (!is_latest(x, gid, incarnation, now_ns))
        return NULL;
    if (x->free == 0)
        make_room(x, now_ns);
    if (x->free == 0)
        return NULL;
    place = x->free;
    struct message_peer *c = &x->all[place - 1];
    x->free = c->next;
    uint32_t *link = gid_link(x, gid, incarnation);
    *c = (struct message_peer){.incarnation = incarnation, .heard_ns = now_ns};
    memcpy(c->gid, gid, sizeof c->gid);
    TAILQ_INIT(&c->news);
    TAILQ_INIT(&c->asks);
    *link = place;
    x->used++;
    return c;
}

/* ---- as a receiver */

static struct message_peer *find_account(const struct exchange *x, uint32_t epoch)
{
    const uint32_t place = x->by_epoch[epoch & x->epoch_mask];
    return place != 0 && x->all[place - 1].account.epoch == epoch ? &x->all[place - 1] : NULL;
}

static struct stream_receiver *begin_receiver(struct exchange *x, struct message_peer *c,
                                              const struct schema_message *m, uint64_t now_ns)
{
    if (is_anothers(x, c, m->stream))
        return NULL;
    if (!m->opens) {
        set_extra(x, c, m->stream, SCHEMA_NOTE_UNKNOWN, 0);
        return NULL;
    }
    struct stream_receiver *h = open_receiver(x, c, m->stream, m->number, now_ns);
    if (h == NULL)
        set_extra(x, c, m->stream, SCHEMA_NOTE_REFUSED, m->number);
    return h;
}

struct stream_receiver *lane_exchange_arrive(struct exchange *x, const struct schema_message *m,
                                             uint64_t now_ns)
{
    struct message_peer *c = find_account(x, m->epoch);
    if (c == NULL) {
        BASE_ASSERT(x->bank.posted > 0);
        x->bank.posted--;
        x->strays++;
        return NULL;
    }
    if (lane_credit_arrive(&x->bank, &c->account, m->epoch, m->credit) != 0) {
        x->strays++;
        return NULL;
    }
    c->arrived++;
    c->heard_ns = now_ns;
    if (m->to_incarnation != x->config.incarnation)
        return NULL;
    struct stream_receiver *h = find_receiver(x, c, m->stream);
    if (h == NULL)
        h = begin_receiver(x, c, m, now_ns);
    if (h == NULL)
        return NULL;
    h->heard_ns = now_ns;
    const enum stream_verdict verdict = lane_stream_in_judge(&h->in, m->number);
    if (h->failed != 0)
        set_news(x, h, SCHEMA_NOTE_FAILED);
    else if (verdict == STREAM_SEEN)
        set_news(x, h, SCHEMA_NOTE_TAKEN);
    return h->failed == 0 && verdict == STREAM_NEXT ? h : NULL;
}

void lane_exchange_took(struct exchange *x, struct stream_receiver *h)
{
    lane_stream_in_taken(&h->in);
    set_news(x, h, SCHEMA_NOTE_TAKEN);
}

void lane_exchange_refuse(struct exchange *x, struct stream_receiver *h, uint32_t wait_us)
{
    h->wait_us = wait_us;
    set_news(x, h, SCHEMA_NOTE_REFUSED);
}

void lane_exchange_fail(struct exchange *x, struct stream_receiver *h, uint8_t status)
{
    h->failed = status;
    set_news(x, h, SCHEMA_NOTE_FAILED);
}

void lane_exchange_asked(struct exchange *x, struct message_peer *c, uint64_t stream)
{
    struct stream_receiver *h = find_receiver(x, c, stream);
    if (h == NULL)
        set_extra(x, c, stream, SCHEMA_NOTE_UNKNOWN, 0);
    else if (h->news != SCHEMA_NOTE_REFUSED) /* which says more */
        set_news(x, h, h->failed != 0 ? SCHEMA_NOTE_FAILED : SCHEMA_NOTE_ANSWER);
}

/* ---- as a sender */

static void stop_waiting(struct stream_sender *t)
{
    if (t->waits)
        t->to->waiters--;
    t->waits = 0;
}

void lane_sender_address(struct exchange *x, struct stream_sender *t, struct message_peer *to)
{
    (void)x;
    if (t->to != NULL) {
        stop_waiting(t);
        if (t->asks)
            TAILQ_REMOVE(&t->to->asks, t, by_asks);
        t->to->senders--;
    }
    t->asks = 0;
    t->to = to;
    if (to != NULL)
        to->senders++;
}

/* Again if it is not heard of, later each time. */
static void ask_for_credit(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (now_ns < c->ask_ns)
        return;
    c->ask_ns = now_ns + (x->config.ask_ns << (c->asked < ASK_DOUBLES ? c->asked : ASK_DOUBLES));
    c->asked++;
    set_due(x, c);
}

bool lane_exchange_take_credit(struct exchange *x, struct stream_sender *t, uint64_t now_ns,
                               struct schema_message *m)
{
    struct message_peer *c = t->to;
    if (lane_credit_left(&c->purse) == 0) {
        c->waiters += !t->waits;
        t->waits = 1;
        ask_for_credit(x, c, now_ns);
        return false;
    }
    stop_waiting(t);
    c->used_ns = now_ns;
    m->epoch = c->purse.epoch;
    m->credit = lane_credit_take(&c->purse);
    return true;
}

void lane_exchange_credit_over(struct message_peer *c, uint32_t epoch, uint32_t number)
{
    lane_credit_over(&c->purse, epoch, number);
}

void lane_sender_ask(struct exchange *x, struct stream_sender *t)
{
    if (!t->asks)
        TAILQ_INSERT_TAIL(&t->to->asks, t, by_asks);
    t->asks = 1;
    set_due(x, t->to);
}

int lane_sender_hear(struct stream_sender *t, const struct schema_note *n, uint64_t now_ns,
                     uint8_t *failed)
{
    int over = 0;
    *failed = 0;
    switch ((enum schema_note_kind)n->kind) {
    case SCHEMA_NOTE_TAKEN:
        over = lane_stream_out_taken(&t->out, n->number, now_ns);
        break;
    case SCHEMA_NOTE_REFUSED:
        over = lane_stream_out_refused(&t->out, n->number, (uint64_t)n->wait_us * 1000, now_ns);
        break;
    case SCHEMA_NOTE_FAILED:
        over = lane_stream_out_taken(&t->out, n->number, now_ns);
        *failed = over >= 0 ? n->status : 0;
        break;
    case SCHEMA_NOTE_ANSWER:
        over = lane_stream_out_answered(&t->out, n->number, now_ns);
        break;
    case SCHEMA_NOTE_UNKNOWN: /* what it took before it forgot was acknowledged long ago */
        t->known = 0;
        return lane_stream_out_answered(&t->out, t->out.first, now_ns);
    case SCHEMA_NOTE_ASK:
        return -EPROTO;
    }
    t->known |= over > 0;
    if (t->out.next == t->out.end)
        stop_waiting(t);
    return over;
}

/* ---- now and then */

/* What is settled is said some times, since nobody answers that; who has not heard it has what was
 * promised back when it forgets us. */
static void give_back(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (lane_credit_return(&c->purse) || c->settled != c->purse.window.first)
        c->told = 0;
    if (c->told == TELLS || now_ns < c->tell_ns)
        return;
    c->told++;
    c->tell_ns = now_ns + x->config.idle_ns;
    set_due(x, c);
}

static void sweep_one(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (c->incarnation == 0)
        return;
    if (c->over && c->senders == 0 && may_be_forgotten(x, c, now_ns)) {
        forget_peer(x, c);
        return;
    }
    if (c->waiters > 0)
        ask_for_credit(x, c, now_ns);
    else if (c->purse.epoch != 0 && now_ns - c->used_ns >= x->config.idle_ns)
        give_back(x, c, now_ns);
    if (now_ns - c->heard_ns >= x->config.forget_ns)
        close_account(x, c); /* what it was promised others may have */
}

void lane_exchange_sweep(struct exchange *x, uint64_t now_ns, uint32_t looks)
{
    for (uint32_t n = 0; n < looks && n < x->config.peers; n++)
        sweep_one(x, &x->all[x->hand++ % x->config.peers], now_ns);
}

/* ---- datagrams */

struct message_peer *lane_exchange_hear(struct exchange *x, const struct schema_datagram *d,
                                        uint64_t now_ns)
{
    if (d->pool != x->config.pool ||
        (d->to_incarnation != 0 && d->to_incarnation != x->config.incarnation))
        return NULL;
    struct message_peer *c = lane_exchange_know(x, d->from_gid, d->from_incarnation, now_ns);
    if (c == NULL)
        return NULL;
    c->heard_ns = now_ns;
    c->qpn = d->qpn;
    c->qkey = d->qkey;
    c->lid = d->lid;
    const uint32_t left = lane_credit_left(&c->purse);
    if (d->account_epoch != 0)
        (void)lane_credit_granted(&c->purse, d->account_epoch, d->granted);
    if (lane_credit_left(&c->purse) > left)
        c->asked = 0;
    if (d->purse_epoch != 0)
        (void)lane_credit_settle(&x->bank, &c->account, d->purse_epoch, d->settled);
    if (d->wants > 0) {
        if (c->account.epoch == 0)
            open_account(x, c);
        (void)lane_credit_grant(&x->bank, &c->account, d->wants < WANTS ? d->wants : WANTS);
        set_due(x, c);
    }
    return c;
}

static void take_notes(struct message_peer *c, struct schema_datagram *out)
{
    struct stream_receiver *h;
    struct stream_sender *t;
    if (c->extra.kind != 0)
        out->note[out->notes++] = c->extra;
    c->extra.kind = 0;
    while (out->notes < SCHEMA_DATAGRAM_NOTES && (h = TAILQ_FIRST(&c->news)) != NULL) {
        out->note[out->notes++] =
            (struct schema_note){.stream = h->name,
                                 .number = h->in.next,
                                 .kind = h->news,
                                 .status = h->news == SCHEMA_NOTE_FAILED ? h->failed : 0,
                                 .wait_us = h->news == SCHEMA_NOTE_REFUSED ? h->wait_us : 0};
        TAILQ_REMOVE(&c->news, h, by_news);
        h->news = 0;
    }
    while (out->notes < SCHEMA_DATAGRAM_NOTES && (t = TAILQ_FIRST(&c->asks)) != NULL) {
        out->note[out->notes++] = (struct schema_note){
            .stream = t->name, .number = t->out.first, .kind = SCHEMA_NOTE_ASK};
        TAILQ_REMOVE(&c->asks, t, by_asks);
        t->asks = 0;
    }
}

void lane_exchange_say(struct exchange *x, struct message_peer *c, struct schema_datagram *out)
{
    const struct exchange_config *own = &x->config;
    if (c->account.epoch != 0 && c->arrived > 0) /* who sends will send more */
        (void)lane_credit_grant(&x->bank, &c->account, c->arrived);
    c->arrived = 0;
    c->settled = c->purse.window.first;
    *out = (struct schema_datagram){.from_incarnation = own->incarnation,
                                    .to_incarnation = c->incarnation,
                                    .pool = own->pool,
                                    .lid = own->lid,
                                    .qpn = own->qpn,
                                    .qkey = own->qkey,
                                    .purse_epoch = c->purse.epoch,
                                    .settled = c->purse.window.first,
                                    .wants = c->waiters > 0 ? WANTS : 0,
                                    .account_epoch = c->account.epoch,
                                    .granted = c->account.granted};
    memcpy(out->from_gid, own->gid, sizeof out->from_gid);
    take_notes(c, out);
    TAILQ_REMOVE(&x->dues, c, by_due);
    c->due = 0;
    if (!TAILQ_EMPTY(&c->news) || !TAILQ_EMPTY(&c->asks))
        set_due(x, c);
}
