/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/execute.h"

#include <string.h>

#include "base/assert.h"
#include "ibta/ibta.h"

enum {
    WHOLE = 8, /* so many aligned bytes are moved at once by every device */
    USUAL_PIECES = 4,
    STALLED_BYTES = 4096 /* of a READ that may stall, at most */
};

static const struct fab_pd *pd_of(const struct sim_responder *r)
{
    return r->qp != NULL ? r->qp->base.pd : r->dct->base.pd;
}

/* Where the packet's first byte is, that was not accepted before. */
static uint64_t address_of(const struct sim_exec *x)
{
    return x->packet->remote_addr + (uint64_t)(x->packet->at + x->skip) * x->packet->mtu;
}

static struct sim_on_behalf behalf_of(const struct sim_packet *p)
{
    return (struct sim_on_behalf){
        .remote = true, .node = p->from_node, .qpn = p->from_qpn, .wr_id = p->wr_id};
}

/* ---- pieces */

static void shuffle_pieces(struct base_prng *prng, struct sim_exec *x)
{
    for (uint32_t i = 0; i < x->pieces; i++) {
        const uint32_t j = (uint32_t)base_prng_below(prng, i + 1);
        x->order[i] = x->order[j];
        x->order[j] = (uint8_t)i;
    }
}

static bool draw_stall(const struct sim_exec *x)
{
    const struct sim_net *net = x->r->dev->net;
    return net->stall_ppm > 0 && x->packet->opcode == IBV_WR_RDMA_READ &&
           x->bytes <= STALLED_BYTES && base_prng_below(&x->r->dev->prng, 1000000) < net->stall_ppm;
}

void sim_exec_plan(struct sim_exec *x)
{
    struct base_prng *prng = &x->r->dev->prng;
    const uint64_t addr = address_of(x);
    x->pieces = 1;
    x->piece[1] = x->bytes;
    if (x->r->dev->nic != NULL)
        return;
    x->stalls = draw_stall(x);
    if (fab_opcode_is_send(x->packet->opcode) || fab_opcode_is_atomic(x->packet->opcode) ||
        x->bytes <= WHOLE || (!x->stalls && base_prng_below(prng, 2) != 0))
        return;
    const uint32_t wanted =
        x->stalls ? SIM_MOST_PIECES : 2 + (uint32_t)base_prng_below(prng, USUAL_PIECES - 1);
    for (x->pieces = 0; x->pieces + 1 < wanted;) {
        const uint32_t from = x->piece[x->pieces], left = x->bytes - from;
        const uint32_t most = x->stalls ? 1 + 2 * left / (wanted - x->pieces) : left;
        uint64_t to = addr + from + 1 + base_prng_below(prng, most < left ? most : left);
        to = (to + WHOLE - 1) & ~(uint64_t)(WHOLE - 1);
        if (to - addr >= x->bytes)
            break;
        x->piece[++x->pieces] = (uint32_t)(to - addr);
    }
    x->piece[++x->pieces] = x->bytes;
    shuffle_pieces(prng, x);
}

/* ---- refusals */

static void refuse_request(struct sim_exec *x, enum sim_nak code)
{
    x->refused = x->done = true;
    x->code = code;
}

/* It asks for more than it may. */
static void refuse_access(struct sim_exec *x, enum sim_refusal why)
{
    const struct sim_packet *p = x->packet;
    const struct sim_net *net = x->r->dev->net;
    const struct sim_access access = {.kind = p->opcode == IBV_WR_RDMA_READ     ? SIM_READ
                                              : fab_opcode_is_atomic(p->opcode) ? SIM_ATOMIC
                                                                                : SIM_WRITE,
                                      .remote = true,
                                      .node = x->r->dev->attr.node,
                                      .initiator = p->from_node,
                                      .qpn = p->from_qpn,
                                      .key = p->rkey,
                                      .addr = p->remote_addr,
                                      .bytes = p->length};
    if (net->hooks.refused != NULL)
        net->hooks.refused(net->hooks.user, &access, why);
    refuse_request(x, why == SIM_REFUSED_FORM || why == SIM_REFUSED_MANY ? SIM_NAK_INVALID
                                                                         : SIM_NAK_ACCESS);
}

void sim_exec_refuse_many(struct sim_exec *x)
{
    refuse_access(x, SIM_REFUSED_MANY);
}

/* The whole message is judged with its first piece, and each piece again: the region may be gone by
 * then. */
static const struct sim_mr *find_region(struct sim_exec *x, uint64_t addr, uint32_t bytes)
{
    const struct sim_packet *p = x->packet;
    const unsigned access = fab_opcode_row(p->opcode)->access;
    const bool first = !x->begun && p->at == 0;
    if (first &&
        sim_mr_find(x->r->dev, pd_of(x->r), p->rkey, p->remote_addr, p->length, access) == NULL)
        return NULL;
    return sim_mr_find(x->r->dev, pd_of(x->r), p->rkey, addr, bytes, access);
}

static bool is_allowed(const struct sim_exec *x)
{
    const unsigned needed = fab_opcode_row(x->packet->opcode)->access;
    const unsigned access = x->r->qp != NULL ? x->r->qp->access : x->r->dct->access;
    return (access & needed) == needed;
}

/* ---- receives */

