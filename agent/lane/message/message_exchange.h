/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane knows of those with whom it exchanges messages: credits both ways, the streams that
 * it hears, and what is to be said to whom by datagram (docs/messages.md). Private to agent/lane,
 * and the lane thread's. Pure: times are given, and nothing is sent here.
 *
 * A peer is one life of an endpoint: known while somebody sends to it, or it has credits. */
#ifndef LANE_MESSAGE_EXCHANGE_H
#define LANE_MESSAGE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "message/credit.h"
#include "message/places.h"
#include "message/stream_ends.h"
#include "schema/datagram_like.h"

/* Streams that are over, and such as have no place: of more it is not told at once. */
enum { PEER_ENDED = 8, PEER_EXTRAS = 8 };

struct message_peer {
    uint8_t gid[16];
    uint32_t incarnation; /* 0: the place is free */
    uint32_t qpn, qkey;   /* where it hears datagrams; qpn 0: that is to be found out */
    uint32_t slot;        /* the lane's, where senders > 0 */
    uint16_t lid;
    uint8_t due;        /* in the list of those to whom something is to be said */
    uint8_t wants;      /* with it goes that credit is wanted, which is answered, each time */
    uint8_t mute, over; /* it carries no messages; a later life has spoken, or been named */
    uint32_t senders, waiters, receivers, latest; /* latest: place + 1 of its receivers' */
    uint32_t out; /* messages with its credits that the device has */
    struct credit_purse purse;
    struct credit_account account;
    uint32_t arrived;                    /* messages since something was said */
    uint32_t asked, number_asks;         /* so often, in vain: for credit; for its number */
    uint64_t ask_ns, number_ns, tell_ns; /* not again before; tell: what is settled */
    uint64_t heard_ns;                   /* when it, or somebody here of it, last spoke */
    /* When it last said that something stands behind its messages, 0: never; and when it was told
     * so of ours, which is said once in bound_ns. */
    uint64_t behind_ns, told_behind_ns;
    uint8_t behind;                    /* it is to be told */
    uint64_t over_ns, used_ns;         /* used: when a credit of its was last granted or taken */
    struct schema_datagram_like heard; /* as what it said last of one stream (one_note.h) */
    uint32_t settled, told;            /* as it was told last; so often, while nobody used any */
    struct credit_late late, own;      /* it said that; of itself, what was over (self_news.c) */
    struct schema_note extra[PEER_EXTRAS]; /* of streams that have no place here */
    uint32_t extras;
    uint64_t ended[PEER_ENDED];
    uint32_t ended_count, next;
    TAILQ_HEAD(, stream_receiver) news;
    TAILQ_HEAD(, stream_sender) asks;
    TAILQ_ENTRY(message_peer) by_due;
};

struct exchange_config {
    uint8_t gid[16]; /* this endpoint */
    uint32_t incarnation;
    uint16_t pool, lid;
    uint32_t qpn, qkey;        /* its UD queue pair */
    uint32_t peers, receivers; /* at most, 1 to 2^20; receivers: more than shares + 1 */
    uint32_t shares, guests;   /* into which places of receivers are divided; guests of those, and
                                * who answer as such */
    uint64_t bound_ns;         /* nothing that was sent arrives later */
    uint64_t seen_ns;          /* nor a message so long after its sender says that it is over */
    uint64_t ask_ns;           /* for credit, again */
    uint64_t idle_ns;          /* credits that nobody uses are given back */
    uint64_t forget_ns;        /* who was silent for so long may be forgotten */
    uint64_t refused_ns;       /* who finds no receive for so long fails */
};

/* What who has a guest's place has of streams, and how many have had it before. */
struct guest_streams {
    uint32_t has, life;
};

struct exchange {
    struct exchange_config config;
    struct credit_bank bank;
    struct message_peer *all;
    struct stream_receiver *receiver;
    struct places receiver_places;
    uint32_t *by_gid, *by_epoch, *by_stream; /* place + 1 */
    struct guest_streams *guest;             /* by guest: place + 1 */
    uint32_t mask, epoch_mask, stream_mask, free, free_receiver, used, used_receivers, hand;
    uint32_t known; /* place + 1 of whom was looked for last; it may be another's by now */
    uint64_t seed;
    TAILQ_HEAD(, message_peer) dues;
    uint64_t strays, lives; /* messages that no credit of ours stood for; of streams */
};

/* 0 or -ENOMEM. */
int lane_exchange_init(struct exchange *x, const struct exchange_config *config, uint64_t random);
/* random: which nobody knows; while it knows nobody. */
void lane_exchange_seed(struct exchange *x, const uint64_t random[2]);
void lane_exchange_free(struct exchange *x);
/* That life of an endpoint, which is known from here on. NULL: there is no room now, or it is an
 * earlier life than one that is known. */
struct message_peer *lane_exchange_know(struct exchange *x, const uint8_t gid[16],
                                        uint32_t incarnation, uint64_t now_ns);
/* Likewise, of those that are known. */
struct message_peer *lane_exchange_find(const struct exchange *x, const uint8_t gid[16],
                                        uint32_t incarnation);
