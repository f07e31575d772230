/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange: peers, their accounts, and what is done for them now and then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/siphash.h"
#include "message/exchange_parts.h"

enum {
    MOST = 1 << 20,
    ASK_DOUBLES = 6, /* questions for credit, and are as far apart from then on */
    TELLS = 8        /* of what is settled */
};

/* ---- making */

static uint32_t buckets_for(uint32_t n)
{
    uint32_t buckets = 2;
    while (buckets < n)
        buckets *= 2;
    return buckets;
}

/* Peers see epochs, and by these nothing of the rest. */
void lane_exchange_seed(struct exchange *x, const uint64_t random[2])
{
    static const char first[] = "first epoch";
    uint32_t drawn[4];
    BASE_ASSERT(x->used == 0 && x->bank.posted == 0);
    x->seed = random[0];
    base_siphash128(random, first, sizeof first, (uint8_t *)drawn);
    lane_credit_bank_init(&x->bank, random, drawn[0]);
}

int lane_exchange_init(struct exchange *x, const struct exchange_config *config, uint64_t random)
{
    BASE_ASSERT(config->peers > 0 && config->peers <= MOST && config->receivers <= MOST &&
                config->shares > 0 && config->receivers > config->shares + 1);
    *x = (struct exchange){.config = *config, .free = 1};
    TAILQ_INIT(&x->dues);
    lane_exchange_seed(x, (const uint64_t[2]){random, 0});
    x->mask = buckets_for(config->peers) - 1;
    x->epoch_mask = buckets_for(4 * config->peers) - 1; /* so that few are taken */
    x->all = calloc(config->peers, sizeof x->all[0]);
    x->by_gid = calloc(x->mask + 1, sizeof x->by_gid[0]);
    x->by_epoch = calloc(x->epoch_mask + 1, sizeof x->by_epoch[0]);
    if (lane_receivers_init(x) != 0 || x->all == NULL || x->by_gid == NULL || x->by_epoch == NULL) {
        lane_exchange_free(x);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i + 1 < config->peers; i++)
        x->all[i].next = i + 2;
    return 0;
}

void lane_exchange_free(struct exchange *x)
{
    lane_receivers_free(x);
    free(x->all);
    free(x->by_gid);
    free(x->by_epoch);
    *x = (struct exchange){.hand = 0};
}

void lane_exchange_readdress(struct exchange *x, const uint8_t gid[16], uint32_t incarnation,
                             uint16_t lid)
{
    memcpy(x->config.gid, gid, sizeof x->config.gid);
    x->config.incarnation = incarnation;
    x->config.lid = lid;
    for (uint32_t i = 0; i < x->config.peers; i++) {
        struct message_peer *c = &x->all[i];
        c->purse = (struct credit_purse){.epoch = 0};
        c->asked = c->told = c->settled = 0;
        c->ask_ns = c->ended_count = c->own.epoch = c->late.since_ns = 0;
    }
}

void lane_exchange_renumber(struct exchange *x, uint32_t qpn)
{
    if (x->config.qpn == qpn)
        return;
    x->config.qpn = qpn;
    for (uint32_t i = 0; i < x->config.peers; i++)
        if (x->all[i].incarnation != 0)
            set_due(x, &x->all[i]);
}

/* ---- accounts */

static void close_account(struct exchange *x, struct message_peer *c)
{
    if (c->account.epoch == 0)
        return;
    x->by_epoch[c->account.epoch & x->epoch_mask] = 0;
    lane_credit_account_close(&x->bank, &c->account);
}

void lane_peer_open_account(struct exchange *x, struct message_peer *c)
{
    do {
        lane_credit_account_open(&x->bank, &c->account);
    } while (x->by_epoch[c->account.epoch & x->epoch_mask] != 0);
    x->by_epoch[c->account.epoch & x->epoch_mask] = lane_exchange_place(x, c) + 1;
}

struct message_peer *lane_peer_of_account(const struct exchange *x, uint32_t epoch)
{
    const uint32_t place = x->by_epoch[epoch & x->epoch_mask];
    return place != 0 && x->all[place - 1].account.epoch == epoch ? &x->all[place - 1] : NULL;
}

void lane_peer_ask_for_credit(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (now_ns < c->ask_ns)
        return;
    c->ask_ns = now_ns + (x->config.ask_ns << (c->asked < ASK_DOUBLES ? c->asked : ASK_DOUBLES));
    c->asked++;
    c->wants = 1;
    set_due(x, c);
}

