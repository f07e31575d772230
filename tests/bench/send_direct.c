/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs on the fabric itself, or READs in the place of large messages: a DCI on one soft device,
 * and a DC target with an SRQ on another, both in this thread. Objects are not freed one by one:
 * the process ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "perf.h"
#include "send.h"

enum { POLL = 64, TIMEOUT = 14, DC_KEY = 0x5e4d };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };

struct end {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_mem mem;
    struct fab_mr *mr;
};

static struct {
    struct perf_path path; /* first */
    struct end sends, hears;
    struct fab_qp *dci;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_wr *wr;
    struct ibv_sge *sge;
    uint32_t size;
    bool reads;
} d;

static int call(struct fab *fab, struct fab_ctl *ctl, const char *what, struct base_errbuf *err)
{
    const int status = fab_call(fab, ctl);
    return status == 0 ? 0 : base_err(err, status, "%s failed: %s", what, strerror(-status));
}

static int open_end(struct end *e, const char *device, uint64_t bytes, uint32_t cqe,
                    struct base_errbuf *err)
{
    const struct fab_open_attr attr = {.device = device};
    int status = fab_soft.open(&attr, &e->fab, err);
    if (status != 0)
        return status;
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD}, cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe}};
    if ((status = call(e->fab, &pd, "a protection domain", err)) != 0 ||
        (status = call(e->fab, &cq, "a completion queue", err)) != 0)
        return status;
    e->pd = pd.pd.x;
    e->cq = cq.cq.x;
    if ((status = fab_mem_alloc(bytes, "kedge-perf", &e->mem)) != 0)
        return base_err(err, status, "memory: %s", strerror(-status));
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = e->pd, .mem = &e->mem, .length = e->mem.size, .access = ACCESS}};
    status = call(e->fab, &mr, "registering memory", err);
    e->mr = mr.mr.x;
    return status;
}

static int post_receive(uint32_t slot)
{
    struct ibv_sge sge = {.addr = d.hears.mr->addr + (uint64_t)slot * perf_stride(d.size),
                          .length = d.size,
                          .lkey = d.hears.mr->lkey};
    struct fab_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    return fab_post_srq_recv(d.srq, &wr, &bad);
}

static int open_target(uint32_t depth, struct base_errbuf *err)
{
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = d.hears.pd, .max_wr = 2 * depth, .max_sge = 1}};
    int status = call(d.hears.fab, &srq, "an SRQ", err);
    if (status != 0)
        return status;
    d.srq = srq.srq.x;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {
            .pd = d.hears.pd, .cq = d.hears.cq, .srq = d.srq, .dc_key = DC_KEY, .access = ACCESS}};
    status = call(d.hears.fab, &dct, "a DC target", err);
    d.dct = dct.dct.x;
    for (uint32_t i = 0; i < depth && status == 0; i++)
        status = post_receive(i);
    return status;
}

static int open_initiator(uint32_t depth, struct base_errbuf *err)
{
    static const struct {
        enum ibv_qp_state state;
        int mask;
    } steps[] = {{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
                 {IBV_QPS_RTR, IBV_QP_PATH_MTU},
                 {IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC}};
    struct fab_ctl qp = {.kind = FAB_CREATE_QP,
                         .qp = {.pd = d.sends.pd,
                                .type = FAB_QP_DCI,
                                .send_cq = d.sends.cq,
                                .recv_cq = d.sends.cq,
                                .cap = {.send_wr = depth, .send_sge = 1}}};
    int status = call(d.sends.fab, &qp, "a DCI", err);
    d.dci = qp.qp.x;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == 0; i++) {
        struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                            .modify = {.x = d.dci, .attr = fab_pd_init_attr(d.sends.pd)}};
        c.modify.attr.qp_state = steps[i].state;
        c.modify.attr.path_mtu = IBV_MTU_4096;
        c.modify.attr.timeout = TIMEOUT;
        c.modify.attr.retry_cnt = c.modify.attr.rnr_retry = 7;
        c.modify.attr.max_rd_atomic = 16;
        c.modify.mask = IBV_QP_STATE | steps[i].mask;
        status = call(d.sends.fab, &c, "a DCI's change of state", err);
    }
    return status;
}

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct fab_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t next = slot + 1 == path->depth ? 0 : slot + 1;
        d.wr[slot].next = &d.wr[next];
        slot = next;
    }
    d.wr[slot].next = NULL;
    const int status = fab_post_send(d.dci, &d.wr[first], &bad);
    return status == 0 ? 0 : base_err(err, status, "posting failed: %s", strerror(-status));
}

static int poll(struct perf_path *path, struct base_errbuf *err)
{
    struct ibv_wc wc[POLL];
    (void)path;
    for (int k = 0; k < 2; k++) {
        const int n = fab_poll(k == 0 ? d.hears.cq : d.sends.cq, POLL, wc);
        for (int i = 0; i < n; i++)
            if (wc[i].status != IBV_WC_SUCCESS || (k == 0 && post_receive((uint32_t)wc[i].wr_id)))
                return base_err(err, -EIO, "a message failed with status %d", wc[i].status);
        if (n < 0 || k == 1)
            return n < 0 ? base_err(err, n, "a completion queue overflowed") : n;
    }
    return 0;
}

static int fill_requests(uint32_t depth, struct base_errbuf *err)
{
    const uint32_t stride = perf_stride(d.size);
    struct fab_ctl ah = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = d.sends.pd, .attr = fab_pd_address(d.sends.pd, d.hears.fab->caps.gid, 0)}};
    const int status = call(d.sends.fab, &ah, "an address handle", err);
    for (uint32_t i = 0; i < depth && status == 0; i++) {
        d.sge[i] = (struct ibv_sge){.addr = d.sends.mr->addr + (uint64_t)i * stride,
                                    .length = d.size,
                                    .lkey = d.sends.mr->lkey};
        d.wr[i] = (struct fab_wr){.wr_id = i,
                                  .sg_list = &d.sge[i],
                                  .num_sge = 1,
                                  .opcode = d.reads ? IBV_WR_RDMA_READ : IBV_WR_SEND,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .ah = ah.ah.x,
                                  .dest_qpn = d.dct->dctn};
        d.wr[i].dc_key = DC_KEY;
        if (d.reads) {
            d.wr[i].remote_addr = d.hears.mr->addr + (uint64_t)i * stride;
            d.wr[i].key.rkey = d.hears.mr->rkey;
        }
    }
    return status;
}

int perf_send_direct(const struct perf_options *o, const char *device, struct perf_path **out,
                     struct base_errbuf *err)
{
    const uint64_t bytes = (uint64_t)perf_stride(o->size) * o->depth;
    d.size = o->size;
    d.reads = perf_send_is_large(o);
    d.path = (struct perf_path){.post = post, .poll = poll, .depth = o->depth};
    d.wr = calloc(o->depth, sizeof *d.wr);
    d.sge = calloc(o->depth, sizeof *d.sge);
    int status = d.wr == NULL || d.sge == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = open_end(&d.sends, device, bytes, o->depth, err);
    if (status == 0)
        status = open_end(&d.hears, device, bytes, 2 * o->depth, err);
    if (status == 0)
        status = open_target(o->depth, err);
    if (status == 0)
        status = open_initiator(o->depth, err);
    if (status == 0)
        status = fill_requests(o->depth, err);
    if (status == 0)
        perf_pattern(d.reads ? d.hears.mem.addr : d.sends.mem.addr, bytes);
    *out = &d.path;
    return status;
}

const void *perf_send_direct_heard(void)
{
    return d.reads ? d.sends.mem.addr : d.hears.mem.addr;
}
