/* SPDX-License-Identifier: Apache-2.0 */
/* Packets on their way, and what links do to them.
 *
 * A packet here stands for one or several of the real ones in a row, of one message: `packets` of
 * them, from number `psn` on. So a long message costs as many events as a short one; it can be cut
 * off behind any of its packets all the same. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "model/nic.h"
#include "sim/sim_device.h"

enum sim_packet_kind {
    SIM_REQUEST,
    SIM_DATAGRAM,
    SIM_ACK,         /* of all up to psn */
    SIM_NAK,         /* at psn: with `code` */
    SIM_READ_ANSWER, /* with data */
    SIM_ATOMIC_ANSWER,
};

/* Why a responder does not take a request. */
enum sim_nak { SIM_NAK_GAP, SIM_NAK_NOT_READY, SIM_NAK_INVALID, SIM_NAK_ACCESS, SIM_NAK_FAILED };

struct sim_packet {
    struct sim_event event;
    struct sim_net *net;
    uint8_t from_gid[16], to_gid[16];
    uint32_t from_node;
    uint64_t sent_ns;
    enum sim_packet_kind kind;
    uint32_t from_qpn; /* DC and datagrams alone say it; of RC it is for hooks */
    uint32_t to_qpn;
    bool dc;             /* between a DCI and a DC target */
    uint32_t connection; /* dc: which of the DCI */
    uint32_t first_psn;  /* dc: of its first packet */
    uint64_t dc_key;
    uint32_t qkey;
    uint32_t psn, packets;
    uint32_t at, of; /* which packet of its message is the first, and how many that has */
    bool cut;        /* the packet behind the last one was lost, and others follow that */
    uint32_t mtu;    /* bytes of each but the last */
    enum sim_nak code;
    uint8_t rnr_timer;
    /* A request's, or of the datagram: */
    enum ibv_wr_opcode opcode;
    bool solicited;
    uint64_t wr_id; /* for hooks */
    uint32_t imm, rkey;
    uint32_t length; /* of the whole message */
    uint64_t remote_addr, compare_add, swap;
    struct model_request model; /* with a cost model: what it is to the device that sends it */
    uint32_t bytes;             /* of data */
    uint8_t data[];
};

/* One with room for so much data, of that device; zeroed. */
struct sim_packet *sim_packet_new(struct sim_device *dev, enum sim_packet_kind kind,
                                  const uint8_t to_gid[16], uint32_t to_qpn, uint32_t bytes);
/* The link has it from then on, or it was lost. Whoever is told of it at its arrival frees it. */
void sim_wire_send(struct sim_device *dev, struct sim_packet *p, uint64_t leaves_ns);
/* The same from when a device with a cost model is at it: it leaves as soon as that can send it. */
void sim_wire_send_from(struct sim_device *dev, struct sim_packet *p, uint64_t from_ns);
/* Who is told: set once, by the device's file. */
typedef void sim_arrival(struct sim_device *to, struct sim_packet *p);

/* A GID is a device's from now on, or nobody's. -EADDRINUSE. */
int sim_wire_attach(struct sim_device *dev, sim_arrival *on_arrival);
void sim_wire_detach(struct sim_device *dev);

#endif
