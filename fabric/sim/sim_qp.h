/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs and DC targets: their state. */
#ifndef SIM_QP_H
#define SIM_QP_H

#include "model/nic.h"
#include "sim/sim_memory.h"
#include "sim/queue.h"
#include "sim/wire.h"

/* A request in a send queue. */
struct sim_wqe {
    uint64_t wr_id, remote_addr, compare_add, swap, dc_key;
    enum ibv_wr_opcode opcode;
    unsigned flags;
    uint32_t imm, rkey, length, num_sge;
    struct ibv_sge *sge;  /* the queue pair's */
    uint8_t *inline_data; /* the queue pair's too; with IBV_SEND_INLINE */
    uint8_t dgid[16];     /* UD and DCI: where to */
    uint32_t dest_qpn, qkey;
    uint32_t slots; /* of the queue pair that are over with it, running */
    uint32_t psn, packets;
    uint32_t got; /* packets of a READ's or an atomic's answer; of others, that were taken */
    bool done, failed;
    enum ibv_wc_status status; /* failed: how it ends, when its turn comes */
};

/* One request that a responder has accepted. */
enum { SIM_MOST_PIECES = 16 };
struct sim_exec {
    struct sim_event event;
    struct sim_responder *r;
    struct sim_packet *packet;
    TAILQ_ENTRY(sim_exec) link;
    uint32_t skip;                       /* of the packet's packets that were accepted before */
    uint32_t bytes;                      /* that it moves */
    uint32_t pieces;                     /* that it moves them in, and that are left */
    uint32_t piece[SIM_MOST_PIECES + 1]; /* where each begins, and where the last ends */
    uint8_t order[SIM_MOST_PIECES], next_piece;
    bool stalls;    /* its pieces are far apart */
    bool ripe;      /* it waits for what is before it alone */
    bool begun;     /* some of it was executed */
    bool done;      /* all of it was, or it is refused */
    bool promised;  /* a receive */
    bool again;     /* it was accepted before, and perhaps answered */
    bool own_fault; /* it is refused for the receiver's own memory */
    bool refused;
    enum sim_nak code;         /* refused: with which */
    uint64_t before;           /* what an atomic found */
    struct sim_packet *answer; /* of a READ, being filled */
};

/* The responder's half of an RC queue pair; or a DC target's of one connection. */
struct sim_responder {
    struct sim_device *dev;
    struct sim_qp *qp;              /* RC */
    struct sim_dct *dct;            /* DC */
    uint8_t gid[16];                /* of the other side */
    uint32_t qpn;                   /* there: answers go to it */
    uint32_t connection, first_psn; /* DC */
    uint32_t epsn;                  /* expected next */
    bool told_gap;
    bool owes;         /* a NAK, when all before it is answered */
    enum sim_nak owed; /* owes: which one */
    bool refusing;     /* one was refused, and nothing is accepted behind it */
    bool ended;        /* DC: there is a later connection; no answer leaves any more */
    TAILQ_HEAD(sim_execs, sim_exec) queue;
    uint32_t answering; /* READs and atomics in it */
    uint32_t fresh;     /* those of them that no answer was sent to */
    /* Answers of atomics, for duplicates. */
    struct {
        uint32_t psn;
        uint64_t before;
        bool is;
    } atomics[SIM_MAX_READS];
    uint32_t atomics_next;
    LIST_ENTRY(sim_responder) link; /* DC: of the target's */
};

enum sim_wait { SIM_WAITS_ANSWER, SIM_WAITS_RECEIVER };

struct sim_qp {
    struct fab_qp base;
    struct sim_numbered numbered;
    struct sim_object object;
    struct sim_device *dev;
    enum ibv_qp_state state;
    bool reset_before; /* it was in another state than RESET */
    uint64_t begun_ns; /* when it was connected last */
    /* From MODIFY. */
    uint8_t gid[16];
    uint32_t dest_qpn, qkey, mtu;
    unsigned access;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_reads;      /* READs and atomics that are out at a time */
    uint8_t max_dest_reads; /* READs and atomics of the peer's that there is room for */
    /* The requester: head <= next <= sent <= tail of the ring, running. */
    struct sim_wqe *ring; /* base.cap.send_wr of them */
    struct ibv_sge *sges;
    uint8_t *inlines;
    uint32_t told; /* the oldest of whose end nothing was said */
    uint32_t head; /* the oldest that is not over */
    uint32_t next; /* to be sent; behind `sent` alone when something is sent again */
    uint32_t sent; /* the first that has no packet number yet */
    uint32_t tail;
    uint32_t posted, freed; /* slots, running */
    uint32_t psn;           /* of the next request */
    uint32_t reads;         /* READs and atomics that are out */
    uint32_t tries, rnr_tries;
    bool repeats;         /* for an implied NAK, and nothing is heard since that was not before */
    uint32_t repeats_psn; /* the first packet that had not been sent by then */
    enum sim_wait waits;
    struct sim_event doorbell, timer;
    uint64_t flushed_ns; /* in ERR: when all that was out is the device's no more */
    /* DCI: whom it is connected to. */
    bool connected;
    uint32_t connection, first_psn;
    uint64_t dc_key;
    struct sim_responder responder; /* RC */
    /* With a cost model. */
    struct model_qp model;
    bool reconnects;  /* the next request goes to another target than the one before */
    uint64_t left_ns; /* when the last request has left */
    struct sim_rq rq;
};

struct sim_dct {
    struct fab_dct base;
    struct sim_numbered numbered;
    struct sim_object object;
    struct sim_device *dev;
    struct sim_cq *cq;
    struct sim_srq *srq;
    unsigned access;
    bool silent;                           /* it broke: nothing that comes is taken any more */
    LIST_HEAD(, sim_responder) responders; /* all */
    struct sim_table by_initiator;         /* those in force */
    struct model_qp model;
};

static inline struct sim_qp *sim_qp_numbered(struct sim_numbered *n)
{
    return (struct sim_qp *)(void *)((char *)n - offsetof(struct sim_qp, numbered));
}
static inline struct sim_dct *sim_dct_numbered(struct sim_numbered *n)
{
    return (struct sim_dct *)(void *)((char *)n - offsetof(struct sim_dct, numbered));
}
static inline struct sim_wqe *sim_wqe_at(const struct sim_qp *qp, uint32_t i)
{
    return &qp->ring[i % qp->base.cap.send_wr];
}
static inline struct sim_cq *sim_send_cq(const struct sim_qp *qp)
{
    return (struct sim_cq *)qp->base.send_cq;
}
static inline struct sim_cq *sim_recv_cq(const struct sim_qp *qp)
{
    return (struct sim_cq *)qp->base.recv_cq;
}
/* Where receives of it are; NULL: nowhere. */
static inline struct sim_rq *sim_rq_of(struct sim_qp *qp)
{
    return qp->base.srq != NULL  ? &((struct sim_srq *)qp->base.srq)->rq
           : qp->rq.ring != NULL ? &qp->rq
                                 : NULL;
}
static inline const char *sim_qp_name(const struct sim_qp *qp)
{
    return qp->base.type == FAB_QP_RC ? "RC" : qp->base.type == FAB_QP_UD ? "UD" : "DCI";
}
/* How far a packet number is ahead of another one; negative: behind. */
static inline int32_t sim_psn_ahead(uint32_t psn, uint32_t of)
{
    return (int32_t)((psn - of) << 8) >> 8;
}
/* How many packets so many bytes are. */
static inline uint32_t sim_packets_of(uint32_t bytes, uint32_t mtu)
{
    return bytes == 0 ? 1 : (bytes - 1) / mtu + 1;
}

#endif