/* ---- peers */

static bool is_peer(const struct message_peer *c, const uint8_t gid[16], uint32_t incarnation)
{
    return c->incarnation == incarnation && memcmp(c->gid, gid, sizeof c->gid) == 0;
}

static uint32_t *gid_link(const struct exchange *x, const uint8_t gid[16], uint32_t incarnation)
{
    uint32_t *at = &x->by_gid[base_hash_gid(gid, 0, x->seed) & x->mask];
    while (*at != 0) {
        struct message_peer *c = &x->all[*at - 1];
        if (is_peer(c, gid, incarnation))
            break;
        at = &c->next;
    }
    return at;
}

/* Nobody here sends to it, and nothing that was sent is under way. */
static void forget_peer(struct exchange *x, struct message_peer *c)
{
    uint32_t *link = gid_link(x, c->gid, c->incarnation);
    const uint32_t place = *link;
    BASE_ASSERT(place != 0 && c->senders == 0 && c->out == 0);
    if (!lane_receivers_forget(x, c))
        return; /* the others at the next look */
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
    return c->incarnation != 0 && c->senders == 0 && c->out == 0 &&
           !lane_credit_is_resting(&c->purse) &&
           (now_ns - c->heard_ns >= x->config.forget_ns ||
            (c->over && now_ns - c->over_ns >= x->config.bound_ns));
}

/* Likewise where others have no room: it has nothing of ours, we nothing of its, and it was told
 * so. */
static bool is_empty(const struct message_peer *c)
{
    return c->incarnation != 0 && c->senders == 0 && c->out == 0 && c->receivers == 0 &&
           c->account.promised == 0 && !c->due && c->purse.window.first == c->purse.granted &&
           c->settled == c->purse.window.first;
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
        if (may_be_forgotten(x, c, now_ns) || is_empty(c))
            forget_peer(x, c);
    }
}

struct message_peer *lane_exchange_find(const struct exchange *x, const uint8_t gid[16],
                                        uint32_t incarnation)
{
    const uint32_t place = *gid_link(x, gid, incarnation);
    return place != 0 && !x->all[place - 1].over ? &x->all[place - 1] : NULL;
}

struct message_peer *lane_exchange_know(struct exchange *x, const uint8_t gid[16],
                                        uint32_t incarnation, uint64_t now_ns)
{
    BASE_ASSERT(incarnation != 0);
    uint32_t place = x->known;
    if (place == 0 || !is_peer(&x->all[place - 1], gid, incarnation))
        place = *gid_link(x, gid, incarnation);
    x->known = place;
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

static void settle_late(struct exchange *x, struct message_peer *c)
{
    if (c->late.since_ns != 0)
        (void)lane_credit_settle(&x->bank, &c->account, c->late.epoch, c->late.settled);
    c->late.since_ns = 0;
}

/* What is settled behind that is said again. */
void lane_peer_settle(struct exchange *x, struct message_peer *c, uint32_t epoch, uint32_t settled,
                      uint64_t now_ns)
{
    const struct credit_account *a = &c->account;
    if (epoch != a->epoch || (int32_t)(settled - a->window.first) <= 0) { /* nothing new, or none */
        (void)lane_credit_settle(&x->bank, &c->account, epoch, settled);
        return;
    }
    if (c->late.since_ns != 0 && c->late.epoch == epoch &&
        now_ns - c->late.since_ns < x->config.seen_ns)
        return;
    settle_late(x, c);
    c->late.since_ns = now_ns;
    c->late.epoch = epoch;
    c->late.settled = settled;
    if (x->config.seen_ns == 0)
        settle_late(x, c);
}

static void sweep_one(struct exchange *x, struct message_peer *c, uint64_t now_ns)
{
    if (c->incarnation == 0)
        return;
    lane_credit_look(&c->purse, now_ns, x->config.bound_ns);
    if (c->late.since_ns != 0 && now_ns - c->late.since_ns >= x->config.seen_ns)
        settle_late(x, c);
    if (c->over && may_be_forgotten(x, c, now_ns)) {
        forget_peer(x, c);
        return;
    }
    if (c->waiters > 0)
        lane_peer_ask_for_credit(x, c, now_ns);
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
