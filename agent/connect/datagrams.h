/* SPDX-License-Identifier: Apache-2.0 */
/* The UD queue pair of handshakes, and the addresses that they go to. Control thread. */
#ifndef CONNECT_DATAGRAMS_H
#define CONNECT_DATAGRAMS_H

#include "agent/connector.h"
#include "fabric/reuse.h"
#include "schema/handshake.h"

enum address_state {
    ADDRESS_FREE,
    ADDRESS_MAKING,
    ADDRESS_READY,
    ADDRESS_CLOSING,
    ADDRESS_LEFT, /* the device refused to destroy it, and is asked again */
};

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

/* A queue pair of handshakes is brought up anew, or another is made. */
struct ud_repair {
    struct connector *c;
    struct fab_ctl ctl;
    struct fab_reuse reuse;
    uint8_t step;       /* once it is in INIT */
    bool busy;          /* the device has it */
    bool given_up;      /* the device was silent for too long: another one is under way */
    uint64_t silent_ns; /* it ought to have gone on by then */
};

/* The one before, which the device did not bring back, until it is destroyed. */
struct ud_former {
    bool is_there;
    bool returns; /* a repair that was given up has it */
    bool ending;
    struct fab_qp *qp;
    struct fab_ctl ctl;
    uint64_t again_ns; /* when it is tried again to destroy it */
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
    uint32_t left;                            /* of them, in that state until close_ns */
    uint64_t close_ns;                        /* when that state ends */
    struct address *sent_to[CONNECTOR_SENDS]; /* NULL: free */
    uint32_t send_hand;
    uint32_t qpn;                /* qp's, or the last one's */
    bool broken;                 /* nothing is sent, and what completes is dropped */
    bool outdated;               /* it is repaired once more: the P_Key has another place */
    bool half;                   /* of the memory, which of both is qp's; the other the former's */
    struct ud_repair repairs[2]; /* one is the former's */
    struct ud_repair *repair;    /* qp's, the other one; NULL: none is under way */
    struct ud_former former;
    uint64_t again_ns; /* broken, and no repair: when that is tried again */
    uint32_t failures; /* of repairs, one after the other */
};

/* Their memory; and a part of the series that makes the rest (fabric/series.h), of a connector. */
int connector_datagrams_init(struct connector *c, uint32_t addresses);
int connector_datagrams_make(void *of, uint32_t over, struct fab_ctl *ctl);
/* At the end, when nothing is under way: all of it is the device's to destroy; when that is over:
 * the memory. */
void connector_datagrams_retire(struct connector *c);
void connector_datagrams_fini(struct connector *c);
/* Sends h, completed with what is always the same, or loses it. */
void connector_datagram_send(struct connector *c, const uint8_t gid[16], uint16_t lid, uint32_t qpn,
                             uint32_t qkey, struct schema_handshake h);
/* Something will be sent there soon. */
void connector_datagram_expect(struct connector *c, const uint8_t gid[16], uint16_t lid);
/* Resolved anew the next time: it may have moved. */
void connector_datagram_forget(struct connector *c, const uint8_t gid[16]);
/* Likewise, all of them. */
void connector_datagrams_forget_all(struct connector *c);
/* The queue pair is brought up anew, with the P_Key where it is now. */
void connector_datagrams_repartition(struct connector *c);
void connector_datagrams_take(struct connector *c);
/* Tries again what could not be repaired or destroyed, when it is time. */
void connector_datagrams_step(struct connector *c);

#endif
