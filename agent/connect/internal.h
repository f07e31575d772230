/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/connect: the connector's structs, and what its files call of each other. All of
 * it is the control thread's. */
#ifndef CONNECT_INTERNAL_H
#define CONNECT_INTERNAL_H

#include "agent/connector.h"
#include "base/assert.h"
#include "datagrams.h"
#include "fabric/series.h"
#include "schema/handshake.h"
#include "slots.h"

enum {
    CONNECT_SENDS = CONNECTOR_SENDS,
    CONNECT_RECVS = CONNECTOR_RECVS,
    CONNECT_RD_ATOMIC = 16,     /* as most devices have */
    CONNECT_MOST_DOUBLINGS = 4, /* of the time between two tries */
    CONNECT_BYES = 5,           /* tries, before the peer is left to find out */
    CONNECT_ASKS = 5,           /* tries, before a silent initiator is taken for gone */
    CONNECT_WARNS = 5,          /* times an initiator is told that its responder broke */
    CONNECT_TELLS = 4,       /* times a responder is told of a new number, as messages get lost */
    CONNECT_PATIENCE = 16,   /* times silence_ns: a peer that only says WAIT is given up then */
    CONNECT_WAITERS = 64,    /* initiators that are remembered until there is a queue pair; others
                              * ask again */
    CONNECT_WAITERS_EACH = 4 /* of one peer */
};
#define CONNECT_NEVER UINT64_MAX

/* ---- outgoing.c, incoming.c: the two ends of connections. */
enum out_state { OUT_FREE, OUT_QUEUED, OUT_ASKING, OUT_RAISING, OUT_UP, OUT_LEAVING };

enum broken_end { END_WHOLE, END_BROKEN, END_TOLD /* its owner knows */ };

struct outgoing {
    struct connector *c;
    uint8_t state; /* enum out_state, moved by out_move() alone */
    uint8_t tries, full;
    uint8_t broken; /* enum broken_end of the peer's queue pair, while it is UP */
    uint32_t tag;
    struct connector_peer peer;
    uint64_t nonce;
    uint32_t psn;
    struct slot *slot;
    uint64_t began_ns;     /* when it was first asked */
    uint64_t heard_ns;     /* when the peer last said something, or began_ns */
    uint64_t next_ns;      /* when it is asked again */
    struct outgoing *next; /* in the queue */
};

enum in_state { IN_FREE, IN_RAISING, IN_UP, IN_BROKEN };

struct incoming {
    struct connector *c;
    uint8_t state; /* enum in_state */
    uint8_t asks;  /* or, once it is BROKEN, how often its initiator was told */
    bool flushed;  /* its queue pair is in ERR */
    bool left;     /* FREE, because its initiator said good-bye; request is still that one's */
    uint64_t life; /* wr_id of its receive: no two have the same */
    struct schema_handshake request;
    uint32_t psn;
    struct slot *slot;
    uint64_t heard_ns, next_ns;
};

/* Of a peer that was told to WAIT, and is answered when there is a queue pair for it. */
struct waiter {
    struct schema_handshake request;
    uint64_t heard_ns; /* when it asked last */
    uint8_t others;    /* of its peer's that were there when it came */
};

void connector_outgoing_step(struct connector *c);
/* Handshakes have another queue pair: the responders of all connections will hear of it. */
void connector_outgoing_renumbered(struct connector *c);
void connector_outgoing_accepted(struct connector *c, const struct schema_handshake *h);
void connector_outgoing_must_wait(struct connector *c, const struct schema_handshake *h);
void connector_outgoing_refused(struct connector *c, const struct schema_handshake *h);
void connector_outgoing_gone(struct connector *c, const struct schema_handshake *h);
void connector_outgoing_asked(struct connector *c, const struct schema_handshake *h);
void connector_outgoing_broken(struct connector *c, const struct schema_handshake *h);

void connector_messages_asked(struct connector *c, const struct schema_handshake *h);
void connector_messages_told(struct connector *c, const struct schema_handshake *h);

/* All of them are over. */
void connector_incoming_retire(struct connector *c);
/* Hears which responders broke. */
void connector_incoming_take(struct connector *c);
void connector_incoming_step(struct connector *c);
void connector_incoming_request(struct connector *c, const struct schema_handshake *h);
/* Those who were told to WAIT, if there are queue pairs now: before anybody who asks later. */
void connector_incoming_serve(struct connector *c);
void connector_incoming_bye(struct connector *c, const struct schema_handshake *h);
void connector_incoming_used(struct connector *c, const struct schema_handshake *h);

struct connector {
    struct connector_config config;
    struct connector_resources res;
    int (*fill)(void *user, void *bytes, size_t n);
    void *fill_user;
    uint64_t now_ns, due_ns;
    enum ibv_mtu mtu;       /* the port's */
    uint32_t *ops, own_ops; /* submitted to the fabric and not over: of the configuration, or else
                             * the own one */
    bool closing;
    struct fab_series making;
    struct slots initiators, responders;
    uint64_t *gone_ns, own_gone_ns; /* of the configuration, or else the own one */
    struct fab_cq *responder_cq;
    struct datagrams ud;
    struct outgoing *out, *queue, **queue_tail;
    uint32_t outs, asking; /* asking: handshakes that are under way */
    uint32_t busy;         /* of out, those that something is to be done about */
    uint32_t untold;       /* counts down the times that one of out is told of a new number */
    uint64_t tell_ns;      /* when the next ones are */
    uint64_t in_due_ns;    /* when something is to be done about one of in */
    struct incoming *in;
    uint32_t in_hand;
    struct waiter waiter[CONNECT_WAITERS]; /* the one that has waited for longest first */
    uint32_t waiters;
    uint64_t lives;                 /* of all that were ever in */
    uint32_t broken;                /* of out, those that are END_BROKEN */
    struct connector_event *events; /* a ring of `wanted` */
    uint32_t event_head, event_tail, wanted;
    uint32_t messages_qpn, messages_qkey;       /* as others are told */
    uint64_t ask_nonce;                         /* of all questions about that; 0: none yet */
    struct connector_told told[CONNECTOR_TOLD]; /* a ring */
    uint32_t told_head, told_tail;
    struct connector_stats stats;
};

/* To be called at `at`, or before. */
static inline void connector_due(struct connector *c, uint64_t at)
{
    if (at < c->due_ns)
        c->due_ns = at;
}

static inline void connector_submit(struct connector *c, struct fab_ctl *ctl,
                                    void (*done)(struct fab_ctl *ctl), void *user)
{
    ctl->done = done;
    ctl->user = user;
    (*c->ops)++;
    fab_submit(c->res.fab, ctl);
}

void connector_message(struct connector *c, const struct schema_handshake *h);
void connector_event_push(struct connector *c, const struct connector_event *e);
/* An answer to h, of a kind and about its connection, with nothing else said. */
struct schema_handshake connector_answer(const struct schema_handshake *h,
                                         enum schema_handshake_kind kind);
void connector_reply(struct connector *c, const struct schema_handshake *h,
                     struct schema_handshake answer);

#endif