/* A few of all, now and then: credits that idle, lives that are over, questions for credit. */
void lane_exchange_sweep(struct exchange *x, uint64_t now_ns, uint32_t looks);
/* This endpoint is another one from now on: no credit that it has is its own. Its senders have no
 * stream any more that has begun. */
void lane_exchange_readdress(struct exchange *x, const uint8_t gid[16], uint32_t incarnation,
                             uint16_t lid);
/* Its UD queue pair has another number, which all that are known hear at once. */
void lane_exchange_renumber(struct exchange *x, uint32_t qpn);

/* ---- as a receiver */
static inline void lane_exchange_posted(struct exchange *x, uint32_t receives)
{
    lane_credit_posted(&x->bank, receives);
}
/* What has taken a receive is no message at all. */
static inline void lane_exchange_stray(struct exchange *x)
{
    if (x->bank.posted > 0)
        x->bank.posted--;
    x->strays++;
}
/* A message has taken a receive. The stream whose next one it is: the next three, or those for what
 * is READ (stream_ends.h), say what becomes of it. NULL: it is dropped. share: by whose part it may
 * begin a stream; 0: nobody's, and it fails if it would; guest: no more than are left; 0: any. */
struct stream_receiver *lane_exchange_arrive(struct exchange *x, const struct schema_message *m,
                                             uint32_t share, uint32_t guest, uint64_t now_ns);
/* It is a guest no more, and its place may be another one's: whatever streams it has left here do
 * not count as that one's. */
void lane_exchange_guest_gone(struct exchange *x, uint32_t guest);
void lane_exchange_took(struct exchange *x, struct stream_receiver *r);
void lane_exchange_refuse(struct exchange *x, struct stream_receiver *r, uint32_t wait_us);
/* status: enum ibv_wc_status. */
void lane_exchange_fail(struct exchange *x, struct stream_receiver *r, uint8_t status);
/* Its sender asks what has come. */
void lane_exchange_asked(struct exchange *x, struct message_peer *c, uint64_t stream);
/* Its sender is gone. */
void lane_exchange_ended(struct exchange *x, struct message_peer *c, uint64_t stream,
                         uint64_t now_ns);

/* ---- as a sender */

/* Whom it sends to from now on; NULL: nobody. */
void lane_sender_address(struct exchange *x, struct stream_sender *t, struct message_peer *to);
/* Its VQP is gone, or begins another stream: its receiver need not keep a place for it. */
void lane_sender_end(struct exchange *x, struct stream_sender *t);
/* Whether there is a credit of its peer's for one message. False: it is asked for, and the sender
 * waits until it takes one, stops, or is addressed anew. */
bool lane_exchange_has_credit(struct exchange *x, struct stream_sender *t, uint64_t now_ns);
/* How many there are, for which nobody is asked. */
uint32_t lane_exchange_credits(const struct exchange *x, struct message_peer *c, uint64_t now_ns);
/* There are so many: *m names the first, as lane_exchange_next_credit() does, behind which the
 * others come. */
void lane_exchange_take_credits(struct exchange *x, struct stream_sender *t, uint32_t count,
                                uint64_t now_ns, struct schema_message *m);
static inline void lane_exchange_next_credit(const struct message_peer *c, struct schema_message *m)
{
    m->epoch = c->purse.epoch;
    m->credit = c->purse.next;
}
/* It waits for nothing, and asks nothing. */
void lane_sender_stop(struct exchange *x, struct stream_sender *t);
/* The device has given back a message with that credit of a peer's, by its place. broke: with its
 * queue pair, so that it may be under way yet. */
static inline uint32_t lane_exchange_place(const struct exchange *x, const struct message_peer *c)
{
    return (uint32_t)(c - x->all);
}
void lane_exchange_credit_back(struct exchange *x, uint32_t peer, uint32_t epoch, uint32_t number,
                               bool broke, uint64_t now_ns);
/* The receiver is to be asked what it has of it. */
void lane_sender_ask(struct exchange *x, struct stream_sender *t);
/* What it says of it. Returns how many are over now, from the former out.first on, all well; or
 * -EPROTO: it cannot be so. The next has *failed, an enum ibv_wc_status, if that is not 0. */
int lane_sender_hear(struct stream_sender *t, const struct schema_note *n, uint64_t now_ns,
                     uint8_t *failed);

/* ---- datagrams */

/* Whose it is; the caller looks at its notes. NULL: of somebody for whom there is no room, of an
 * earlier life, or for another one of ours: nothing of it holds. */
struct message_peer *lane_exchange_hear(struct exchange *x, const struct schema_datagram *d,
                                        uint64_t now_ns);
/* One to whom something is to be said. NULL: there is none. */
static inline struct message_peer *lane_exchange_due(const struct exchange *x)
{
    return TAILQ_FIRST(&x->dues);
}
/* It cannot be told now: the others come first. */
static inline void lane_exchange_put_off(struct exchange *x, struct message_peer *c)
{
    TAILQ_REMOVE(&x->dues, c, by_due);
    TAILQ_INSERT_TAIL(&x->dues, c, by_due);
}
/* What: it is told, and due no more but for what has no room in one. */
void lane_exchange_say(struct exchange *x, struct message_peer *c, struct schema_datagram *out);

#endif
