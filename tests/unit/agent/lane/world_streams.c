/* SPDX-License-Identifier: Apache-2.0 */
/* DCIs with streams, over `soft`: requests to one target are in one stream, in order; streams go on
 * in any order, also for a while after one of them had an error. Then the DCI is in ERR, and what
 * is left is flushed. Seeded. Of the thread that steps the lanes. */
#include "world_streams.h"

#include <check.h>
#include <string.h>

#include "base/random.h"
#include "fabric/provider.h"
#include "world.h"

enum { STREAMS = 4, DCIS = 24, REQUESTS = WORLD_SQ_DEPTH, MOST_POLLS = 12 };

struct request {
    struct fab_wr wr;
    struct ibv_sge sge[LANE_MERGE_SGES];
    uint32_t stream;
    bool over;
};

static struct dci {
    struct fab_qp *qp; /* NULL: the place is free */
    struct request request[REQUESTS];
    uint32_t head, tail;
    bool failed[STREAMS];
    uint32_t polls_to_err; /* 0: no stream has failed */
} dcis[DCIS];

static struct ibv_wc ready[DCIS * REQUESTS];
static uint32_t ready_count;
static bool stand_still;
static struct base_prng prng;
static const struct fab_ops *soft;
static struct fab_ops ops;
/* Who carries out what is in a stream: a queue pair each, so that one's error is no other's. */
static struct fab_qp *carrier[STREAMS];
static struct fab_cq *carried;

static struct dci *dci_of(const struct fab_qp *qp, bool make)
{
    for (int i = 0; i < DCIS; i++)
        if (dcis[i].qp == qp)
            return &dcis[i];
    for (int i = 0; make && i < DCIS; i++)
        if (dcis[i].qp == NULL) {
            dcis[i] = (struct dci){.qp = (struct fab_qp *)(uintptr_t)qp};
            return &dcis[i];
        }
    ck_assert(!make);
    return NULL;
}

static void finish(struct dci *d, struct request *r, enum ibv_wc_status status)
{
    r->over = true;
    if (status != IBV_WC_SUCCESS || (r->wr.send_flags & IBV_SEND_SIGNALED))
        ready[ready_count++] =
            (struct ibv_wc){.wr_id = r->wr.wr_id, .status = status, .qp_num = d->qp->qpn};
    while (d->head != d->tail && d->request[d->head % REQUESTS].over)
        d->head++;
}

static int post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    bool carries = false;
    for (int i = 0; i < STREAMS; i++)
        carries |= qp == carrier[i];
    if (carries || qp->type != FAB_QP_DCI || qp->pd != carrier[0]->pd) /* the system PD's */
        return soft->post_send(qp, wr, bad);
    struct dci *d = dci_of(qp, true);
    for (; wr != NULL; wr = wr->next) {
        struct request *r = &d->request[d->tail % REQUESTS];
        ck_assert_uint_lt(d->tail - d->head, REQUESTS);
        *r = (struct request){.wr = *wr, .stream = wr->dest_qpn * 7 % STREAMS};
        memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof r->sge[0]);
        r->wr.sg_list = r->sge;
        d->tail++;
    }
    return 0;
}

static enum ibv_wc_status carry_out(struct request *r)
{
    struct fab_qp *by = carrier[r->stream];
    struct fab_wr wr = r->wr, *bad;
    struct ibv_wc wc;
    wr.next = NULL;
    wr.send_flags |= IBV_SEND_SIGNALED;
    ck_assert_int_eq(soft->post_send(by, &wr, &bad), 0);
    while (soft->poll(carried, 1, &wc) != 1)
        ;
    if (wc.status != IBV_WC_SUCCESS)
        world_raise_dci(by->pd->fab, by);
    return wc.status;
}

/* The first of a stream, if it may go. */
static struct request *first_of(struct dci *d, uint32_t stream)
{
    for (uint32_t i = d->head; i != d->tail && !d->failed[stream]; i++) {
        struct request *r = &d->request[i % REQUESTS];
        if (!r->over && r->stream == stream)
            return r;
    }
    return NULL;
}

static void flush(struct dci *d)
{
    for (uint32_t i = d->head, end = d->tail; i != end; i++)
        if (!d->request[i % REQUESTS].over)
            finish(d, &d->request[i % REQUESTS], IBV_WC_WR_FLUSH_ERR);
}

