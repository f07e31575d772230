/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/connect: the connector's structs, and what its files call of each other. All of
 * it is the control thread's. */
#ifndef CONNECT_INTERNAL_H
#define CONNECT_INTERNAL_H

#include "agent/connector.h"
#include "base/assert.h"
#include "fabric/reuse.h"
#include "schema/handshake.h"

enum {
    CONNECT_SENDS = CONNECTOR_SENDS,
    CONNECT_RECVS = CONNECTOR_RECVS,
    CONNECT_GRH = 40,       /* bytes ahead of a received datagram */
    CONNECT_RD_ATOMIC = 16, /* as most devices have */
    CONNECT_BYES = 5,       /* tries, before the peer is left to find out */
    CONNECT_ASKS = 5,       /* tries, before a silent initiator is taken for gone */
    CONNECT_TELLS = 4,      /* times a responder is told of a new number, as messages get lost */
    CONNECT_PATIENCE = 16,  /* times silence_ns: a peer that only says WAIT is given up then */
};
#define CONNECT_NEVER UINT64_MAX

/* ---- slots.c: RC queue pairs. */
enum slot_state {
    SLOT_EMPTY,
    SLOT_MAKING,
    SLOT_RESTING, /* in INIT, as long as packets of a former life may come in */
    SLOT_READY,   /* in INIT */
    SLOT_TAKEN,   /* a connection's */
    SLOT_CLEANING,
    SLOT_LEFT, /* a connection's no longer, but for a change of state that is under way */
};

struct slot {
    struct connector *c;
    struct slots *all;
    struct fab_qp *qp;
    uint8_t state; /* enum slot_state, moved by slot_move() alone */
    uint8_t busy;  /* of the following, those that are the fabric's */
    struct fab_ctl ctl, then;
    struct fab_reuse reuse;                 /* CLEANING */
    uint64_t rest_ns;                       /* it is not used before; the lowest goes first */
    int status;                             /* of the first one that failed */
    void (*raised)(void *user, int status); /* while a connection raises it */
    void *user;
};

struct slot_change { /* of a queue pair's state */
    struct ibv_qp_attr attr;
    int mask;
};

struct slots { /* all of one kind */
    struct slot *at;
    uint32_t count, made, ready, resting;
    bool initiators;
    uint64_t retry_ns; /* none is made before, since the last one failed with: */
    int status;
    uint64_t taken_ns; /* when one last was, or 0 */
    uint64_t gone_ns;  /* when one was last destroyed: the next one may get its number */
};

int slots_init(struct connector *c, struct slots *s, uint32_t count, bool initiators);
/* Keeps `ahead` of them ready; at least half of that while some are being taken. */
void slots_refill(struct connector *c, struct slots *s);
/* The one that has rested for longest, or NULL. */
struct slot *slot_take(struct slots *s);
/* Whether none is ready now, but one may soon be without anybody's leaving. */
bool slots_may_come(const struct slots *s);
/* A change of state and another one (or NULL), then raised(user, status). */
void slot_raise(struct slot *slot, const struct slot_change *rtr, const struct slot_change *rts,
                void (*raised)(void *user, int status), void *user);
/* The connection is over, and nobody uses it any more: made ready again, when nothing of it can
 * come in any more. raised() is not called any more. */
void slot_leave(struct slot *slot);
/* Likewise, of one on which nothing was ever posted: it need not rest. */
void slot_return(struct slot *slot);
/* Likewise; its initiator is gone without a word, and might still be repeating a request. */
void slot_reclaim(struct slot *slot);
struct slot *slot_of(struct slots *s, const struct fab_qp *qp);
void slots_fini(struct connector *c, struct slots *s);
/* INIT to RTR, towards a peer. */
struct slot_change slot_rtr(const struct connector *c, const struct schema_handshake *h);

/* ---- datagrams.c: the UD queue pair, and addresses. */
enum address_state { ADDRESS_FREE, ADDRESS_MAKING, ADDRESS_READY, ADDRESS_CLOSING };

