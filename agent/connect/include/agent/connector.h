/* SPDX-License-Identifier: Apache-2.0 */
/* RC connections between agents, for devices without DC: queue pairs kept ready, the handshake over
 * UD (schema/handshake.h), and how connections end (docs/control.md#connections).
 *
 * A connection carries requests in one direction, since an access error breaks its responder's
 * queue pair too. All VQPs to one endpoint share the lane's connection to it.
 *
 * One thread, the control thread: the one that calls fab_run(). No clock, no randomness, no
 * thread of its own: stepped with the time, it reaches the network through the fabric alone, and
 * nothing here blocks before connector_free(). Nothing grows: all memory is taken in
 * connector_new().
 *
 * Invariant: a queue pair is in exactly one of: kept ready (INIT), a connection, being cleaned,
 * resting (INIT) until no packet of its former life can come in any more. */
#ifndef AGENT_CONNECTOR_H
#define AGENT_CONNECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct connector;
struct base_errbuf;

enum {
    CONNECTOR_SENDS = 256, /* datagrams out at a time; more are lost, as the wire may do */
    CONNECTOR_RECVS = 512, /* that may arrive between two steps */
    CONNECTOR_TAKES = 64,  /* that a step takes, those of its own that were sent included */
    CONNECTOR_TOLD = 64    /* answers about messages that wait to be asked for; more are lost */
};

struct connector_config {
    uint16_t pool;
    uint32_t incarnation;
    uint32_t initiators;        /* queue pairs for requests to other nodes, 1.. */
    uint32_t responders;        /* for requests of other nodes; 0: it answers for no endpoint, and
                                 * only asks */
    uint32_t ahead;             /* of each kind, kept ready; more are made when they are used */
    uint32_t first;             /* so many of them before it is whole; 0: all */
    uint32_t wanted;            /* connections that may be asked for at a time (the lane's flows) */
    uint32_t handshakes;        /* that may be under way at a time; more wait their turn */
    uint32_t sq_depth;          /* of an initiator */
    uint32_t sge, inline_bytes; /* of an initiator */
    enum ibv_mtu mtu;           /* the port's largest now; 0: as when the device was opened */
    uint8_t timeout, retry_cnt, rnr_retry; /* of an initiator: as verbs count them */
    uint64_t retry_ns;   /* after which a message is repeated; doubled each time, up to 16 times */
    uint64_t silence_ns; /* a peer that says nothing for so long cannot be connected to */
    uint64_t begun_ns;   /* since when no earlier life of this endpoint has had queue pairs: their
                          * numbers may come back, and none is used before the device's time_wait_ns
                          * is over */
    uint64_t *gone_ns;   /* when a queue pair of the device last went, whose number another may get:
                          * of all who have queue pairs there, each of whom writes it; borrowed.
                          * NULL: nobody else has any */
    uint32_t *ops;       /* counts what is under way in the device, beside what others count there;
                          * borrowed. NULL: nobody else wants to know */
    uint64_t idle_ns;    /* a responder not heard of for so long is asked about */
    uint64_t drain_ns;   /* one that shares receives, and whose connection is over, is in ERR for
                          * so long: its device gives back what it has, and the lane polls it */
};

struct connector_resources {
    struct fab *fab;
    struct fab_pd *pd;        /* the pool's: of the RC queue pairs */
    struct fab_pd *system_pd; /* of the UD queue pair */
    struct fab_cq *cq;        /* the lane's: where initiators complete; has room for all */
    struct fab_srq *srq; /* of messages, in pd: what comes by responders completes on cq; or NULL */
};

/* Its memory. -errno with a sentence. */
int connector_new(const struct connector_config *config,
                  const struct connector_resources *resources,
                  int (*fill)(void *user, void *bytes, size_t n), void *user,
                  struct connector **out, struct base_errbuf *err);
/* Makes the UD queue pair, and the `first` of each kind, as fab_series_next(): who calls it
 * carries out what is in *ctl. 1: something is; 0: it is whole, and may be stepped; or -errno with
 * a sentence. One that is not whole may be retired and freed, and no more. */
int connector_make(struct connector *c, struct fab_ctl *ctl, struct base_errbuf *err);
/* Hands all of its queue pairs to the device to destroy, the lane's too, when nothing is under way
 * (config.ops) and the lane does not run any more. All that may follow is connector_free(). */
void connector_retire(struct connector *c);
/* Does that if nobody has. Blocks while something is under way. */
void connector_free(struct connector *c);

/* The port's largest MTU from now on: connections that are made then have it, or the peer's where
 * that is less. */
void connector_set_mtu(struct connector *c, enum ibv_mtu mtu);

/* What peers must know to reach it. */
uint32_t connector_ud_qpn(const struct connector *c);
uint32_t connector_ud_qkey(const struct connector *c);
/* Readable when a message came: step. Borrowed; never read it. */
int connector_fd(const struct connector *c);