static void to_err(struct dci *d)
{
    struct fab_ctl err = {
        .kind = FAB_MODIFY_QP,
        .modify = {.x = d->qp, .attr = {.qp_state = IBV_QPS_ERR}, .mask = IBV_QP_STATE}};
    ck_assert_int_eq(fab_call(d->qp->pd->fab, &err), 0);
    flush(d);
}

static void go_on(struct dci *d)
{
    const uint32_t first = (uint32_t)base_prng_below(&prng, STREAMS);
    struct request *r = NULL;
    if (stand_still && d->polls_to_err > 0)
        return;
    for (uint32_t i = 0; i < STREAMS && r == NULL; i++)
        r = first_of(d, (first + i) % STREAMS);
    if (r != NULL && base_prng_below(&prng, 4) != 0) {
        const enum ibv_wc_status status = carry_out(r);
        finish(d, r, status);
        if (status != IBV_WC_SUCCESS && d->polls_to_err == 0)
            d->polls_to_err = 1 + (uint32_t)base_prng_below(&prng, MOST_POLLS);
        d->failed[r->stream] |= status != IBV_WC_SUCCESS;
    }
    if (d->polls_to_err > 1)
        d->polls_to_err--;
    else if (d->polls_to_err == 1 && d->head != d->tail)
        to_err(d);
}

static int poll(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    int got = 0;
    if (cq != carrier[0]->send_cq) {
        for (int i = 0; i < DCIS; i++)
            if (dcis[i].qp != NULL && dcis[i].qp->send_cq == cq && dcis[i].head != dcis[i].tail)
                go_on(&dcis[i]);
        for (; got < n && (uint32_t)got < ready_count; got++)
            wc[got] = ready[got];
        ready_count -= (uint32_t)got;
        memmove(ready, ready + got, ready_count * sizeof ready[0]);
    }
    return got + soft->poll(cq, n - got, wc + got);
}

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    struct dci *d = NULL;
    if (ctl->kind == FAB_DESTROY_QP)
        d = dci_of(ctl->qp.x, false);
    else if (ctl->kind == FAB_MODIFY_QP && ctl->modify.attr.qp_state == IBV_QPS_RESET)
        d = dci_of(ctl->modify.x, false);
    if (d != NULL)
        *d = (struct dci){.qp = NULL};
    if (stand_still && ctl->kind == FAB_MODIFY_QP && ctl->modify.attr.qp_state == IBV_QPS_ERR &&
        dci_of(ctl->modify.x, false) != NULL)
        flush(dci_of(ctl->modify.x, false));
    soft->submit(fab, ctl);
}

void world_streams_begin(struct world_node *n, uint64_t seed)
{
    base_prng_seed(&prng, seed);
    memset(dcis, 0, sizeof dcis);
    ready_count = 0;
    stand_still = false;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 2 * STREAMS}};
    ck_assert_int_eq(fab_call(n->fab, &cq), 0);
    carried = cq.cq.x;
    for (int i = 0; i < STREAMS; i++) {
        struct fab_ctl qp = {.kind = FAB_CREATE_QP,
                             .qp = {.pd = n->pd,
                                    .type = FAB_QP_DCI,
                                    .send_cq = carried,
                                    .recv_cq = carried,
                                    .cap = {.send_wr = 1,
                                            .send_sge = LANE_MERGE_SGES,
                                            .inline_bytes = SCHEMA_MAX_INLINE}}};
        ck_assert_int_eq(fab_call(n->fab, &qp), 0);
        carrier[i] = qp.qp.x;
        world_raise_dci(n->fab, carrier[i]);
    }
    soft = n->fab->ops;
    ops = *soft;
    ops.post_send = post_send;
    ops.poll = poll;
    ops.submit = submit;
    n->fab->ops = &ops;
}

void world_streams_stand_still(void)
{
    stand_still = true;
}

void world_streams_end(struct world_node *n)
{
    n->fab->ops = soft;
    for (int i = 0; i < STREAMS; i++) {
        struct fab_ctl qp = {.kind = FAB_DESTROY_QP, .qp = {.x = carrier[i]}};
        ck_assert_int_eq(fab_call(n->fab, &qp), 0);
    }
    struct fab_ctl cq = {.kind = FAB_DESTROY_CQ, .cq = {.x = carried}};
    ck_assert_int_eq(fab_call(n->fab, &cq), 0);
}