struct address {
    struct connector *c;
    uint8_t state; /* enum address_state */
    uint8_t unwanted;
    uint8_t gid[16];
    uint16_t lid;
    uint32_t out; /* datagrams that use it */
    uint64_t used_ns;
    struct fab_ah *ah;
    struct fab_ctl ctl;
    bool waits; /* one datagram for when it is ready */
    struct schema_handshake waiting;
    uint32_t qpn, qkey;
};

struct datagrams {
    struct fab_chan *chan;
    struct fab_cq *cq;
    struct fab_qp *qp;
    struct fab_mem mem;
    struct fab_mr *mr;
    uint32_t qkey;
    struct address *address;
    uint32_t addresses;
    struct address *sent_to[CONNECT_SENDS]; /* NULL: free */
    uint32_t send_hand;
    uint32_t qpn;   /* qp's, or the last one's */
    bool broken;    /* nothing is sent, and what completes is dropped */
    bool repairing; /* by: */
    struct fab_ctl repair;
    struct fab_reuse reuse;
    uint8_t repair_step; /* once it is in INIT: */
    uint64_t again_ns;   /* broken and not repairing: when that is tried again */
};

int datagrams_init(struct connector *c, uint32_t addresses);
void datagrams_fini(struct connector *c);
/* Sends h, completed with what is always the same, or loses it. */
void datagram_send(struct connector *c, const uint8_t gid[16], uint16_t lid, uint32_t qpn,
                   uint32_t qkey, struct schema_handshake h);
/* Something will be sent there soon. */
void datagram_expect(struct connector *c, const uint8_t gid[16], uint16_t lid);
/* Resolved anew the next time: it may have moved. */
void datagram_forget(struct connector *c, const uint8_t gid[16]);
/* Likewise, all of them. */
void datagrams_forget(struct connector *c);
void datagrams_take(struct connector *c);
/* Tries again what could not be repaired, when it is time. */
void datagrams_step(struct connector *c);

/* ---- outgoing.c, incoming.c: the two ends of connections. */
enum out_state { OUT_FREE, OUT_QUEUED, OUT_ASKING, OUT_RAISING, OUT_UP, OUT_LEAVING };

struct outgoing {
    struct connector *c;
    uint8_t state; /* enum out_state, moved by out_move() alone */
    uint8_t tries, full;
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

enum in_state { IN_FREE, IN_RAISING, IN_UP };

struct incoming {
    struct connector *c;
    uint8_t state; /* enum in_state */
    uint8_t asks;
    struct schema_handshake request;
    uint32_t psn;
    struct slot *slot;
    uint64_t heard_ns, next_ns;
};

void outgoing_step(struct connector *c);
/* Handshakes have another queue pair: the responders of all connections will hear of it. */
void outgoing_renumbered(struct connector *c);
void outgoing_accepted(struct connector *c, const struct schema_handshake *h);
void outgoing_must_wait(struct connector *c, const struct schema_handshake *h);
void outgoing_refused(struct connector *c, const struct schema_handshake *h);
void outgoing_gone(struct connector *c, const struct schema_handshake *h);
void outgoing_asked(struct connector *c, const struct schema_handshake *h);

/* All of them are over. */
void incoming_retire(struct connector *c);
void incoming_step(struct connector *c);
void incoming_request(struct connector *c, const struct schema_handshake *h);
void incoming_bye(struct connector *c, const struct schema_handshake *h);
void incoming_used(struct connector *c, const struct schema_handshake *h);

struct connector {
    struct connector_config config;
    struct connector_resources res;
    int (*fill)(void *user, void *bytes, size_t n);
    void *fill_user;
    uint64_t now_ns, due_ns;
    enum ibv_mtu mtu; /* the port's */
    uint32_t ops;     /* submitted to the fabric and not over */
    bool closing;
    struct slots initiators, responders;
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
    struct connector_event *events; /* a ring of `wanted` */
    uint32_t event_head, event_tail, wanted;
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
    c->ops++;
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