/* Whom to connect to, as its endpoint record says. */
struct connector_peer {
    uint8_t gid[16];
    uint32_t incarnation;
    uint32_t ud_qpn, ud_qkey;
    uint16_t lid;
};

/* A connection is wanted: an event with the same tag follows. At most `wanted` are asked for at a
 * time, asserted. */
void connector_connect(struct connector *c, const struct connector_peer *peer, uint32_t tag);
/* The lane is done with a connection's queue pair, or it broke: the peer is told, and the queue
 * pair is made ready again. Nothing is posted on it any more. */
void connector_drop(struct connector *c, struct fab_qp *qp, uint64_t now_ns);

/* Likewise of one that the device does not put to ERR, and whose posts may not be over: it is
 * destroyed, and tried() hears how that went, each time that it is tried: -errno until it is 0. Its
 * peer is told when nothing is repeated any more. The queue pair is not the caller's any more. */
void connector_destroy(struct connector *c, struct fab_qp *qp, uint64_t now_ns,
                       void (*tried)(void *user, const struct fab_qp *qp, int status), void *user);

/* This node's address is another, as the device's caps say: whatever leads to peers is resolved
 * anew. With another incarnation peers know it by another name, and what they have connected to is
 * over. The lane drops its connections. */
void connector_readdress(struct connector *c, uint32_t incarnation, uint64_t now_ns);

/* The P_Key of its domains is at another place of the port's table: the queue pair of handshakes is
 * brought up anew; connections have the place from when they are made. The lane drops those that
 * there are. */
void connector_repartition(struct connector *c, uint64_t now_ns);

/* ---- where lanes hear of messages, which is in no record of an endpoint that has connections */

/* What peers are told from now on; 0 (as at first): there are none. */
void connector_set_messages(struct connector *c, uint32_t qpn, uint32_t qkey);
/* Asks that life of an endpoint, once: who hears nothing asks again. */
void connector_ask_messages(struct connector *c, const struct connector_peer *peer);

struct connector_told {
    uint8_t gid[16];
    uint32_t incarnation, qpn, qkey; /* qpn 0: it carries no messages */
};
/* 1 and an answer, or 0. To be asked after each step. */
int connector_told(struct connector *c, struct connector_told *out);

/* The device says that a queue pair is in ERR; one that is no responder's is left alone. For those
 * with an SRQ there is no other sign. */
void connector_fatal(struct connector *c, const struct fab_qp *qp, uint64_t now_ns);

/* How many of each kind are kept ready from now on, as far as there may be so many; those that are
 * ready beyond it are used before others are made. */
void connector_set_ahead(struct connector *c, uint32_t ahead);

/* Before the end: tells the peers of all connections that they are over, once, as far as that can
 * be sent at once. Who misses it finds out later. Nothing is posted any more. */
void connector_leave(struct connector *c);

/* Before control operations of its device are heard of: a queue pair is gone from then on, and not
 * from the last step. now_ns never goes back. */
void connector_note_time(struct connector *c, uint64_t now_ns);

/* Takes messages, repeats what has not been answered, refills. Returns when it wants to be called
 * again, if nothing comes before: now_ns, if there may be more messages. now_ns never goes back. */
uint64_t connector_step(struct connector *c, uint64_t now_ns);

/* A connection whose responder's queue pair broke by itself, and takes nothing that is posted any
 * more: its queue pair here, once, which is still the caller's until it is dropped; or NULL: none
 * is left. To be asked after each step. */
struct fab_qp *connector_broken(struct connector *c);

struct connector_event {
    uint32_t tag;
    struct fab_qp *qp; /* in RTS, the caller's until it is dropped; NULL: it failed */
    int status;        /* 0; -ETIMEDOUT: no answer; -ESTALE: it is another incarnation;
                        * -EHOSTUNREACH: its address cannot be resolved; -EBUSY: it has no
                        * queue pair left; -EIO: the device refused, here or there */
};
/* 1 and an event, or 0. */
int connector_event(struct connector *c, struct connector_event *out);

/* Monotonic, unless said otherwise. */
struct connector_stats {
    uint64_t requests;  /* sent, repeated ones included */
    uint64_t connected; /* as an initiator */
    uint64_t accepted;  /* as a responder */
    uint64_t failed;    /* connections that could not be made */
    uint64_t refused;   /* requests of others that were refused */
    uint64_t dropped;   /* messages that made no sense, were late, or for somebody else */
    uint64_t forged;    /* messages in the name of another node than sent them */
    uint64_t lost;      /* messages that could not be sent for want of room */
    uint64_t reclaimed; /* responders whose initiator was gone without a word */
    uint64_t broken;    /* responders that broke by themselves, of which their initiator was told */
    uint64_t initiators, initiators_ready, responders, responders_ready; /* gauges: there are */
    uint64_t resting; /* gauge: queue pairs whose former life's packets may still be under way */
    uint64_t outgoing, incoming; /* gauges */
    uint64_t addresses;          /* gauge: handles */
};
void connector_stats(const struct connector *c, struct connector_stats *out);

#endif
