/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "private.h"

enum {
    POLL = 64,
    MOST_READS = 16, /* as agents have, where the device has as many */
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

struct end {
    struct bench_program *program;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    uint32_t psn;
};

struct bench_pair {
    struct end near, far;
    struct bench_slots slots;
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;
};

static int open_end(struct end *e, const struct bench_slots *s, struct base_errbuf *err)
{
    struct bench_program *p = e->program;
    errno = 0;
    e->cq = ibv_create_cq(p->context, 3 * (int)s->depth, NULL, NULL, 0);
    if (e->cq == NULL)
        return bench_failed(err, "creating a completion queue", errno);
    e->mr = ibv_reg_mr(p->pd, p->buffer, BENCH_BUFFER_BYTES, ACCESS);
    if (e->mr == NULL)
        return bench_failed(err, "registering memory", errno);
    struct ibv_qp_init_attr attr = {.send_cq = e->cq,
                                    .recv_cq = e->cq,
                                    .cap = {.max_send_wr = s->depth,
                                            .max_recv_wr = 2 * s->depth,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    e->qp = ibv_create_qp(p->pd, &attr);
    if (e->qp == NULL)
        return bench_failed(err, "creating a queue pair", errno);
    const int status = bench_draw_psn(&e->psn, err);
    return status != 0 ? status : bench_to_init(p, e->qp, ACCESS, err);
}

static int connect_end(const struct end *from, const struct end *to, struct base_errbuf *err)
{
    struct ibv_device_attr device;
    struct bench_address peer = {
        .qpn = to->qp->qp_num, .psn = to->psn, .lid = to->program->port_attr.lid};
    int status = ibv_query_device(from->program->context, &device);
    if (status != 0)
        return bench_failed(err, "asking for the device's limits", status);
    const int most = device.max_qp_rd_atom < MOST_READS ? device.max_qp_rd_atom : MOST_READS;
    memcpy(peer.gid, to->program->gid, 16);
    status = bench_to_rtr(from->program, from->qp, &peer, (uint8_t)most, err);
    return status != 0 ? status : bench_to_rts(from->qp, from->psn, (uint8_t)most, err);
}

static int post_receive(struct bench_pair *p, uint64_t slot, struct base_errbuf *err)
{
    struct ibv_sge sge = {.addr = (uintptr_t)p->far.program->buffer + slot * p->slots.stride,
                          .length = p->slots.size,
                          .lkey = p->far.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    const int status = ibv_post_recv(p->far.qp, &wr, &bad);
    return status == 0 ? 0 : bench_failed(err, "posting a receive", status);
}

static void fill_requests(struct bench_pair *p)
{
    for (uint32_t i = 0; i < p->slots.depth; i++) {
        const uint64_t at = (uint64_t)i * p->slots.stride;
        p->sge[i] = (struct ibv_sge){.addr = (uintptr_t)p->near.program->buffer + at,
                                     .length = p->slots.size,
                                     .lkey = p->near.mr->lkey};
        p->wr[i] =
            (struct ibv_send_wr){.wr_id = i,
                                 .sg_list = &p->sge[i],
                                 .num_sge = 1,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = (uintptr_t)p->far.program->buffer + at,
                                             .rkey = p->far.mr->rkey}};
    }
}

int bench_pair_open(const struct bench_choice *c, const struct bench_slots *slots,
                    struct bench_pair **out, struct base_errbuf *err)
{
    if ((uint64_t)slots->depth * slots->stride > BENCH_BUFFER_BYTES)
        return base_err(err, -EINVAL, "%u requests of %u bytes are more than %d bytes of memory",
                        slots->depth, slots->size, BENCH_BUFFER_BYTES);
    struct bench_pair *p = calloc(1, sizeof *p);
    if (p == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    p->slots = *slots;
    p->wr = calloc(slots->depth, sizeof *p->wr);
    p->sge = calloc(slots->depth, sizeof *p->sge);
    int status = p->wr == NULL || p->sge == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = bench_program_open(c, false, NULL, &p->near.program, err);
    if (status == 0)
        status = bench_program_open(c, true, NULL, &p->far.program, err);
    if (status == 0)
        status = open_end(&p->near, slots, err);
    if (status == 0)
        status = open_end(&p->far, slots, err);
    if (status == 0)
        status = connect_end(&p->near, &p->far, err);
    if (status == 0)
        status = connect_end(&p->far, &p->near, err);
    /* Twice as many as may be out: a request may be over before its receive was seen to be. */
    for (uint32_t i = 0; i < 2 * slots->depth && status == 0; i++)
        status = post_receive(p, i % slots->depth, err);
    if (status != 0) {
        bench_pair_close(p);
        return status;
    }
    fill_requests(p);
    *out = p;
    return 0;
}

static void close_end(struct end *e)
{
    if (e->qp != NULL)
        (void)ibv_destroy_qp(e->qp);
    if (e->mr != NULL)
        (void)ibv_dereg_mr(e->mr);
    if (e->cq != NULL)
        (void)ibv_destroy_cq(e->cq);
    bench_program_close(e->program);
}

void bench_pair_close(struct bench_pair *p)
{
    if (p == NULL)
        return;
    close_end(&p->near);
    close_end(&p->far);
    free(p->wr);
    free(p->sge);
    free(p);
}

void *bench_pair_near(const struct bench_pair *p)
{
    return p->near.program->buffer;
}

void *bench_pair_far(const struct bench_pair *p)
{
    return p->far.program->buffer;
}

int bench_pair_post(struct bench_pair *p, enum bench_op op, uint32_t first, uint32_t count,
                    struct base_errbuf *err)
{
    static const enum ibv_wr_opcode opcodes[] = {[BENCH_OP_READ] = IBV_WR_RDMA_READ,
                                                 [BENCH_OP_WRITE] = IBV_WR_RDMA_WRITE,
                                                 [BENCH_OP_SEND] = IBV_WR_SEND,
                                                 [BENCH_OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM};
    struct ibv_send_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t next = slot + 1 == p->slots.depth ? 0 : slot + 1;
        p->wr[slot].opcode = opcodes[op];
        p->wr[slot].imm_data = slot;
        p->wr[slot].next = i + 1 < count ? &p->wr[next] : NULL;
        slot = next;
    }
    const int status = ibv_post_send(p->near.qp, &p->wr[first], &bad);
    return status == 0 ? 0 : bench_failed(err, "posting", status);
}

/* Returns how many; each is handed to nobody. */
static int poll_end(const struct end *e, struct ibv_wc wc[POLL], struct base_errbuf *err)
{
    const int n = ibv_poll_cq(e->cq, POLL, wc);
    if (n < 0)
        return base_err(err, -EIO, "the completion queue cannot be polled");
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return base_err(err, -EIO, "an operation failed: %s", ibv_wc_status_str(wc[i].status));
    return n;
}

int bench_pair_poll(struct bench_pair *p, struct base_errbuf *err)
{
    struct ibv_wc wc[POLL];
    int status = 0;
    const int heard = poll_end(&p->far, wc, err);
    for (int i = 0; i < heard && status == 0; i++)
        status = post_receive(p, wc[i].wr_id, err);
    if (heard < 0 || status != 0)
        return heard < 0 ? heard : status;
    return poll_end(&p->near, wc, err);
}