static struct sim_cqe receive_of(const struct sim_exec *x, const struct sim_rqe *e)
{
    const struct sim_packet *p = x->packet;
    const struct sim_responder *r = x->r;
    const bool writes = !fab_opcode_is_send(p->opcode);
    struct sim_cqe c = {.wc = {.wr_id = e->wr_id,
                               .status = IBV_WC_SUCCESS,
                               .opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                               .byte_len = p->length,
                               .qp_num = r->qp != NULL ? r->qp->base.qpn : r->dct->base.dctn,
                               .src_qp = p->from_qpn},
                        .owner = r->qp != NULL ? (const void *)r->qp : r->dct};
    if (p->opcode != IBV_WR_SEND) {
        c.wc.wc_flags = IBV_WC_WITH_IMM;
        c.wc.imm_data = p->imm;
    }
    return c;
}

/* The message goes into the oldest receive. */
static void deliver_message(struct sim_exec *x)
{
    const struct sim_packet *p = x->packet;
    struct sim_responder *r = x->r;
    struct sim_rq *rq = r->qp != NULL ? sim_rq_of(r->qp) : &r->dct->srq->rq;
    const struct sim_rqe *e = sim_rq_take(rq);
    const struct sim_on_behalf whose = behalf_of(p);
    uint64_t room = 0;
    BASE_ASSERT(e != NULL && x->promised);
    rq->promised--;
    x->promised = false;
    struct sim_cqe c = receive_of(x, e);
    for (uint32_t i = 0; i < e->num_sge; i++)
        room += e->sge[i].length;
    if (fab_opcode_is_send(p->opcode) && room < p->length) {
        c.wc.status = IBV_WC_LOC_LEN_ERR;
        refuse_request(x, SIM_NAK_INVALID);
    } else if (fab_opcode_is_send(p->opcode) &&
               !sim_sges_write(r->dev, pd_of(r), e->sge, e->num_sge, 0, p->data, p->length,
                               &whose)) {
        c.wc.status = IBV_WC_LOC_PROT_ERR;
        refuse_request(x, SIM_NAK_FAILED);
    }
    x->own_fault = x->refused;
    sim_cq_push(r->qp != NULL ? sim_recv_cq(r->qp) : r->dct->cq, &c, p->solicited);
}

/* ---- one piece */

static void move_piece(struct sim_exec *x)
{
    const struct sim_packet *p = x->packet;
    const struct sim_on_behalf whose = behalf_of(p);
    const uint32_t piece = x->order[x->next_piece++], from = x->piece[piece];
    const uint32_t bytes = x->piece[piece + 1] - from;
    const uint64_t addr = address_of(x) + from;
    const struct sim_net *net = x->r->dev->net;
    if (x->stalls && x->next_piece == x->pieces / 2 && net->hooks.stalled != NULL)
        net->hooks.stalled(net->hooks.user, x->r->dev->attr.node, x->bytes);
    if (bytes == 0)
        return;
    const struct sim_mr *mr = find_region(x, addr, bytes);
    if (mr == NULL)
        refuse_access(x, SIM_REFUSED_ACCESS);
    else if (p->opcode == IBV_WR_RDMA_READ)
        sim_mr_read(mr, addr, x->answer->data + from, bytes, &whose);
    else if (fab_opcode_is_atomic(p->opcode))
        x->before = sim_mr_atomic(mr, addr, p->opcode, p->compare_add, p->swap, &whose);
    else
        sim_mr_write(mr, addr, p->data + (uint64_t)x->skip * p->mtu + from, bytes, &whose);
}

static void begin_answer(struct sim_exec *x)
{
    const struct sim_packet *p = x->packet;
    x->answer = sim_packet_new(x->r->dev, SIM_READ_ANSWER, x->r->gid, x->r->qpn, x->bytes);
    x->answer->psn = p->psn;
    x->answer->packets = p->of - p->at;
    x->answer->mtu = p->mtu;
}

void sim_exec_step(struct sim_exec *x)
{
    const enum ibv_wr_opcode opcode = x->packet->opcode;
    if (!x->begun && !fab_opcode_is_send(opcode)) {
        if (!fab_opcode_is_aligned(opcode, x->packet->remote_addr)) {
            refuse_access(x, SIM_REFUSED_FORM);
            return;
        }
        if (!is_allowed(x)) {
            refuse_access(x, SIM_REFUSED_RIGHTS);
            return;
        }
    }
    if (!x->begun && opcode == IBV_WR_RDMA_READ)
        begin_answer(x);
    if (!fab_opcode_is_send(opcode))
        move_piece(x);
    else
        x->next_piece++;
    x->begun = true;
    if (x->done || x->next_piece < x->pieces)
        return;
    x->done = true;
    if (x->promised)
        deliver_message(x);
}

void sim_exec_place(struct sim_exec *x)
{
    const struct sim_packet *p = x->packet;
    const struct sim_on_behalf whose = behalf_of(p);
    if (p->opcode != IBV_WR_RDMA_WRITE || !is_allowed(x))
        return;
    for (uint64_t left = 1 + base_prng_below(&x->r->dev->prng, x->pieces);
         left > 0 && x->next_piece < x->pieces; left--) {
        const uint32_t from = x->piece[x->order[x->next_piece]];
        const uint32_t bytes = x->piece[x->order[x->next_piece++] + 1] - from;
        const uint64_t addr = address_of(x) + from;
        const struct sim_mr *mr = bytes > 0 ? find_region(x, addr, bytes) : NULL;
        if (mr == NULL)
            return;
        sim_mr_write(mr, addr, p->data + (uint64_t)x->skip * p->mtu + from, bytes, &whose);
        x->begun = true;
    }
}
