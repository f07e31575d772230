/* SPDX-License-Identifier: Apache-2.0 */
/* One card of the model. Pure: no I/O, no clock and no randomness, time is what the caller says, so
 * that the same calls give the same times.
 *
 * A request passes servers, each of which does one thing after the other: the PCIe link, the
 * processing unit of its queue pair, the engine and the wire; at the other card the wire, what
 * serves requests, the PCIe link; and back. Every call is told when something begins and says when
 * it is over; what follows is to be called at that time, since servers serve in the order of the
 * calls: who calls ahead of time takes a place that others would have had. One thread. */
#ifndef MODEL_NIC_H
#define MODEL_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include "model/preset.h"

struct model_nic;

/* A queue pair or DC target, embedded in the caller's. */
struct model_qp {
    uint32_t pu;
    uint32_t ops;   /* that are out */
    uint64_t bytes; /* of these */
    uint64_t used;  /* in which span of time it was used last; 0: never */
};

struct model_request {
    enum model_kind kind;
    uint32_t bytes; /* of payload; an atomic's 8 */
    uint32_t sges;  /* pieces; a card fetches, and looks up, each for itself */
    bool inlined, signalled;
    bool datagram;   /* its WQE has an address */
    bool dc;         /* so has this one's, of a DC target */
    bool reconnects; /* dc: that is not the target of the one before */
    uint64_t remote_addr;
};

/* NULL: no memory. */
struct model_nic *model_nic_new(const struct model_preset *preset);
void model_nic_free(struct model_nic *nic);
/* What it has counted; its owner hands it out as the device's. */
struct fab_model *model_nic_facts(struct model_nic *nic);
const struct model_preset *model_nic_preset(const struct model_nic *nic);

/* A queue pair is made: the processing units have them in turns. */
void model_qp_begin(struct model_nic *nic, struct model_qp *qp);
/* It is reset or destroyed: nothing of it is out any more. */
void model_qp_end(struct model_nic *nic, struct model_qp *qp);

/* Bytes of a request's WQE, whole cache lines. */
uint32_t model_wqe_bytes(const struct model_request *r);
/* So many requests are posted by one write, with WQEs of so many bytes. When the card has them: one
 * alone comes with the write, of several the card fetches all. */
uint64_t model_doorbell(struct model_nic *nic, uint64_t now_ns, uint32_t requests,
                        uint64_t wqe_bytes);
/* A request is the card's from now on, */
void model_take(struct model_nic *nic, struct model_qp *qp, uint32_t bytes);
/* until it is over, however that was. */
void model_over(struct model_nic *nic, struct model_qp *qp, uint32_t bytes);
/* When its queue pair's processing unit is done with it, */
uint64_t model_unit(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns,
                    const struct model_request *r);
/* and, called at that time, when its last byte leaves the card. Who cannot call later calls now and
 * says when that will be, at_ns: the place among others is that of the call. */
uint64_t model_send(struct model_nic *nic, uint64_t now_ns, uint64_t at_ns,
                    const struct model_request *r);
/* One way. */
uint64_t model_wire_ns(const struct model_nic *nic);
/* At the other card: when the request's memory is read or written. qp: of whoever serves it. */
uint64_t model_serve(struct model_nic *nic, struct model_qp *qp, uint64_t now_ns,
                     const struct model_request *r);
/* When the last byte of its answer leaves that card. */
uint64_t model_answer(struct model_nic *nic, uint64_t now_ns, const struct model_request *r);
/* An answer has come, or will have at at_ns: when the host sees it. */
uint64_t model_complete(struct model_nic *nic, uint64_t now_ns, uint64_t at_ns,
                        const struct model_request *r);
/* From the request's last byte leaving until the answer is here, with nobody else at the other
 * card. */
uint64_t model_far_side_ns(const struct model_preset *preset, const struct model_request *r);

#endif
